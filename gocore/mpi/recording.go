package mpi

import (
	"os"
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/trace"
	"gormapy/gocore/trace/chrome"
)

// TraceStart begins a recording. names has the name of each call on a line, followed
// by a tab and its category.
func TraceStart(names string) (code Code) {
	defer Contain(&code)
	return traceInto(names, func() (*trace.Part, error) {
		n, err := trace.Capacity()
		if err != nil {
			return nil, err
		}
		return trace.Own(n)
	})
}

// TraceJob begins the recording of the launcher, and reports whether the launcher has
// made a part for this rank.
func TraceJob(names string) (yes bool, code Code) {
	defer Contain(&code)
	if proc != nil && proc.monitor.Records() {
		code := TraceStart(names)
		return code == 0, code
	}
	path := os.Getenv(trace.EnvPart)
	if path == "" || proc == nil || proc.place.Launcher != "mpiexec" {
		return false, 0
	}
	code = traceInto(names, func() (*trace.Part, error) { return trace.OpenPart(path) })
	return code == 0, code
}

func traceInto(names string, part func() (*trace.Part, error)) Code {
	if e := ready(); e != nil {
		return CodeOf(e)
	}
	if trace.On() != nil {
		return classError(errs.Other, "a recording is on already")
	}
	p, err := part()
	if err == nil {
		err = trace.Start(p, proc.rank, proc.size, os.Getpid(), names)
	}
	if err != nil {
		return CodeOf(errs.New(errs.Other, "begin to record: %v", err))
	}
	return 0
}

// TraceStop ends the recording. What was recorded stays until the next one but one begins.
func TraceStop() (code Code) {
	defer Contain(&code)
	if p := trace.Stop(); p != nil {
		trace.GiveBack(p)
	}
	return 0
}

// TraceAddress returns the address of the part of the current recording, or nil.
func TraceAddress() unsafe.Pointer {
	if p := trace.On(); p != nil {
		return p.Address()
	}
	return nil
}

// TraceDefine records the object of a handle: a window, or else a communicator.
func TraceDefine(handle int64, window bool) {
	p := trace.On()
	if p == nil {
		return
	}
	if !window {
		if c := comms.get(handle); c != nil {
			p.Define(trace.KindComm, handle, int64(c.pt.Ctx), 0, c.coll.Rank, c.union())
		}
		return
	}
	if win := wins.get(handle); win != nil {
		p.Define(trace.KindWin, handle, int64(win.ID), int(win.Flavor), win.Rank, win.World)
	}
}

// TraceSpan returns the size of one item of a datatype and the bytes that count items
// span; 0 if there is no such datatype.
func TraceSpan(typ, count int64) (size, span int64) {
	t, e := getType(typ)
	if e != nil {
		return 0, 0
	}
	return int64(t.Size()), int64(t.Extent()) * count
}

// TraceWrite joins parts (files, one a line, see chrome.Join) into a file for Perfetto, with times from the
// origin on. It returns the text of an error, "" if there is none.
func TraceWrite(parts, path string, origin int64) string {
	if err := chrome.Join(parts, path, origin); err != nil {
		return err.Error()
	}
	return ""
}
