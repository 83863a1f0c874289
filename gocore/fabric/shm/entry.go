package shm

import (
	"fmt"
	"os"

	"gormapy/gocore/fabric"
	"gormapy/gocore/settings"
	"gormapy/gocore/sys"
)

// Entry is that of package registry.
var Entry = fabric.Entry{
	Name:     "shm",
	What:     func() string { return "shared memory, to ranks on this host, " + copying() },
	OneSided: "loads and stores, or copies by the kernel",
	Settings: []*settings.Setting{settings.OneCopy},
	Problem:  fabric.Usable,
}

// copying says whether ranks can copy straight between their memories here, as
// far as this process can tell by itself; PeerInfo knows it of one peer.
func copying() string {
	switch why := sys.CopyRefusal(os.Getpid()); {
	case !settings.OneCopy.On():
		return "which can't copy straight between their memories: GORMAPY_ONE_COPY=0"
	case why != "":
		return "which can't copy straight between their memories: " + why
	}
	switch scope := sys.PtraceScope(); scope {
	case -1, 0:
		return "which the kernel lets copy straight between their memories"
	case 1:
		return "which may copy straight between their memories (they allow it to each other, as Yama's ptrace_scope 1 asks for)"
	default:
		return fmt.Sprintf("which can copy straight between their memories for administrators only: Yama's ptrace_scope is %d", scope)
	}
}
