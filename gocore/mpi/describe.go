package mpi

import (
	"encoding/json"
	"os"
	"runtime"
	"sync/atomic"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/registry"
	"gormapy/gocore/job"
	"gormapy/gocore/settings"
)

// What the core tells people about itself, for python -m gormapy info: JSON
// objects, since what there is to tell differs from process to process.

func object(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "null" // can't be: no cycles, no channels
	}
	return string(text)
}

// Runtime is the Go that built the core, and what the core may use.
func Runtime() string {
	return object(map[string]any{"go": runtime.Version(), "max_procs": runtime.GOMAXPROCS(0)})
}

// WorldInfo is what this process is in its job; "null" before Init.
func WorldInfo() string {
	if w == nil {
		return "null"
	}
	return object(map[string]any{
		"launcher": w.place.Launcher, "why": w.place.Why, "job": w.seg.ID(), "rank": w.rank, "size": w.size, "pid": os.Getpid(),
	})
}

// Program is the number of this process's program on the launcher's command
// line, 0 before Init.
func Program() int {
	if w == nil {
		return 0
	}
	return w.place.Program
}

// transport is one line of Transports.
type transport struct {
	Name   string `json:"name"`
	Usable bool   `json:"usable"`
	// Network says that it is used only where it is asked for, Device that it needs
	// hardware which most machines don't have.
	Network bool   `json:"network"`
	Device  bool   `json:"device"`
	Ranks   int    `json:"ranks"` // that it leads to from here
	Text    string `json:"text"`
}

// Transports lists the transports that the design knows, used here or not.
// It works without Init too.
func Transports() string {
	reach := map[string]int{}
	if w != nil {
		reach = w.eng.Reach()
	}
	list := []transport{
		{Name: "self", Usable: true, Ranks: reach["self"], Text: "messages of a rank to itself"},
	}
	for _, e := range registry.Entries() {
		text, problem := e.What(), e.Problem()
		if problem != "" {
			text += ": " + problem
		}
		list = append(list, transport{e.Name, problem == "", e.Network(), e.Device, reach[e.Name], text})
	}
	return object(list)
}

// PeerInfo is how this process reaches world rank r; "null" if there is none.
func PeerInfo(r int) string {
	if w == nil || r < 0 || r >= w.size {
		return "null"
	}
	name, _ := w.eng.Transport(r)
	rank := &w.seg.Ranks[r]
	text := ""
	if d, ok := w.eng.Net().(fabric.Describer); ok && w.eng.Remote(r) {
		text = d.Describe(r)
	}
	return object(map[string]any{
		"text": text,
		"rank": r, "pid": rank.PID(), "transport": name, "refusal": w.eng.Refusal(r),
		"starting": atomic.LoadUint32(&rank.State) < job.StateReady && atomic.LoadUint32(&rank.Exit) == 0,
		"ended":    atomic.LoadUint32(&rank.Exit) != 0,
	})
}

// setting is one row of Settings.
type setting struct {
	Name    string   `json:"name"`
	Default string   `json:"default"`
	Value   string   `json:"value"`
	Given   bool     `json:"given"`
	Choices []string `json:"choices"`
	Reader  string   `json:"reader"`
	Meaning string   `json:"meaning"`
	Problem string   `json:"problem"`
}

// Settings is the table of settings, with the values in effect, and how the names
// of variables begin that only look like settings.
func Settings() string {
	var rows []setting
	for _, s := range settings.All() {
		rows = append(rows, setting{s.Name, s.Default, s.Value(), s.Given(), s.Choices, s.Reader, s.Meaning, s.Problem()})
	}
	return object(map[string]any{"table": rows, "marks": settings.Marks})
}

// Describe is the wait records of all ranks, for people.
func Describe() string {
	s := ""
	if w != nil {
		for r := range w.seg.Ranks {
			for _, l := range w.seg.Describe(r) {
				s += l + "\n"
			}
		}
	}
	return s
}
