package mpi

import (
	"fmt"
	"os"
	"strings"
	"unsafe"

	"gormapy/gocore/arena"
	"gormapy/gocore/check/events"
	"gormapy/gocore/errs"
)

// CheckJob begins to write to the stream that the launcher has made for this rank, and reports whether it has made one.
func CheckJob() (yes bool, code Code) {
	defer Contain(&code)
	path := os.Getenv(events.EnvStream)
	if path == "" || proc == nil || proc.place.Launcher != "mpiexec" || events.On() != nil {
		return false, 0
	}
	s, err := events.Open(path)
	if err != nil {
		return false, CodeOf(errs.New(errs.Other, "the stream of mpiexec --check: %v", err))
	}
	s.Write(events.Begin, int64(proc.rank), int64(proc.size))
	events.Start(s)
	return true, 0
}

// CheckStream returns the address of this process's stream, nil if it is not checked.
func CheckStream() unsafe.Pointer {
	if s := events.On(); s != nil {
		return s.Address()
	}
	return nil
}

// Identity returns what all ranks know a communicator, or a window, by: its context or number, then the own rank and the world
// ranks of its members, all in decimal; "" if there is no such object.
func Identity(handle int64, window bool) string {
	if window {
		if w := wins.get(handle); w != nil {
			return identified(int(w.ID), w.Rank, w.World)
		}
		return ""
	}
	if c := comms.get(handle); c != nil {
		return identified(int(c.pt.Ctx), c.coll.Rank, c.union())
	}
	return ""
}

func identified(number, own int, world []int) string {
	return strings.Trim(fmt.Sprint(append([]int{number, own}, world...)), "[]")
}

// TypeLayout returns how an element of a datatype lies: its extent, the number and the size of its only basic type or 0, then offset and length
// of each piece of data in the order of addresses, all in decimal; "" if there is no such type, or it has more than limit pieces.
func TypeLayout(typ int64, limit int) string {
	t, e := getType(typ)
	if e != nil || t.Blocks(1) > limit {
		return ""
	}
	text := fmt.Sprint(t.Extent(), " ", int(t.Kind()), " ", t.ElemSize())
	t.Runs(1, func(off, n int) bool {
		text += fmt.Sprint(" ", off, " ", n)
		return true
	})
	return text
}

// Mappable reports whether n bytes of memory lie in one allocation of the arena, whose pages have nothing else on them than memory of
// the arena.
func Mappable(addr unsafe.Pointer, n int) bool {
	_, ok := arena.Find(addr, n)
	return ok
}
