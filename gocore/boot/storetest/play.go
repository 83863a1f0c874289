// Package storetest has what every implementation of [store.Store] must do, as the part
// of one rank: in a test of one process with a goroutine a rank, or in the ranks of a
// real launcher.
//
// Only tests import it.
package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"gormapy/gocore/boot/store"
)

// rounds is how many times the ranks put, fence and get.
const rounds = 3

// lengths are those of the values of a round. The longest is longer than any packet,
// and than what PMI-1 takes in one line.
var lengths = []int{0, 1, 700, 1024, 5000, 20000}

// value returns what rank puts under the key of a length in a round: any bytes.
func value(rank, round, length int) []byte {
	b := make([]byte, length)
	for i := range b {
		b[i] = byte(i + 31*rank + 101*round)
	}
	return b
}

func key(round, length int) string { return "Key-" + strconv.Itoa(round) + "-" + strconv.Itoa(length) }

// Play plays the part of one rank up to the end, with Finalize. All ranks must play.
func Play(s store.Store) error {
	defer s.Finalize()
	if s.Name() == "" || s.Size() < 1 || s.Rank() < 0 || s.Rank() >= s.Size() || s.Program() < 0 {
		return fmt.Errorf("%q: rank %d of %d, program %d", s.Name(), s.Rank(), s.Size(), s.Program())
	}
	if nodes, err := s.Nodes(); err != nil || nodes != nil && len(nodes) != s.Size() {
		return fmt.Errorf("nodes: %v, %w", nodes, err)
	}
	for round := range rounds {
		if err := exchange(s, round); err != nil {
			return fmt.Errorf("rank %d, round %d: %w", s.Rank(), round, err)
		}
	}
	if err := refusals(s); err != nil {
		return fmt.Errorf("rank %d: %w", s.Rank(), err)
	}
	return s.Fence() // nobody finalizes before all have got everything
}

func exchange(s store.Store, round int) error {
	for _, n := range lengths {
		if err := s.Put(key(round, n), value(s.Rank(), round, n)); err != nil {
			return err
		}
	}
	if err := s.Fence(); err != nil {
		return err
	}
	for rank := range s.Size() {
		for _, n := range lengths {
			for _, r := range []int{round, 0} { // what is older, too
				got, err := s.Get(rank, key(r, n))
				if err != nil {
					return err
				}
				if !bytes.Equal(got, value(rank, r, n)) {
					return fmt.Errorf("got %d other bytes under %s of rank %d", len(got), key(r, n), rank)
				}
			}
		}
	}
	return nil
}

// refusals tries what must be an error and must not harm.
func refusals(s store.Store) error {
	if _, err := s.Get(s.Size()-1, "never-put"); !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("get of what nobody has put: %w", err)
	}
	if err := s.Put(key(0, 1), []byte("again")); err == nil {
		return errors.New("a key can be put twice")
	}
	if err := s.Put("a key", []byte("x")); err == nil {
		return errors.New("a key with a space can be put")
	}
	if _, err := s.Get(s.Size(), "a"); err == nil {
		return errors.New("there is a rank too many")
	}
	if got, err := s.Get(0, key(0, 1)); err != nil || !bytes.Equal(got, value(0, 0, 1)) {
		return fmt.Errorf("after the refusals: %q, %w", got, err)
	}
	return nil
}
