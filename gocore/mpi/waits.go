package mpi

import (
	"fmt"
	"os"
	"strings"

	"gormapy/gocore/job"
	"gormapy/gocore/sys/atom"
)

// waiting describes a wait of this process, for programs that show what the ranks of
// a job wait for.
type waiting struct {
	Call    string  `json:"call"`
	Peer    int     `json:"peer"` // world rank, -1 any, -2 no particular one
	Tag     int     `json:"tag"`  // -1: none
	On      string  `json:"on"`   // the communicator or window
	Context uint64  `json:"context"`
	Seconds float64 `json:"seconds"`
	Main    bool    `json:"main"` // whether the process's main thread waits
	// Thread is the kernel's number of the thread.
	Thread int `json:"thread"`
	// Members are the world ranks of the communicator or window, nil if not known.
	Members []int `json:"members"`
	// Holders are the world ranks that hold the lock, in a wait for a lock.
	Holders []int `json:"holders"`
	// All reports whether the call completes only when all members have made it.
	All bool `json:"all"`
}

// Waits returns a JSON object: what the threads of this process wait for now, and a
// count of the progress made here; "null" before Init. A wait is missing for a moment
// from time to time, while its thread checks for signals.
func Waits() string {
	if proc == nil {
		return "null"
	}
	list := []waiting{}
	for i := range proc.me.Waits {
		rec := &proc.me.Waits[i]
		seq := atom.Load32(&rec.Seq)
		if seq&1 == 0 {
			continue
		}
		one := *rec
		if !atom.CAS32(&rec.Seq, seq, seq) { // not a load, which could be made before those of the record
			continue // it has ended
		}
		if wait := describeWait(&one); wait.Peer < proc.size && !spans(wait.Members) { // else it may end, whatever the ranks of this job do
			list = append(list, wait)
		}
	}
	return object(map[string]any{"moved": atom.Load32(&proc.me.Moved), "waits": list, "pid": os.Getpid()})
}

func describeWait(rec *job.WaitRecord) (one waiting) {
	call := job.Call(rec.Call)
	info := strings.TrimRight(string(rec.Info[:]), "\x00")
	one = waiting{Call: call.String(), Peer: int(rec.Peer), Tag: int(rec.Tag), Context: rec.Ctx, Thread: int(rec.Thread),
		Seconds: float64(job.Now()-rec.Since) / 1e9, Main: int(rec.Thread) == os.Getpid()}
	// Another thread may free the object of the wait at this moment.
	defer func() { _ = recover() }()
	switch call {
	case job.CallFence, job.CallLock, job.CallFlush, job.CallUnlock, job.CallWinFree, job.CallStart, job.CallComplete, job.CallExposed:
		one.describeWindow(call, uint64(rec.Ctx))
	case job.CallSend, job.CallRecv, job.CallProbe, job.CallWait, job.CallRecvObject:
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
		one.Members = append(one.Members, c.union()...)
		switch h {
		case CommWorld:
			one.On = "COMM_WORLD"
		case CommSelf:
			one.On = "COMM_SELF"
		default:
			if one.On = fmt.Sprintf("communicator of %d", c.size); c.remote != nil {
				one.On = fmt.Sprintf("intercommunicator of %d and %d", c.size, c.peers())
				one.All = one.All && one.Peer < 0 // most collectives do not need all ranks of both groups
			}
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
