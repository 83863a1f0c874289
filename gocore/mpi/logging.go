package mpi

import (
	"fmt"
	"os"
	"runtime"

	"gormapy/gocore/log"
	"gormapy/gocore/settings"
)

// Log messages of this package, for GORMAPY_LOG.

// logPlace logs which job Init has joined.
func (n *process) logPlace() {
	log.SetRank(n.rank)
	if n.rank == 0 {
		for _, problem := range settings.Problems() {
			log.Warnf("settings", "%s", problem)
		}
	}
	if n.place.Launcher == "none" {
		log.Infof("boot", "no launcher: this process is a job of one rank")
	} else {
		log.Infof("boot", "rank %d of %d, of a job started by %s", n.rank, n.size, n.place.Launcher)
	}
	if n.place.Why != "" {
		log.Infof("boot", "not a rank of the job whose environment it has: %s", n.place.Why)
	}
	log.Debugf("boot", "claimed rank %d of job %s as process %d", n.rank, n.seg.ID(), os.Getpid())
	log.Debugf("boot", "go %s on %d cores, up to %d threads of it at once", runtime.Version(), runtime.NumCPU(), runtime.GOMAXPROCS(0))
}

// logTransports logs how many ranks each transport reaches.
func (n *process) logTransports() {
	if !log.Debugging() {
		return
	}
	for name, ranks := range n.eng.Reach() {
		log.Debugf("fabric", "transport %s leads to %d of %d ranks", name, ranks, n.size)
	}
	if !settings.OneCopy.On() {
		log.Debugf("fabric", "no copies straight between the memories of ranks: GORMAPY_ONE_COPY=0")
	}
}

// logWindow logs the paths to the targets of a new window.
func (win *Window) logWindow() {
	if !log.Debugging() {
		return
	}
	paths := map[string]int{}
	for r := range win.Size {
		paths[win.Path(r)]++
	}
	text := ""
	for _, path := range []string{"direct", "copy", "rdma", "message"} {
		if n := paths[path]; n > 0 {
			text += fmt.Sprintf(", %s to %d", path, n)
		}
	}
	t := win.Desc.Target(win.Rank)
	log.Debugf("rma", "window %d made by %s of %d ranks, %d bytes here in units of %d%s", win.ID, win.Flavor, win.Size, t.Bytes, t.Unit, text)
	if paths["message"] > 0 {
		for r, world := range win.World {
			if why := proc.eng.Refusal(world); why != "" {
				log.Debugf("rma", "window %d: rank %d's memory can't be copied from here: %s", win.ID, r, why)
			}
		}
	}
}
