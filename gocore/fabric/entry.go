package fabric

import "gormapy/gocore/settings"

// Entry is what the program knows of a transport: one line of package registry. Each
// transport's package declares its own, and what lists transports, for people or for
// programs, is made of these.
type Entry struct {
	// Name is the transport's, its package's, and what GORMAPY_FABRIC chooses it by.
	Name string
	// What says what it is in a few words, and of this machine.
	What func() string
	// Needs and OneSided are its cells in the table of docs/transports.md.
	Needs, OneSided string
	// Device says that it needs hardware, which most machines don't have: the tests on
	// all networks leave it out.
	Device bool
	// Settings are those that only it reads.
	Settings []*settings.Setting
	// Open makes the transport of a rank. Nil: ranks that share memory have it anyway,
	// since the engine makes it of the job's segment.
	Open func(dir Directory) (Transport, error)
	// Problem says why Open would fail here, "" if it would not.
	Problem func() string
	// Between names the network that the transport would use between this host and others.
	// Hosts on which it has the same name reach each other by it, better than by TCP. It
	// returns "" if there is no such network here, and is nil if there never is.
	Between func() string
}

// Network reports whether the transport is opened because it is asked for.
func (e *Entry) Network() bool { return e.Open != nil }

// Usable is Problem for a transport that can be used everywhere.
func Usable() string { return "" }
