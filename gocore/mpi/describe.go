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

// Descriptions of the core for python -m gormapy info. They are JSON objects, since
// their fields differ from process to process.

func object(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "null" // impossible: no cycles, no channels
	}
	return string(text)
}

// Runtime describes the Go that built the core, and how many threads run it.
func Runtime() string {
	return object(map[string]any{"go": runtime.Version(), "max_procs": runtime.GOMAXPROCS(0)})
}

// WorldInfo describes this process in its job; "null" before Init.
func WorldInfo() string {
	if proc == nil {
		return "null"
	}
	return object(map[string]any{
		"launcher": proc.place.Launcher, "why": proc.place.Why, "job": proc.seg.ID(), "rank": proc.rank, "size": proc.size, "pid": os.Getpid(),
		"node": proc.seg.Node(), "nodes": proc.seg.Nodes(), "hosts": proc.seg.Head.Hosts,
	})
}

// Hosts returns the number of hosts that the ranks are on, 1 before Init.
func Hosts() int {
	if proc == nil {
		return 1
	}
	return int(proc.seg.Head.Hosts)
}

// Program returns the number of this process's program on the launcher's command
// line, 0 before Init.
func Program() int {
	if proc == nil {
		return 0
	}
	return proc.place.Program
}

// transport is one entry of Transports.
type transport struct {
	Name   string `json:"name"`
	Usable bool   `json:"usable"`
	// Network says that it is used only where it is asked for, Device that it needs
	// hardware which most machines don't have.
	Network bool   `json:"network"`
	Device  bool   `json:"device"`
	Ranks   int    `json:"ranks"` // how many ranks this process reaches by it
	Text    string `json:"text"`
}

// Transports returns all transports, used by this process or not. It works without
// Init too.
func Transports() string {
	reach := map[string]int{}
	if proc != nil {
		reach = proc.eng.Reach()
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

// PeerInfo describes how this process reaches world rank r; "null" if there is none.
func PeerInfo(r int) string {
	if proc == nil || r < 0 || r >= proc.size {
		return "null"
	}
	name, _ := proc.eng.Transport(r)
	rank := &proc.seg.Ranks[r]
	text := ""
	if d, ok := proc.eng.Net().(fabric.Describer); ok && proc.eng.Remote(r) {
		text = d.Describe(r)
	}
	return object(map[string]any{
		"text": text,
		"rank": r, "node": rank.Node, "pid": rank.PID(), "transport": name, "refusal": proc.eng.Refusal(r),
		"starting": atomic.LoadUint32(&rank.State) < job.StateReady && atomic.LoadUint32(&rank.Exit) == 0,
		"ended":    atomic.LoadUint32(&rank.Exit) != 0,
	})
}

// setting is one row of Settings's table.
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

// Settings returns the table of settings with the values in effect, and the prefixes
// of variables that are not for users.
func Settings() string {
	var rows []setting
	for _, s := range settings.All() {
		rows = append(rows, setting{s.Name, s.Default, s.Shown(), s.Given(), s.Choices, s.Reader, s.Meaning, s.Problem()})
	}
	return object(map[string]any{"table": rows, "marks": settings.Marks})
}

// Describe returns the wait records of all ranks as text.
func Describe() string {
	s := ""
	if proc != nil {
		for r := range proc.seg.Ranks {
			for _, l := range proc.seg.Describe(r) {
				s += l + "\n"
			}
		}
	}
	return s
}
