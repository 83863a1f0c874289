// Package settings is the table of the environment variables that users set: name,
// default, meaning. All code reads settings from it, so that
// "python -m gormapy info --config" lists exactly the settings that exist.
//
// Variables that gormapy's programs set for processes that they start are no
// settings: see Marks.
//
// It may import only the standard library.
package settings

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Marks are the prefixes of variables that are not for users: those of the launcher for
// its ranks (package boot), of the benchmarks to find their processes, and of a notebook
// for its ranks.
var Marks = []string{"GORMAPY_JOB_", "GORMAPY_BENCH_JOB", "GORMAPY_MAGIC"}

// Setting is one environment variable.
type Setting struct {
	Name    string
	Default string
	Choices []string // nil: any text
	Reader  string   // the program that reads it, and when
	Meaning string
}

// Readers of settings.
const (
	byRanks   = "ranks, when MPI is initialised"
	byTracers = "mpiexec --trace and gormapy.trace, when a recording begins"
	byBuild   = "pip install and make, when gormapy is built"
)

// The settings.
var (
	OneCopy = add(Setting{Name: "GORMAPY_ONE_COPY", Default: "1", Choices: []string{"1", "0"}, Reader: byRanks,
		Meaning: "whether ranks copy straight between their memories (process_vm_readv); with 0 the target's progress engine serves windows made by Win.Create, and long messages go through shared memory"})
	Fabric = add(Setting{Name: "GORMAPY_FABRIC", Default: "auto", Choices: []string{"auto", "shm", "tcp", "verbs", "ofi"}, Reader: byRanks,
		Meaning: "the transport by which ranks reach each other, the same for all of a job; auto is shared memory on a host, the others are for those who learn or test them"})
	IBDevice = add(Setting{Name: "GORMAPY_IB_DEV", Reader: byRanks,
		Meaning: "name of the RDMA device that GORMAPY_FABRIC=verbs uses; empty: ranks of a host take turns among those with an active port"})
	IBPort = add(Setting{Name: "GORMAPY_IB_PORT", Reader: byRanks,
		Meaning: "number of its port; empty: the first active one"})
	IBGid = add(Setting{Name: "GORMAPY_IB_GID", Reader: byRanks,
		Meaning: "index of the GID on that port; empty: a RoCE v2 one, with an IPv4 address if there is one"})
	OFIProvider = add(Setting{Name: "GORMAPY_OFI_PROV", Reader: byRanks,
		Meaning: "libfabric's provider for GORMAPY_FABRIC=ofi, such as tcp;ofi_rxm (fi_info lists them); empty: the best of efa, verbs;ofi_rxm and tcp;ofi_rxm that is there"})
	Log = add(Setting{Name: "GORMAPY_LOG", Default: "warn", Choices: []string{"error", "warn", "info", "debug"}, Reader: byRanks,
		Meaning: "how much the core logs on standard error about its decisions: launcher, transports, paths of windows, ends of peers"})
	LogFile = add(Setting{Name: "GORMAPY_LOG_FILE", Reader: byRanks,
		Meaning: "file to which all ranks append those lines, in place of standard error"})
	TraceEvents = add(Setting{Name: "GORMAPY_TRACE_EVENTS", Default: "1000000", Reader: byTracers,
		Meaning: "how many events a rank can record, 64 bytes each; a call takes one, a message one at each side, a wait one"})
	BuildToolchain = add(Setting{Name: "GORMAPY_BUILD_TOOLCHAIN", Default: "wheels", Choices: []string{"wheels", "system", "auto"}, Reader: byBuild,
		Meaning: "where Go and the C compiler come from: wheels are the pinned ones of the package index, system those on PATH, auto (what make takes by default) the latter if they are there"})
)

var table []*Setting

func add(s Setting) *Setting {
	table = append(table, &s)
	return &s
}

// All returns every setting.
func All() []*Setting { return table }

// Value returns the value in effect: that of the variable if it is valid, else the
// default.
func (s *Setting) Value() string {
	value, _ := s.read()
	return value
}

// Problem returns what is wrong with the variable's value; empty if it is valid.
func (s *Setting) Problem() string {
	_, problem := s.read()
	return problem
}

// Given reports whether the variable is set.
func (s *Setting) Given() bool { return os.Getenv(s.Name) != "" }

func (s *Setting) read() (value, problem string) {
	given := os.Getenv(s.Name)
	if given == "" {
		return s.Default, ""
	}
	if s.Choices == nil {
		return given, ""
	}
	if lower := strings.ToLower(strings.TrimSpace(given)); slices.Contains(s.Choices, lower) {
		return lower, ""
	}
	return s.Default, fmt.Sprintf("%s is %q, which it can't be: choose from %s (%s is taken)", s.Name, given, strings.Join(s.Choices, ", "), s.Default)
}

// On reports whether a setting with the choices 1 and 0 is 1.
func (s *Setting) On() bool { return s.Value() == "1" }

// Problems returns the problems of the settings that ranks read.
func Problems() []string {
	var found []string
	for _, s := range table {
		if p := s.Problem(); p != "" && s.Reader == byRanks {
			found = append(found, p)
		}
	}
	return found
}
