package tcp

import "gormapy/gocore/fabric"

// Entry is that of package registry.
var Entry = fabric.Entry{
	Name:     "tcp",
	What:     func() string { return "sockets between processes, on the loopback interface" },
	OneSided: "the target's progress engine serves them; connections are authenticated with a secret of the job",
	Open:     func(dir fabric.Directory) (fabric.Transport, error) { return New(dir, Options{}) },
	Problem:  fabric.Usable,
}
