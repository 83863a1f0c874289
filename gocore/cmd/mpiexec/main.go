// Command mpiexec runs programs as the ranks of an MPI job on this host. Package
// launch implements it. It may import launch.
package main

import (
	"os"
	"runtime"

	"gormapy/gocore/launch"
)

// The kernel kills the ranks when the thread that started them ends, so the main thread,
// which lives as long as the process, has to start them.
func init() { runtime.LockOSThread() }

func main() { os.Exit(launch.Main(os.Args)) }
