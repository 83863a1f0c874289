package mpi

import (
	"fmt"
	"os"
	"strings"

	"gormapy/gocore/job"
	"gormapy/gocore/sys/atom"
)

// waiting is a wait of this process, for programs that show people what the
// ranks of a job wait for.
type waiting struct {
	Call    string  `json:"call"`
	Peer    int     `json:"peer"` // world rank, -1 any, -2 nobody in particular
	Tag     int     `json:"tag"`  // -1: none
	On      string  `json:"on"`   // the communicator or window
	Context uint64  `json:"context"`
	Seconds float64 `json:"seconds"`
	Main    bool    `json:"main"` // it is the process's main thread that waits
	// Thread is the kernel's number of the thread.
	Thread int `json:"thread"`
	// Members are the world ranks of the communicator or window, nil if not known.
	Members []int `json:"members"`
	// Holders are the world ranks that hold the lock, if it is one that is waited for.
	Holders []int `json:"holders"`
	// All says that the call needs all members to come to it.
	All bool `json:"all"`
}

// Waits is a JSON object: what the threads of this process wait for just now, and
// how often something has moved here; "null" before Init. A wait that goes on
// is not listed for a moment now and then, when its thread looks for signals.
func Waits() string {
	if w == nil {
		return "null"
	}
	list := []waiting{}
	for i := range w.me.Waits {
		rec := &w.me.Waits[i]
		seq := atom.Load32(&rec.Seq)
		if seq&1 == 0 {
			continue
		}
		one := *rec
		if !atom.CAS32(&rec.Seq, seq, seq) { // not a load, which could be made before those of the record
			continue // it ended meanwhile
		}
		list = append(list, describeWait(&one))
	}
	return object(map[string]any{"moved": atom.Load32(&w.me.Moved), "waits": list, "pid": os.Getpid()})
}

func describeWait(rec *job.WaitRecord) (one waiting) {
	call := job.Call(rec.Call)
	info := strings.TrimRight(string(rec.Info[:]), "\x00")
	one = waiting{Call: call.String(), Peer: int(rec.Peer), Tag: int(rec.Tag), Context: rec.Ctx, Thread: int(rec.Thread),
		Seconds: float64(job.Now()-rec.Since) / 1e9, Main: int(rec.Thread) == os.Getpid()}
	// What it is about may be freed at this moment by the thread that waited.
	defer func() { _ = recover() }()
	switch call {
	case job.CallFence, job.CallLock, job.CallFlush, job.CallUnlock, job.CallWinFree, job.CallStart, job.CallComplete, job.CallExposed:
		one.describeWindow(call, uint64(rec.Ctx))
	case job.CallSend, job.CallRecv, job.CallProbe, job.CallWait:
		if info != "" { // a request on a window
			one.describeWindow(call, rec.Ctx)
			break
		}
		one.describeComm(func(c *Comm) bool { return uint64(c.pt.Ctx) == rec.Ctx })
	case job.CallBarrier, job.CallCollective, job.CallCommCreate, job.CallWinCreate:
		one.All = true
		if call == job.CallCollective && info != "" {
			one.Call = info
		}
		if call == job.CallBarrier || info != "" {
			one.describeComm(func(c *Comm) bool { return uint64(c.ctx) == rec.Ctx })
		}
	case job.CallReset, job.CallFinalize:
		one.All = true
	}
	return one
}

func (one *waiting) describeComm(is func(c *Comm) bool) {
	comms.each(func(h int64, c *Comm) {
		if one.Members != nil || c.pt == nil || !is(c) {
			return
		}
		one.Members = append(one.Members, c.group.ranks...)
		switch h {
		case CommWorld:
			one.On = "COMM_WORLD"
		case CommSelf:
			one.On = "COMM_SELF"
		default:
			one.On = fmt.Sprintf("communicator of %d", c.size)
		}
	})
}

func (one *waiting) describeWindow(call job.Call, id uint64) {
	one.On = fmt.Sprintf("window %d", id)
	one.All = call == job.CallFence || call == job.CallWinFree
	wins.each(func(_ int64, win *Window) {
		if uint64(win.ID) != id {
			return
		}
		one.Members = append(one.Members, win.World...)
		if call != job.CallLock {
			return
		}
		for r, world := range win.World {
			if world != one.Peer {
				continue
			}
			for _, holder := range win.Holders(r) {
				one.Holders = append(one.Holders, win.World[holder])
			}
		}
	})
}
