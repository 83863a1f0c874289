package trace

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func recording(t testing.TB, n int) *Part {
	p, err := NewPart(n)
	require.NoError(t, err)
	require.NoError(t, Start(p, 1, 2, 3, "Send\tmessage\nRecv\tmessage"))
	t.Cleanup(func() {
		Stop()
		p.Close()
	})
	return p
}

func TestPartIsReadAsItWasWritten(t *testing.T) {
	p := recording(t, 100)
	require.Same(t, p, On())
	number := p.Sent(7, 1, 5, 80)
	p.Received(number, 7, 0, 5, 80)
	p.Waited(p.Now(), 3, 1, 5)
	p.Define(KindComm, 42, 7, 0, 1, make([]int, RanksInRecord+1))
	require.Same(t, p, Stop())
	require.Nil(t, On())
	assert.Greater(t, p.Head.Tick1, p.Head.Tick0)

	got, err := ReadPart(append([]byte(nil), p.Bytes()...))
	require.NoError(t, err)
	assert.True(t, got.Used())
	assert.Equal(t, []string{"Send\tmessage", "Recv\tmessage"}, got.Names())
	records := got.Records()
	require.Len(t, records, 6)
	kinds := []Kind{}
	for _, r := range records {
		assert.EqualValues(t, StateDone, r.State)
		kinds = append(kinds, r.Kind)
	}
	assert.Equal(t, []Kind{KindSent, KindReceived, KindWait, KindComm, KindRanks, KindRanks}, kinds)
	assert.Equal(t, records[0].Disp, records[1].Disp)
	assert.EqualValues(t, 80, records[1].Bytes)
	assert.Zero(t, got.Dropped())
}

func TestFullPartCountsDroppedRecords(t *testing.T) {
	p := recording(t, 4)
	for range 10 {
		p.Sent(7, 1, 5, 80)
	}
	p.Define(KindComm, 42, 7, 0, 1, make([]int, 3)) // two records
	assert.Len(t, p.Records(), 4)
	assert.EqualValues(t, 8, p.Dropped())
}

func TestThreadsWriteRecordsOfTheirOwn(t *testing.T) {
	const threads, each = 8, 1000
	p := recording(t, threads*each)
	var wg sync.WaitGroup
	for i := range threads {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range each {
				p.Received(0, 7, i, 5, i)
			}
		}()
	}
	wg.Wait()
	counts := map[int32]int{}
	for _, r := range p.Records() {
		require.EqualValues(t, StateDone, r.State)
		require.EqualValues(t, r.Peer, r.Bytes)
		counts[r.Peer]++
	}
	for i := range int32(threads) {
		assert.Equal(t, each, counts[i])
	}
}

func TestNonsenseIsNoPart(t *testing.T) {
	for _, mem := range [][]byte{nil, make([]byte, 10), make([]byte, recordsAt), make([]byte, recordsAt+100)} {
		_, err := ReadPart(mem)
		assert.Error(t, err)
	}
	p := recording(t, 1)
	broken := append([]byte(nil), p.Bytes()...)
	q, err := view(broken)
	require.NoError(t, err)
	q.Head.NameLen = 1 << 30
	_, err = ReadPart(broken)
	assert.Error(t, err)
	// A header that promises more records than follow.
	q.Head.NameLen, q.Head.Next, q.Head.Capacity = 0, 1000, 1000
	q, err = ReadPart(broken)
	require.NoError(t, err)
	assert.Empty(t, q.Records())
}

func TestCapacityIsASetting(t *testing.T) {
	n, err := Capacity()
	require.NoError(t, err)
	assert.Equal(t, 1_000_000, n)
	for _, bad := range []string{"0", "-1", "many", "99999999999"} {
		t.Setenv("GORMAPY_TRACE_EVENTS", bad)
		_, err = Capacity()
		assert.ErrorContains(t, err, bad)
	}
}

func TestOwnPartsAreReused(t *testing.T) {
	var parts []*Part
	for range 5 {
		p, err := Own(100)
		require.NoError(t, err)
		require.NoError(t, Start(p, 0, 1, 1, ""))
		p.Sent(1, 2, 3, 4)
		require.Same(t, p, Stop())
		assert.Len(t, p.Records(), 1)
		GiveBack(p)
		parts = append(parts, p)
	}
	assert.Same(t, parts[0], parts[2])
	assert.Same(t, parts[1], parts[3])
	for _, p := range parts[:2] {
		p.Close()
	}
	state.spare = nil
}

func TestPairsAgree(t *testing.T) {
	p := recording(t, 1)
	tick, nano := p.Pair()
	later, then := p.Pair()
	assert.Greater(t, later, tick)
	assert.Greater(t, then, nano)
}

// BenchmarkEvent measures a record, with the faults on its pages.
func BenchmarkEvent(b *testing.B) {
	p := recording(b, max(b.N, 1))
	b.ResetTimer()
	for range b.N {
		p.Received(1, 7, 1, 5, 80)
	}
}

// BenchmarkEventAgain measures a record on populated pages.
func BenchmarkEventAgain(b *testing.B) {
	p := recording(b, 1<<14)
	for i := range b.N {
		if i&(1<<14-1) == 0 {
			p.Head.Next = 0
		}
		p.Received(1, 7, 1, 5, 80)
	}
}

func BenchmarkNow(b *testing.B) {
	p := recording(b, 1)
	for range b.N {
		p.Now()
	}
}

func BenchmarkOff(b *testing.B) {
	n := 0
	for range b.N {
		if On() != nil {
			n++
		}
	}
	assert.Zero(b, n)
}
