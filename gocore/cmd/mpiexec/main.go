// Command mpiexec runs a program as the ranks of an MPI job on this host. See
// package launch. It may import launch.
package main

import (
	"os"
	"runtime"

	"gormapy/gocore/launch"
)

// The ranks die with the thread that started them, so that has to be the one
// that lives as long as the process.
func init() { runtime.LockOSThread() }

func main() { os.Exit(launch.Main(os.Args)) }
