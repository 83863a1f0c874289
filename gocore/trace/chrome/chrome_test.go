package chrome

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/trace"
)

// names are the calls of the tests' programs, by number.
const names = "Send\tmessage\nRecv\tmessage\nWin.Put\tone-sided\nWin.Fence\tsynchronization"

const (
	callSend = iota
	callRecv
	callPut
	callFence
)

// recorder writes the part of one rank: its records are at nanoseconds that the test
// chooses.
type recorder struct {
	t    testing.TB
	part *trace.Part
}

// newRecorder makes the part of a rank with room for capacity records.
func newRecorder(t testing.TB, rank, ranks, capacity int) *recorder {
	t.Helper()
	p, err := trace.NewPart(capacity)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	require.NoError(t, trace.Start(p, rank, ranks, 100+rank, names))
	require.Same(t, p, trace.Stop())
	p.Head.Clock = trace.ClockMonotonic
	return &recorder{t, p}
}

// add writes a record as the shim does.
func (r *recorder) add(rec trace.Record) {
	h := r.part.Head
	if h.Next++; h.Next > h.Capacity {
		return // it is dropped
	}
	all := unsafe.Slice((*trace.Record)(unsafe.Add(r.part.Address(), trace.RecordsAt)), h.Capacity)
	all[h.Next-1] = rec
}

// call adds a call from begin to end, in nanoseconds.
func (r *recorder) call(name uint16, begin, end uint64, more ...func(*trace.Record)) {
	rec := trace.Record{State: trace.StateDone, Kind: trace.KindCall, Name: name, Begin: begin, End: end, Thread: 7, Peer: -3, Tag: -1}
	for _, f := range more {
		f(&rec)
	}
	r.add(rec)
}

// message adds the sending or receiving of a message.
func (r *recorder) message(kind trace.Kind, number int64, at uint64, peer int32) {
	r.add(trace.Record{State: trace.StateDone, Kind: kind, Begin: at, Thread: 7, Peer: peer, Object: 2, Bytes: 80, Disp: number, Tag: 5})
}

// wait adds a wait for a peer.
func (r *recorder) wait(begin, end uint64, peer int32) {
	r.add(trace.Record{State: trace.StateDone, Kind: trace.KindWait, Begin: begin, End: end, Thread: 7, Peer: peer})
}

// event is an event of the file.
type event struct {
	Ph, Name, Cat, BP, S string
	PID, TID, ID         int
	TS, Dur              float64
	Args                 map[string]any
}

// file is what is written for Perfetto.
type file struct {
	DisplayTimeUnit string
	OtherData       struct {
		Producer string
		Ranks    int
		Absent   []int
		Dropped  map[string]int
		Windows  map[string]struct {
			Flavor int
			Ranks  []int
		}
		Start   int64 `json:"start_ns"`
		End     int64 `json:"end_ns"`
		Summary string
	}
	TraceEvents []event
}

// written returns what a recording is written as.
func written(t testing.TB, r *Recording) *file {
	t.Helper()
	var f file
	var out bytes.Buffer
	require.NoError(t, r.Write(&out))
	decoder := json.NewDecoder(&out)
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&f))
	return &f
}

// events returns the events with a phase and a name.
func (f *file) events(phase, name string) (found []event) {
	for _, e := range f.TraceEvents {
		if e.Ph == phase && e.Name == name {
			found = append(found, e)
		}
	}
	return found
}

// join joins the parts of recorders.
func join(ranks int, recorders ...*recorder) *Recording {
	var parts []*trace.Part
	for _, r := range recorders {
		parts = append(parts, r.part)
	}
	return New(parts, ranks)
}

func TestMessageIsPairedWithItsReceive(t *testing.T) {
	sender, receiver := newRecorder(t, 0, 2, 10), newRecorder(t, 1, 2, 10)
	sender.call(callSend, 1000, 1500, func(r *trace.Record) { r.Peer, r.Tag, r.Bytes = 1, 5, 80 })
	sender.message(trace.KindSent, 31, 1100, 1)
	receiver.call(callRecv, 1200, 3000)
	receiver.wait(1300, 2800, 0)
	receiver.message(trace.KindReceived, 31, 2900, 0)
	r := join(2, receiver, sender) // in any order
	f := written(t, r)

	require.Len(t, f.events("X", "Send"), 1)
	send, receive := f.events("X", "Send")[0], f.events("X", "Recv")[0]
	assert.Equal(t, event{Ph: "X", Name: "Send", Cat: "message", PID: 0, TID: 7, TS: 0, Dur: 0.5,
		Args: map[string]any{"wait_us": 0.0, "peer": 1.0, "tag": 5.0, "bytes": 80.0}}, send)
	assert.Equal(t, event{Ph: "X", Name: "Recv", Cat: "message", PID: 1, TID: 7, TS: 0.2, Dur: 1.8,
		Args: map[string]any{"wait_us": 1.5, "waits_for": 0.0, "bytes": 0.0}}, receive)

	args := map[string]any{"source": 0.0, "dest": 1.0, "tag": 5.0, "comm": 2.0, "bytes": 80.0}
	assert.Equal(t, []event{{Ph: "s", Name: "message", Cat: "message", PID: 0, TID: 7, TS: 0.1, Args: args}}, f.events("s", "message"))
	assert.Equal(t, []event{{Ph: "f", Name: "message", Cat: "message", PID: 1, TID: 7, TS: 1.9, BP: "e", Args: args}}, f.events("f", "message"))
	moved := f.events("C", "bytes moved")
	require.Len(t, moved, 1)
	assert.Equal(t, map[string]any{"messages": 80.0, "one-sided": 0.0}, moved[0].Args)

	assert.Equal(t, "gormapy", f.OtherData.Producer)
	assert.Equal(t, 2, f.OtherData.Ranks)
	assert.Empty(t, f.OtherData.Absent)
	assert.EqualValues(t, 1000, f.OtherData.Start)
	assert.EqualValues(t, 2000, f.OtherData.End)
	assert.Len(t, f.events("M", "process_name"), 2)
}

func TestMessagesAreToldApartByTheirNumbers(t *testing.T) {
	sender, receiver := newRecorder(t, 0, 2, 10), newRecorder(t, 1, 2, 10)
	for i, number := range []int64{31, 32, 33} {
		sender.message(trace.KindSent, number, uint64(1000+i), 1)
	}
	receiver.message(trace.KindReceived, 32, 2000, 0) // out of order
	receiver.message(trace.KindReceived, 31, 2001, 0)
	f := written(t, join(2, sender, receiver))
	begins, ends := f.events("s", "message"), f.events("f", "message")
	require.Len(t, begins, 2)
	require.Len(t, ends, 2)
	for i, c := range []struct{ sent, received float64 }{{0, 1.001}, {0.001, 1}} {
		assert.Equal(t, begins[i].ID, ends[i].ID)
		assert.Equal(t, i, begins[i].ID)
		assert.Equal(t, c.sent, begins[i].TS)
		assert.Equal(t, c.received, ends[i].TS)
	}
	lost := f.events("i", "not received")
	require.Len(t, lost, 1)
	assert.Equal(t, 0.002, lost[0].TS)
	assert.Contains(t, f.OtherData.Summary, "3 messages of 240 B, of which 1 not received\n")
}

func TestMessageThatWasNotRecordedByItsSender(t *testing.T) {
	for name, number := range map[string]int64{"no number": 0, "number of an earlier recording": 99} {
		t.Run(name, func(t *testing.T) {
			sender, receiver := newRecorder(t, 0, 2, 10), newRecorder(t, 1, 2, 10)
			sender.message(trace.KindSent, 31, 1000, 1)
			receiver.message(trace.KindReceived, number, 2000, 0)
			f := written(t, join(2, sender, receiver))
			assert.Empty(t, f.events("s", "message"))
			assert.Len(t, f.events("i", "not received"), 1)
			unknown := f.events("i", "sender not recorded")
			require.Len(t, unknown, 1)
			assert.Equal(t, 1, unknown[0].PID)
		})
	}
}

func TestOneSidedOperationIsShownAtItsTarget(t *testing.T) {
	origin, target := newRecorder(t, 2, 3, 10), newRecorder(t, 1, 3, 10)
	origin.part.Define(trace.KindWin, 42, 9, 2, 1, []int{1, 2}) // rank 0 of the window is world rank 1
	put := func(r *trace.Record) {
		r.Kind, r.Object, r.Peer, r.Bytes, r.Disp, r.Tag = trace.KindCallWin, 42, 0, 16, 8, 24
	}
	origin.call(callPut, 1000, 2000, put)
	origin.call(callPut, 3000, 3500, put)
	origin.call(callPut, 4000, 4500, put, func(r *trace.Record) { r.Op = -1 }) // it failed
	origin.call(callFence, 5000, 6000, func(r *trace.Record) { r.Kind, r.Object = trace.KindCallWin, 42 })
	f := written(t, join(3, origin, target))

	var calls, accesses []event
	for _, e := range f.events("X", "Win.Put") {
		if e.Cat == "access" {
			accesses = append(accesses, e)
		} else {
			calls = append(calls, e)
		}
	}
	require.Len(t, calls, 3)
	assert.Equal(t, map[string]any{"wait_us": 0.0, "window": 9.0, "peer": 0.0, "bytes": 16.0, "disp": 8.0, "span": 24.0, "op": 0.0, "target": 1.0}, calls[0].Args)
	assert.Equal(t, true, calls[2].Args["failed"])
	require.Len(t, accesses, 2, "not the one that failed")
	for _, e := range accesses {
		assert.Equal(t, 1, e.PID)
		assert.Equal(t, windowThreads, e.TID, "one lane for a window and an origin")
		assert.Equal(t, map[string]any{"window": 9.0, "origin": 2.0, "disp": 8.0, "span": 24.0, "bytes": 16.0}, e.Args)
	}
	assert.Len(t, f.events("s", "operation"), 2)
	arrows := f.events("f", "operation")
	require.Len(t, arrows, 2)
	assert.Equal(t, 0.5, arrows[0].TS, "the arrow ends in the middle of the access")
	moved := f.events("C", "bytes moved")
	require.Len(t, moved, 2)
	assert.Equal(t, 32.0, moved[1].Args["one-sided"], "the sum so far")
	require.Len(t, f.events("X", "Win.Fence"), 1)
	assert.Equal(t, 9.0, f.events("X", "Win.Fence")[0].Args["window"])
	assert.Equal(t, 2, f.OtherData.Windows["9"].Flavor)
	assert.Equal(t, []int{1, 2}, f.OtherData.Windows["9"].Ranks)
	assert.Equal(t, []int{0}, f.OtherData.Absent)
}

func TestWindowOfManyRanksHasThemAll(t *testing.T) {
	var world []int
	for i := range 3*trace.RanksInRecord + 1 {
		world = append(world, 100-i)
	}
	r := newRecorder(t, 0, 1, 10)
	r.part.Define(trace.KindWin, 42, 9, 1, 0, world)
	assert.Equal(t, world, written(t, join(1, r)).OtherData.Windows["9"].Ranks)
}

func TestWindowIsThereOnceForAllItsRanks(t *testing.T) {
	a, b := newRecorder(t, 0, 2, 10), newRecorder(t, 1, 2, 10)
	a.part.Define(trace.KindWin, 42, 9, 1, 0, []int{0, 1})
	b.part.Define(trace.KindWin, 17, 9, 1, 1, []int{0, 1})
	assert.Len(t, join(2, a, b).windows, 1)
}

// The clocks of two hosts are a second apart, and one is faster by a thousandth.
func TestClocksOfSeveralHosts(t *testing.T) {
	here, there := newRecorder(t, 0, 2, 10), newRecorder(t, 1, 2, 10)
	here.call(callSend, 2_000_000, 3_000_000)
	h := there.part.Head
	h.Clock, h.Tick0, h.Nano0 = trace.ClockTSC, 5000, 1_000_000_000
	h.Tick1, h.Nano1 = 105_000, 1_100_000_000
	there.call(callRecv, 55_000, 105_000)
	r := NewOf([]Source{{Part: here.part, Host: "a"}, {Part: there.part, Host: "b", Shift: [2]int64{-998_000_000, -998_100_000}}}, 2, 0)
	f := written(t, r)
	receive := f.events("X", "Recv")[0]
	assert.InDelta(t, 49_950, receive.TS, 1, "the middle of 100 ms that lasted 99.9 ms here, and the send began with the recording")
	assert.InDelta(t, 49_950, receive.Dur, 1)
}

// Three hosts that have compared their clocks badly. Ranks 0 and 1 are on the first.
func TestNoMessageIsReceivedBeforeItWasSent(t *testing.T) {
	const lag = 500 // of a message, at least
	for _, errors := range [][]int64{{0, 0, 0}, {0, 5000, 0}, {0, -5000, 0}, {0, 3000, -9000}, {0, 400, -400}, {7000, -1, 2}} {
		var sources []Source
		clock := func(rank int) int64 { return errors[max(0, rank-1)] }
		number := int64(0)
		ranks := make([]*recorder, 4)
		for i := range ranks {
			ranks[i] = newRecorder(t, i, 4, 100)
		}
		for i := range ranks {
			begin := int64(100_000 + 1000*i)
			ranks[i].call(callSend, uint64(begin+clock(i)), uint64(begin+clock(i)+10))
			for j := range ranks {
				if i != j {
					number++
					ranks[i].message(trace.KindSent, number, uint64(begin+clock(i)), int32(j))
					ranks[j].message(trace.KindReceived, number, uint64(begin+clock(j)+lag), int32(i))
				}
			}
		}
		for i, r := range ranks {
			sources = append(sources, Source{Part: r.part, Host: []string{"", "", "a", "b"}[i]})
		}
		r := NewOf(sources, 4, 0)
		require.Len(t, r.messages, 12)
		for _, m := range r.messages {
			assert.GreaterOrEqual(t, m.received, m.sent, "%v", errors)
			assert.LessOrEqual(t, m.received, m.sent+2*lag, "%v", errors)
		}
		for _, c := range r.calls {
			assert.EqualValues(t, 10, c.end-c.begin)
			assert.InDelta(t, 1000*c.rank, c.begin-r.calls[0].begin, lag, "%v", errors)
		}
		assert.InDelta(t, 100_000+errors[0], r.start, lag, "the first host keeps its times")
	}
}

// Clocks that have run apart so that no correction fits leave the times as they are.
func TestClocksThatRunApart(t *testing.T) {
	a, b := newRecorder(t, 0, 2, 10), newRecorder(t, 1, 2, 10)
	a.message(trace.KindSent, 1, 1000, 1)
	b.message(trace.KindReceived, 1, 900, 0)
	b.message(trace.KindSent, 2, 5000, 0)
	a.message(trace.KindReceived, 2, 4900, 1)
	r := NewOf([]Source{{Part: a.part}, {Part: b.part, Host: "b"}}, 2, 0)
	require.Len(t, r.messages, 2)
	for _, m := range r.messages {
		assert.EqualValues(t, -100, m.received-m.sent)
	}
}

func TestTimesBeginAtTheOrigin(t *testing.T) {
	a, b := newRecorder(t, 0, 2, 10), newRecorder(t, 1, 2, 10)
	a.call(callSend, 5000, 6000)
	a.message(trace.KindSent, 31, 5500, 1)
	b.call(callRecv, 7000, 9000)
	sources := []Source{{Part: a.part}, {Part: b.part}}
	for origin, start := range map[int64]int64{0: 5000, 2000: 2000, 8000: 5000} { // no event is before time 0
		f := written(t, NewOf(sources, 2, origin))
		assert.EqualValues(t, start, f.OtherData.Start)
		assert.EqualValues(t, 9000-start, f.OtherData.End)
		assert.Equal(t, float64(5000-start)/1000, f.events("X", "Send")[0].TS)
		assert.Equal(t, float64(7000-start)/1000, f.events("X", "Recv")[0].TS)
		assert.Equal(t, float64(5500-start)/1000, f.events("i", "not received")[0].TS)
	}
}

func TestCallThatDidNotEndLastsUntilTheLastEvent(t *testing.T) {
	dead, other := newRecorder(t, 0, 2, 10), newRecorder(t, 1, 2, 10)
	dead.call(callRecv, 1000, 0, func(r *trace.Record) { r.State = trace.StateOpen })
	dead.add(trace.Record{Kind: trace.KindCall, Begin: 1 << 60}) // it was never written
	other.call(callSend, 2000, 4_001_000)
	f := written(t, join(2, dead, other))
	calls := f.events("X", "Recv")
	require.Len(t, calls, 1)
	assert.Equal(t, 4000.0, calls[0].Dur)
	assert.Equal(t, true, calls[0].Args["unfinished"])
	assert.Contains(t, f.OtherData.Summary, "rank 0 was in Recv when it ended, for 4.000 ms\n")
}

func TestWaitsBelongToTheCallsAroundThem(t *testing.T) {
	r := newRecorder(t, 0, 4, 10)
	r.wait(500, 600, 1) // before any call
	r.call(callRecv, 3000, 4000)
	r.call(callRecv, 1000, 2000)
	r.wait(1100, 1200, 2)
	r.wait(1300, 1600, 3)
	r.wait(2100, 2900, 1) // between two calls
	r.wait(3100, 3200, -1)
	calls := written(t, join(4, r)).events("X", "Recv")
	require.Len(t, calls, 2)
	assert.Equal(t, []any{0.4, 3.0}, []any{calls[0].Args["wait_us"], calls[0].Args["waits_for"]}, "that of the longest wait")
	assert.Equal(t, []any{0.1, nil}, []any{calls[1].Args["wait_us"], calls[1].Args["waits_for"]}, "any rank")
}

func TestRecordsWithoutRoomAreCounted(t *testing.T) {
	r := newRecorder(t, 0, 1, 2)
	for i := range uint64(5) {
		r.call(callSend, 1000+10*i, 1005+10*i)
	}
	f := written(t, join(1, r))
	assert.Len(t, f.events("X", "Send"), 2)
	assert.Equal(t, map[string]int{"0": 3}, f.OtherData.Dropped)
	assert.Contains(t, f.OtherData.Summary, "rank 0: the last 3 events found no room")
}

func TestSummaryCountsCallsByName(t *testing.T) {
	a, b := newRecorder(t, 0, 2, 10), newRecorder(t, 1, 2, 10)
	a.call(callSend, 0, 1_000_000, func(r *trace.Record) { r.Bytes = 100 })
	a.call(callSend, 1_000_000, 4_000_000, func(r *trace.Record) { r.Bytes = 20480 })
	b.call(callRecv, 0, 2_000_000)
	b.wait(500_000, 1_500_000, 0)
	lines := strings.Split(join(2, a, b).Summary(), "\n")
	require.Len(t, lines, 6)
	assert.Equal(t, "what 2 ranks did in 0.004000 s: milliseconds in MPI calls", lines[0])
	for i, want := range []string{
		"call calls bytes total waiting longest rank 0 rank 1",
		"Send 2 20.1 KiB 4.000 0.000 3.000 4.000 0.000",
		"Recv 1 0 B 2.000 1.000 2.000 0.000 2.000",
		"all calls 3 20.1 KiB 6.000 1.000 3.000 4.000 2.000",
	} {
		assert.Equal(t, want, strings.Join(strings.Fields(lines[i+1]), " "))
	}
}

func TestSummaryOfManyRanksHasTheLeastAndTheMost(t *testing.T) {
	const ranks = maxColumns + 1
	var all []*recorder
	for rank := range ranks {
		r := newRecorder(t, rank, ranks, 2)
		r.call(callSend, 0, uint64(rank+1)*1_000_000)
		all = append(all, r)
	}
	lines := strings.Split(join(ranks, all...).Summary(), "\n")
	assert.Equal(t, "call calls bytes total waiting longest least most", strings.Join(strings.Fields(lines[1]), " "))
	assert.Equal(t, "Send 9 0 B 45.000 0.000 9.000 1.000 9.000", strings.Join(strings.Fields(lines[2]), " "))
}

func TestEmptyRecordingIsAFile(t *testing.T) {
	f := written(t, New(nil, 2))
	assert.Equal(t, 2, f.OtherData.Ranks)
	assert.Equal(t, []int{0, 1}, f.OtherData.Absent)
	assert.Contains(t, f.OtherData.Summary, "rank 1 recorded nothing")
}

// save writes a part to a file, as the launcher does.
func save(t testing.TB, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

func TestJoinWritesAFileForPerfetto(t *testing.T) {
	dir := t.TempDir()
	a, b := newRecorder(t, 0, 2, 10), newRecorder(t, 1, 2, 10)
	a.message(trace.KindSent, 31, 1000, 1)
	b.message(trace.KindReceived, 31, 2000, 0)
	parts := save(t, dir, "a", a.part.Bytes()) + "\n" + save(t, dir, "b", b.part.Bytes())
	path := filepath.Join(dir, "trace.json")
	require.NoError(t, Join(parts, path, 0))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var f file
	require.NoError(t, json.Unmarshal(data, &f))
	assert.Len(t, f.events("s", "message"), 1)
	assert.Len(t, f.events("f", "message"), 1)
}

func TestMalformedRecordingIsAnError(t *testing.T) {
	dir := t.TempDir()
	whole := newRecorder(t, 0, 1, 10).part.Bytes()
	// changed returns the part with its header changed.
	changed := func(change func(h *trace.Head)) []byte {
		data := bytes.Clone(whole)
		change((*trace.Head)(unsafe.Pointer(&data[0])))
		return data
	}
	for name, data := range map[string][]byte{
		"empty":          {},
		"cut off":        whole[:trace.RecordsAt-1],
		"no part at all": bytes.Repeat([]byte("nonsense"), trace.RecordsAt),
		"other version":  changed(func(h *trace.Head) { h.Version++ }),
		"long names":     changed(func(h *trace.Head) { h.NameLen = trace.RecordsAt }),
	} {
		t.Run(name, func(t *testing.T) {
			path := save(t, dir, "part", data)
			out := filepath.Join(dir, "trace.json")
			require.ErrorContains(t, Join(path, out, 0), path+": ")
			assert.NoFileExists(t, out)
		})
	}
	require.ErrorIs(t, Join(filepath.Join(dir, "missing"), filepath.Join(dir, "trace.json"), 0), os.ErrNotExist)
	require.ErrorIs(t, New(nil, 1).WriteFile(filepath.Join(dir, "missing", "trace.json")), os.ErrNotExist)
}

func TestHeaderMayPromiseMoreThanFollows(t *testing.T) {
	r := newRecorder(t, 0, 1, 10)
	for i := range uint64(3) {
		r.call(callSend, 1000+i, 1001+i)
	}
	cut := bytes.Clone(r.part.Bytes())
	cut = cut[:len(cut)-trace.RecordBytes-1] // in the middle of the second record
	p, err := trace.ReadPart(cut)
	require.NoError(t, err)
	f := written(t, New([]*trace.Part{p}, 1))
	assert.Len(t, f.events("X", "Send"), 1)
}
