// Package store is the contract between package boot and the key-value stores of
// process managers, by which the ranks of a job find each other.
//
// Packages boot/pmi, boot/pmix and boot/rendezvous implement it.
//
// It may import only the standard library.
package store

import (
	"errors"
	"fmt"
)

// maxKey is the length of the longest key.
const maxKey = 32

// ErrNotFound is wrapped by the error of Get for a key that the rank has not put.
var ErrNotFound = errors.New("no such key")

// Store is one rank's connection to the store of its job. It is not safe for concurrent
// use, except that Abort may be called at any time.
type Store interface {
	// Name is the name of the process manager, for people: "Hydra", "Slurm (pmi2)".
	Name() string
	// Rank and Size are the place of this process in the job.
	Rank() int
	Size() int
	// Program is the number of its program on the launcher's command line (MPI_APPNUM).
	Program() int
	// Nodes returns the number of the node of each rank as far as the process manager
	// tells it; nil if it does not. It is a hint: who shares memory is found by trying.
	// It may wait until all ranks have joined.
	Nodes() ([]int, error)
	// Put stores value, of any bytes, under a key of this rank. A key has up to 32
	// letters, digits and hyphens, and may be put once.
	Put(key string, value []byte) error
	// Fence waits until all ranks have called it. What was put before can be read after
	// it.
	Fence() error
	// Get returns the value that rank has put under key before the last Fence. Its error
	// wraps ErrNotFound if there is none.
	Get(rank int, key string) ([]byte, error)
	// Abort asks the process manager to end all ranks with the exit status code. It
	// does not wait for their end, but may take a second to pass the word on. This
	// process may be ended, too.
	Abort(code int)
	// Finalize reports that this rank ends successfully, and closes the connection.
	Finalize()
}

// Watcher is a Store that hears of events which end the job. The store of a process manager,
// which ends the ranks of a job that has failed, tells Lost only.
type Watcher interface {
	Store
	// Watch has f called for each event, those before included, one at a time and in
	// order, by a goroutine of the store. It may be called once.
	Watch(f func(Event))
}

// SecretStore is a Store whose ranks may know a secret that is not sent over its connections.
type SecretStore interface {
	Store
	// Secret returns the secret, nil if there is none. All ranks have the same.
	Secret() []byte
}

// Kind is the kind of an Event.
type Kind int

// Kinds of events.
const (
	Aborted  Kind = iota // a rank, this one included, has called Abort
	RankLost             // a rank's connection has ended without Finalize
	Lost                 // the store itself can't be reached any more
)

// Event is something that ends a job, or may end it.
type Event struct {
	Kind Kind
	Rank int    // the rank that has aborted or was lost, -1 for none
	Code int    // of Abort
	Why  string // what happened, in a sentence without its end
}

// Keys are the keys that a rank has put. The zero value is empty and ready to use.
type Keys struct{ put map[string]bool }

// Add adds a key that is about to be put.
func (k *Keys) Add(key string) error {
	if err := CheckKey(key); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	if k.put[key] {
		return fmt.Errorf("put %s: this rank has put it before, and a key may be put once", key)
	}
	if k.put == nil {
		k.put = map[string]bool{}
	}
	k.put[key] = true
	return nil
}

// CheckKey returns an error for a key that Put does not take.
func CheckKey(key string) error {
	if key == "" || len(key) > maxKey {
		return fmt.Errorf("key %q has %d characters: 1 to %d are possible", key, len(key), maxKey)
	}
	for i := range len(key) {
		switch b := key[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '-':
		default:
			return fmt.Errorf("key %q: only letters, digits and hyphens are possible", key)
		}
	}
	return nil
}

// CheckRank returns an error for a rank that is not in a job of size ranks.
func CheckRank(rank, size int) error {
	if rank < 0 || rank >= size {
		return fmt.Errorf("rank %d: the job has ranks 0 to %d", rank, size-1)
	}
	return nil
}
