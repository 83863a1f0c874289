package mpi

import (
	"os"
	"sync/atomic"

	"gormapy/gocore/home"
	"gormapy/gocore/log"
	"gormapy/gocore/monitor"
	"gormapy/gocore/settings"
)

// # Jobs of other launchers
//
// Package monitor does for them what gormapy's mpiexec does for its own.

// repeated is set if another rank has failed in the same place as this one.
var repeated atomic.Bool

// watchOver starts the monitor of a rank that another launcher has started; at is where the
// mpiexec is that has handed over to that launcher, nil if there is none. It must be called
// before the engine starts.
func (n *process) watchOver(at *home.Where) {
	o := monitor.Options{Segment: n.seg, Rank: n.rank, Abort: n.place.Abort, Timeout: settings.Timeout.Seconds()}
	switch {
	case n.place.Launcher == "mpiexec":
		return
	case n.place.Launcher != "none":
		if o.Home = at; at != nil {
			o.Timeout = at.Timeout
		}
		n.place.Environ = append(n.place.Environ, home.Names...)
	}
	if settings.Timeout.Given() && o.Timeout == 0 {
		log.Errorf("mpi", "%s is %q, which is no positive number of seconds: there is no time-out", settings.Timeout.Name, os.Getenv(settings.Timeout.Name))
	}
	o.Unmanaged = n.place.Unmanaged
	n.monitor = monitor.Start(o)
	n.eng.OnEnd(n.monitor.PeerEnded)
}

// fails records that this rank is about to end the job with an exit status, and tells; how is a
// clause. gormapy's launcher sees it, and a job of one has nobody to tell.
func (n *process) fails(how string, code int) {
	if n.place.Abort != nil {
		// Before the others see that this rank has ended: their calls don't fail for that.
		first := n.seg.Abort(n.rank, code)
		n.monitor.Fails(how, code, first, repeated.Load())
	}
}

// leaves tells that this rank ends well.
func (n *process) leaves() {
	if n.place.Abort != nil && state.Load() != stateFinalized {
		n.seg.Exited(n.rank, 0) // without finalizing, which is no failure
	}
	n.monitor.Ends()
}
