package sockets

import (
	"sync"
	"time"
)

// making counts the sockets that are made and not yet listed, and the forks that have
// begun. One of the two is 0 while a socket is made or the process forks: otherwise the
// child would inherit a socket that it does not know.
//
// Forks do not wait for each other: one may hold a lock that another one needs to end.
var making struct {
	sync.Mutex
	sockets, forks int
}

// changed is broadcast when a number of making goes down.
var changed = sync.NewCond(&making.Mutex)

// BeforeFork waits until no socket is being made, which takes microseconds, and lets none be
// made until AfterFork. It returns the number of open ones.
func BeforeFork() int {
	making.Lock()
	making.forks++
	for making.sockets > 0 {
		changed.Wait()
	}
	making.Unlock()
	return len(Open())
}

// AfterFork is to be called once for each BeforeFork, in the parent.
func AfterFork() {
	making.Lock()
	defer making.Unlock()
	making.forks--
	changed.Broadcast()
}

// forkLimit is how long a socket waits for forks. A fork that takes longer waits for something that
// may depend on the socket: then a child that keeps it is the smaller harm.
const forkLimit = 2 * time.Second

// begin waits until the process does not fork. Until the function that it returns is called,
// which may be done more than once, a fork waits.
func begin() (listed func()) {
	making.Lock()
	defer making.Unlock()
	if making.forks > 0 {
		over := false
		defer time.AfterFunc(forkLimit, func() {
			making.Lock()
			defer making.Unlock()
			over = true
			changed.Broadcast()
		}).Stop()
		for making.forks > 0 && !over {
			changed.Wait()
		}
	}
	making.sockets++
	return sync.OnceFunc(func() {
		making.Lock()
		defer making.Unlock()
		making.sockets--
		changed.Broadcast()
	})
}
