//go:build cgo

package pmix

// #include <stdlib.h>
// #include "glue.h"
import "C"

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/boot/store"
)

const (
	// recordKey is followed by the number of the fence. Other MPI libraries in this process
	// have keys, too.
	recordKey = "gormapy."
	// getLimit is the time in seconds for the server to find a value.
	getLimit = 60
	// abortLimit is the time for the server to take an abort.
	abortLimit = time.Second
)

// Store is this process's connection to the PMIx server.
type Store struct {
	me            *C.struct_gm_pmix_proc // in C memory, for good: Abort may come at any time
	name, library string
	rank, size    int
	program       int
	keys          store.Keys

	pending record
	fences  int
	read    map[place]map[string][]byte // the records that were got
}

// place says whose record it is, and which.
type place struct{ rank, fence int }

var _ store.Watcher = (*Store)(nil)

// Connect opens the library and joins the job of the PMIx server that the environment
// names. name is that of the launcher, for people.
func Connect(name string) (*Store, error) {
	library, err := load()
	if err != nil {
		return nil, err
	}
	s := &Store{me: (*C.struct_gm_pmix_proc)(C.calloc(1, C.sizeof_struct_gm_pmix_proc)), name: name,
		library: fmt.Sprintf("%s (version %s)", library, version()), pending: newRecord(), read: map[place]map[string][]byte{}}
	before := descriptors()
	err = s.check("connect to the PMIx server", C.gm_pmix_init(s.me))
	withhold(before)
	if err != nil {
		return nil, err
	}
	s.rank = int(s.me.rank)
	if s.size, err = s.number(C.PMIX_RANK_WILDCARD, "pmix.job.size"); err != nil {
		s.Finalize()
		return nil, fmt.Errorf("ask the PMIx server for the size of the job: %w", err)
	}
	if s.rank >= s.size {
		s.Finalize()
		return nil, fmt.Errorf("the PMIx server says that this is rank %d of %d", s.rank, s.size)
	}
	if program, err := s.number(C.uint32_t(s.rank), "pmix.appnum"); err == nil {
		s.program = program
	}
	return s, nil
}

// check returns the error of a status, nil if it is none.
func (s *Store) check(what string, status C.int) error {
	if status == C.PMIX_SUCCESS {
		return nil
	}
	return fmt.Errorf("%s by %s: %s (%d)", what, s.library, C.GoString(C.gm_pmix_error(status)), int(status))
}

// Library returns the file and version of libpmix.
func (s *Store) Library() string { return s.library }

// Name returns the name of the launcher.
func (s *Store) Name() string { return s.name }

// Rank returns this process's rank.
func (s *Store) Rank() int { return s.rank }

// Size returns the number of ranks of the job.
func (s *Store) Size() int { return s.size }

// Program returns the number of this rank's program on the command line.
func (s *Store) Program() int { return s.program }

// get gets a value of a rank: here looks only at what this process has already, which is
// what the server said of the job at the start. Else the server may ask that of the rank.
func (s *Store) get(rank C.uint32_t, key string, here bool) (value, error) {
	name := C.CString(key)
	defer C.free(unsafe.Pointer(name))
	seconds := C.int(getLimit)
	if here {
		seconds = 0
	}
	got := (*C.struct_gm_pmix_got)(C.calloc(1, C.sizeof_struct_gm_pmix_got))
	defer C.free(unsafe.Pointer(got))
	status := C.gm_pmix_get(s.me, rank, name, seconds, got)
	defer C.free(got.data)
	if status == C.PMIX_ERR_NOT_FOUND {
		return value{}, store.ErrNotFound
	}
	if err := s.check("get "+key, status); err != nil {
		return value{}, err
	}
	v := value{kind: uint16(got._type), data: []byte{}}
	copy(v.word[:], unsafe.Slice((*byte)(unsafe.Pointer(&got.word[0])), len(v.word)))
	if got.size > 0 {
		v.data = append(v.data, unsafe.Slice((*byte)(got.data), int(got.size))...)
	}
	return v, nil
}

// number asks the server for a number.
func (s *Store) number(rank C.uint32_t, key string) (int, error) {
	v, err := s.get(rank, key, false)
	if err != nil {
		return 0, err
	}
	n, err := v.number()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", key, err)
	}
	return n, nil
}

// Nodes numbers the hosts of the ranks, whose names every server tells of all ranks (Slurm
// tells pmix.nodeid of this host's only). It is nil if a name is missing.
func (s *Store) Nodes() ([]int, error) {
	hosts := make([]string, s.size)
	for r := range hosts {
		v, err := s.get(C.uint32_t(r), "pmix.hname", true)
		if err == nil {
			hosts[r], err = v.text()
		}
		if errors.Is(err, store.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("ask the PMIx server for the host of rank %d: %w", r, err)
		}
	}
	return numbered(hosts), nil
}

// Put stores a value under a key of this rank. It is published by Fence.
func (s *Store) Put(key string, data []byte) error {
	if err := s.keys.Add(key); err != nil {
		return err
	}
	s.pending = s.pending.add(key, data)
	return nil
}

// Fence publishes what this rank has put, and waits until all ranks have called it.
func (s *Store) Fence() error {
	s.fences++
	name := C.CString(recordKey + strconv.Itoa(s.fences))
	defer C.free(unsafe.Pointer(name))
	bytes := C.CBytes(s.pending)
	defer C.free(bytes)
	if err := s.check("put", C.gm_pmix_put(name, bytes, C.size_t(len(s.pending)))); err != nil {
		return err
	}
	s.pending = newRecord()
	return s.check("wait for all ranks", C.gm_pmix_fence(s.me))
}

// Get returns what a rank has put before the last Fence.
func (s *Store) Get(rank int, key string) ([]byte, error) {
	err := store.CheckKey(key)
	if err == nil {
		err = store.CheckRank(rank, s.size)
	}
	if err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	for fence := s.fences; fence > 0; fence-- {
		values, err := s.record(place{rank, fence})
		if err != nil {
			return nil, fmt.Errorf("get %s of rank %d: %w", key, rank, err)
		}
		if data, ok := values[key]; ok {
			return slices.Clone(data), nil
		}
	}
	return nil, fmt.Errorf("get %s of rank %d: %w", key, rank, store.ErrNotFound)
}

// record returns a record, from the server if it is asked for the first time.
func (s *Store) record(p place) (map[string][]byte, error) {
	if values, ok := s.read[p]; ok {
		return values, nil
	}
	v, err := s.get(C.uint32_t(p.rank), recordKey+strconv.Itoa(p.fence), false)
	var data []byte
	if err == nil {
		data, err = v.bytes()
	}
	var values map[string][]byte
	if err == nil {
		values, err = record(data).parse()
	}
	if errors.Is(err, store.ErrNotFound) {
		err = fmt.Errorf("the PMIx server does not have what the rank had put before fence %d", p.fence)
	}
	if err == nil {
		s.read[p] = values
	}
	return values, err
}

// Abort asks the server to end the job. The server ends this process, too, and may not
// answer.
func (s *Store) Abort(code int) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		text := C.CString(fmt.Sprintf("rank %d of gormapy has aborted the job", s.rank))
		defer C.free(unsafe.Pointer(text))
		C.gm_pmix_abort(C.int(code), text)
	}()
	timer := time.NewTimer(abortLimit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// Watch has f called when the PMIx server has ended.
func (s *Store) Watch(f func(store.Event)) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return // without descriptors nothing works for long
	}
	if C.gm_pmix_watch(C.int(fd)) < 0 {
		unix.Close(fd)
		return
	}
	go func() {
		var count [8]byte
		for {
			n, err := unix.Read(fd, count[:])
			if n == len(count) {
				break
			}
			if err != unix.EINTR {
				return // the program has closed the descriptor
			}
		}
		f(store.Event{Kind: store.Lost, Rank: -1, Why: fmt.Sprintf("%s, which started it, has ended", s.name)})
	}()
}

// Finalize reports that this rank ends successfully.
func (s *Store) Finalize() { C.gm_pmix_finalize() }
