package mpi

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/errs"
	"gormapy/gocore/rma"
	"gormapy/gocore/trace"
)

func TestRecordingHasTheMessagesOfThisProcess(t *testing.T) {
	assert.Nil(t, TraceAddress())
	succeeds(t, TraceStop()) // nothing to stop
	t.Setenv("GORMAPY_TRACE_EVENTS", "100")
	succeeds(t, TraceStart("Send\tmessage"))
	assert.NotNil(t, TraceAddress())
	fails(t, errs.Other, "a recording is on already", TraceStart("Send\tmessage"))
	p := trace.On()

	send := isend(t, KindSend, 5, 1, 2)
	receive, _ := irecv(t, 5, 2)
	done(t, receive, 0)
	done(t, send, 0)
	win := newWindow(t, rma.FlavorAllocate)
	TraceDefine(CommSelf, false)
	TraceDefine(win, true)
	TraceDefine(noHandle, true) // there is nothing to define
	succeeds(t, TraceStop())
	assert.Nil(t, TraceAddress())

	kinds := map[trace.Kind][]trace.Record{}
	for _, r := range p.Records() {
		kinds[r.Kind] = append(kinds[r.Kind], r)
	}
	require.Len(t, kinds[trace.KindSent], 1)
	require.Len(t, kinds[trace.KindReceived], 1)
	sent, received := kinds[trace.KindSent][0], kinds[trace.KindReceived][0]
	assert.Equal(t, sent.Disp, received.Disp, "the number of the message")
	assert.EqualValues(t, 8, received.Bytes)
	assert.EqualValues(t, 5, received.Tag)
	require.Len(t, kinds[trace.KindComm], 1)
	require.Len(t, kinds[trace.KindWin], 1)
	assert.EqualValues(t, rma.FlavorAllocate, kinds[trace.KindWin][0].Tag)

	dir := t.TempDir()
	parts := filepath.Join(dir, "part")
	require.NoError(t, os.WriteFile(parts, p.Bytes(), 0o600))
	require.Empty(t, TraceWrite(parts, filepath.Join(dir, "trace.json"), 0))
	assert.FileExists(t, filepath.Join(dir, "trace.json"))
	assert.Contains(t, TraceWrite(filepath.Join(dir, "missing"), filepath.Join(dir, "other.json"), 0), "no such file")
}

func TestRecordingNeedsACapacity(t *testing.T) {
	t.Setenv("GORMAPY_TRACE_EVENTS", "none")
	fails(t, errs.Other, `GORMAPY_TRACE_EVENTS is "none"`, TraceStart(""))
	assert.Nil(t, TraceAddress())
	yes, code := TraceJob("")
	succeeds(t, code)
	assert.False(t, yes, "no launcher records")
}
