package pmi

import (
	"encoding/base64"
	"errors"
	"fmt"

	"gormapy/gocore/boot/store"
)

// Store is a Client as the store of a job.
//
// A value of any bytes is put as base64 behind a mark, so that it is never empty and
// has no character that some server changes. Long ones are split by [Client.Put].
type Store struct {
	client  *Client
	name    string
	program int
	keys    store.Keys
}

var _ store.Store = (*Store)(nil)

// valueMark begins the text of each value.
const valueMark = ":"

// NewStore returns the store of a job that has been joined. name is that of the process
// manager, for people.
func NewStore(c *Client, name string) (*Store, error) {
	program, err := c.Program()
	if err != nil {
		return nil, err
	}
	return &Store{client: c, name: name, program: max(0, program)}, nil // Slurm says -1
}

// Name returns the name of the process manager.
func (s *Store) Name() string { return s.name }

// Rank returns this process's rank.
func (s *Store) Rank() int { return s.client.Rank() }

// Size returns the number of ranks of the job.
func (s *Store) Size() int { return s.client.Size() }

// Program returns the number of this rank's program on the command line.
func (s *Store) Program() int { return s.program }

// Nodes returns the nodes of the process mapping, nil if there is none.
func (s *Store) Nodes() ([]int, error) {
	ranges, err := s.client.Mapping()
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(ranges) == 0 {
		if s.Size() == 1 {
			return []int{0}, nil
		}
		return nil, nil
	}
	return Nodes(ranges, s.Size()), nil
}

// wireKey returns the name of a rank's key in the manager's space, in which another MPI
// library of this process may have keys, too.
func wireKey(rank int, key string) string { return fmt.Sprintf("gormapy-%d-%s", rank, key) }

// Put stores a value under a key of this rank.
func (s *Store) Put(key string, value []byte) error {
	if err := s.keys.Add(key); err != nil {
		return err
	}
	return s.client.Put(wireKey(s.Rank(), key), encode(value))
}

// Fence waits until all ranks have called it.
func (s *Store) Fence() error { return s.client.Barrier() }

// Get returns what a rank has put before the last Fence.
func (s *Store) Get(rank int, key string) ([]byte, error) {
	err := store.CheckKey(key)
	if err == nil {
		err = store.CheckRank(rank, s.Size())
	}
	if err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	text, err := s.client.Get(wireKey(rank, key))
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("get %s of rank %d: %w", key, rank, store.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	value, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("get %s of rank %d: %w", key, rank, err)
	}
	return value, nil
}

// Abort asks the process manager to end the job.
func (s *Store) Abort(code int) { _ = s.client.Abort(code) }

// Finalize reports that this rank ends successfully.
func (s *Store) Finalize() { _ = s.client.Finalize() }

func encode(value []byte) string {
	return valueMark + base64.RawStdEncoding.EncodeToString(value)
}

func decode(text string) ([]byte, error) {
	if len(text) < len(valueMark) || text[:len(valueMark)] != valueMark {
		return nil, fmt.Errorf("%q was not put by this version of gormapy: all ranks must use the same", clip(text))
	}
	value, err := base64.RawStdEncoding.DecodeString(text[len(valueMark):])
	if err != nil || encode(value) != text {
		return nil, fmt.Errorf("the process manager has changed the value into %q", clip(text))
	}
	return value, nil
}
