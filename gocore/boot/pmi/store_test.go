package pmi

import (
	"bytes"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/boot/store"
	"gormapy/gocore/boot/storetest"
)

// TestStoreOfTheServer has the ranks of a job of this package's server play.
func TestStoreOfTheServer(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		s := newJob(t, n)
		var wg sync.WaitGroup
		for r := range n {
			fd, err := s.Connect(r)
			require.NoError(t, err)
			t.Setenv("PMI_FD", strconv.Itoa(fd))
			t.Setenv("PMI_RANK", strconv.Itoa(r))
			t.Setenv("PMI_SIZE", strconv.Itoa(n))
			c, err := Connect()
			require.NoError(t, err)
			wg.Go(func() {
				st, err := NewStore(c, "gormapy")
				if assert.NoError(t, err) {
					assert.NoError(t, storetest.Play(st))
				}
			})
		}
		wg.Wait()
		silentServer(t, s)
	}
}

// TestStoreOfOtherManagers: what differs between managers makes no difference here.
func TestStoreOfOtherManagers(t *testing.T) {
	for _, style := range []string{"hydra", "slurm"} {
		s := newServer(style, 3)
		var wg sync.WaitGroup
		for r := range 3 {
			c := s.connect(t, r)
			wg.Go(func() {
				st, err := NewStore(c, style)
				if !assert.NoError(t, err) {
					return
				}
				assert.Equal(t, style, st.Name())
				assert.Equal(t, map[string]int{"slurm": 2, "hydra": 0}[style], st.Program())
				nodes, err := st.Nodes()
				assert.NoError(t, err)
				assert.Equal(t, []int{0, 0, 1}, nodes)
				assert.NoError(t, storetest.Play(st))
			})
		}
		wg.Wait()
		s.mu.Lock()
		assert.LessOrEqual(t, s.longest, maxLine)
		s.mu.Unlock()
	}
}

func TestNodesAreNotToldBySomeManagers(t *testing.T) {
	for text, want := range map[string][]int{"": nil, "(vector)": nil, "(vector,[(0,2,1)]x2)": {0, 1}} {
		s := newServer("hydra", 2)
		s.set("PMI_process_mapping", text)
		st, err := NewStore(s.connect(t, 0), "x")
		require.NoError(t, err)
		nodes, err := st.Nodes()
		require.NoError(t, err)
		assert.Equal(t, want, nodes, text)
	}
	s := newServer("hydra", 1)
	s.set("PMI_process_mapping", "(vector)")
	st, err := NewStore(s.connect(t, 0), "x")
	require.NoError(t, err)
	nodes, err := st.Nodes()
	require.NoError(t, err)
	assert.Equal(t, []int{0}, nodes)
	s.set("PMI_process_mapping", "nonsense")
	_, err = st.Nodes()
	assert.ErrorContains(t, err, "nonsense")
}

func TestStoreNoticesForeignValues(t *testing.T) {
	s := newServer("slurm", 1)
	c := s.connect(t, 0)
	st, err := NewStore(c, "x")
	require.NoError(t, err)
	for text, want := range map[string]string{"plain": "not put by this version", ":a!": "changed", ":a": "changed"} {
		s.set(wireKey(0, "a"), text)
		_, err = st.Get(0, "a")
		assert.ErrorContains(t, err, want)
		assert.NotErrorIs(t, err, store.ErrNotFound)
	}
}

func TestLongestKeyFits(t *testing.T) {
	assert.NoError(t, checkKey(wireKey(1<<31-1, "k23456789k123456789k123456789k12")))
}

// FuzzValues: what is encoded is decoded, and nothing else.
func FuzzValues(f *testing.F) {
	f.Add([]byte{}, "")
	f.Add([]byte{0, 255, '\\'}, ":AP9c")
	f.Add([]byte("text"), "~3")
	f.Fuzz(func(t *testing.T, value []byte, text string) {
		e := encode(value)
		assert.NoError(t, check("value", e))
		back, err := decode(e)
		assert.NoError(t, err)
		assert.True(t, bytes.Equal(value, back))
		if value, err = decode(text); err == nil {
			assert.Equal(t, text, encode(value))
		}
	})
}
