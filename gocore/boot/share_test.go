package boot

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/boot/store"
	"gormapy/gocore/fabric/tcp"
	"gormapy/gocore/job"
	"gormapy/gocore/sys"
)

// pretended is the store of a process manager that does not exist, for ranks that are goroutines.
type pretended struct {
	groups []int  // what Nodes tells; nil for nothing
	secret []byte // what all know; nil for nothing
	size   int

	mu     sync.Mutex
	put    map[string][]byte // by "rank key"
	came   int
	opens  chan struct{} // closed when all have come to the fence
	fences int
}

func newPretended(size int, groups []int) *pretended {
	return &pretended{groups: groups, size: size, put: map[string][]byte{}, opens: make(chan struct{})}
}

// rankStore is one rank's connection. It changes the records that it gets by altered, if that is
// not nil.
type rankStore struct {
	*pretended
	rank    int
	keys    store.Keys
	altered func(from int, key string, value []byte) []byte
}

func (s *rankStore) Name() string          { return "a launcher" }
func (s *rankStore) Rank() int             { return s.rank }
func (s *rankStore) Size() int             { return s.size }
func (s *rankStore) Program() int          { return 0 }
func (s *rankStore) Nodes() ([]int, error) { return s.groups, nil }
func (s *rankStore) Abort(int)             {}
func (s *rankStore) Secret() []byte        { return s.secret }
func (s *rankStore) Finalize()             {}

func (s *rankStore) Put(key string, value []byte) error {
	if err := s.keys.Add(key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put[fmt.Sprint(s.rank, " ", key)] = value
	return nil
}

func (s *rankStore) Fence() error {
	s.mu.Lock()
	opens := s.opens
	if s.came++; s.came == s.size {
		s.came, s.opens = 0, make(chan struct{})
		s.fences++
		close(opens)
	}
	s.mu.Unlock()
	select {
	case <-opens:
		return nil
	case <-time.After(20 * time.Second):
		return errors.New("not all ranks came to the fence")
	}
}

func (s *rankStore) Get(rank int, key string) ([]byte, error) {
	s.mu.Lock()
	value, ok := s.put[fmt.Sprint(rank, " ", key)]
	s.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("get %s of rank %d: %w", key, rank, store.ErrNotFound)
	}
	if s.altered != nil {
		value = s.altered(rank, key, value)
	}
	return value, nil
}

// joinAll joins a job on all ranks, and leaves it when the test ends.
func joinAll(t *testing.T, all *pretended, altered map[int]func(int, string, []byte) []byte) []*Place {
	t.Helper()
	places, errs := make([]*Place, all.size), make([]error, all.size)
	var ranks sync.WaitGroup
	for r := range all.size {
		ranks.Go(func() { places[r], errs[r] = share(&rankStore{pretended: all, rank: r, altered: altered[r]}) })
	}
	ranks.Wait()
	t.Cleanup(func() {
		var agents sync.WaitGroup
		for _, p := range places {
			if p != nil && p.Agent != nil {
				agents.Go(p.Agent.Leave)
			}
		}
		agents.Wait()
		for _, p := range places {
			if p != nil {
				p.Segment.Close()
			}
		}
	})
	for r, err := range errs {
		require.NoError(t, err, "rank %d", r)
	}
	return places
}

// onNodes checks that every rank has the map of these nodes, one agent a node, and the id and secret
// of rank 0.
func onNodes(t *testing.T, places []*Place, nodes ...int) {
	t.Helper()
	agents := map[int]int{}
	for r, p := range places {
		assert.Equal(t, r, p.Rank)
		assert.Equal(t, "a launcher", p.Launcher)
		assert.Equal(t, nodes[r], p.Segment.Node(), "the node of rank %d", r)
		for other, node := range nodes {
			assert.Equal(t, node, p.Segment.NodeOf(other), "the node of rank %d on rank %d", other, r)
			if node == nodes[r] {
				assert.NotZero(t, p.Segment.Ranks[other].PID(), "rank %d on rank %d", other, r)
			}
		}
		assert.Equal(t, places[0].Segment.ID(), p.Segment.ID())
		assert.Equal(t, places[0].Segment.Directory(0).Secret(), p.Segment.Directory(r).Secret())
		assert.Equal(t, 1, int(p.Segment.Head.Hosts), "they are in one process")
		if p.Agent != nil {
			agents[nodes[r]]++
		}
	}
	if places[0].Segment.Nodes() == 1 {
		assert.Empty(t, agents)
		return
	}
	assert.Len(t, agents, places[0].Segment.Nodes())
	for node, n := range agents {
		assert.Equal(t, 1, n, "agents of node %d", node)
	}
	// The agents have connected: what a rank tells comes to the nodes of the others.
	for r, p := range places {
		p.Segment.SetState(r, job.StateReady)
		for _, other := range places {
			for end := time.Now().Add(20 * time.Second); atomic.LoadUint32(&other.Segment.Ranks[r].State) != job.StateReady; time.Sleep(time.Millisecond) {
				require.True(t, time.Now().Before(end), "node %d did not hear of rank %d", other.Segment.Node(), r)
			}
		}
	}
}

func TestJoin(t *testing.T) {
	for _, c := range []struct {
		name   string
		groups []int // what the process manager tells
		nodes  []int
		fences int
	}{
		{"one rank", []int{0}, []int{0}, 2},
		{"one node", []int{0, 0, 0}, []int{0, 0, 0}, 2},
		{"one node by its host", nil, []int{0, 0, 0}, 3},
		{"two nodes", []int{0, 0, 1, 1}, []int{0, 0, 1, 1}, 3},
		{"two nodes in turn", []int{5, 3, 5, 3}, []int{0, 1, 0, 1}, 3},
		{"a node of each rank", []int{0, 1, 2}, []int{0, 1, 2}, 3},
		{"three nodes of different sizes", []int{2, 1, 1, 0, 1}, []int{0, 1, 1, 2, 1}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := newPretended(len(c.nodes), c.groups)
			onNodes(t, joinAll(t, all, nil), c.nodes...)
			assert.Equal(t, c.fences, all.fences)
		})
	}
}

// TestSecretThatIsNotSent: with a secret that the ranks know, the job's secret is derived from it.
func TestSecretThatIsNotSent(t *testing.T) {
	var secrets [][]byte
	for _, known := range []string{"", "mellon", "mellon"} {
		all := newPretended(3, []int{0, 0, 1})
		if known != "" {
			all.secret = []byte(known)
		}
		places := joinAll(t, all, nil)
		onNodes(t, places, 0, 0, 1)
		var record segmentRecord
		require.NoError(t, json.Unmarshal(all.put["0 "+segmentKey], &record))
		secret := places[0].Segment.Directory(0).Secret()
		if known == "" {
			assert.Equal(t, secret, record.Secret)
		} else {
			assert.Empty(t, record.Secret)
			assert.NotEqual(t, make([]byte, len(secret)), secret)
		}
		secrets = append(secrets, append([]byte(nil), secret...))
	}
	assert.NotEqual(t, secrets[1], secrets[2], "two jobs have different ones")
}

// TestCores: ranks that are bound to a core each have all these cores for their node.
func TestCores(t *testing.T) {
	places := joinAll(t, newPretended(2, []int{0, 0}), nil)
	assert.Equal(t, runtime.NumCPU(), int(places[1].Segment.Head.Cores))
	if runtime.NumCPU() < 2 {
		t.Skip("it needs two processors")
	}
	all, places := newPretended(2, []int{0, 0}), make([]*Place, 2)
	cpus := sys.Allowed()
	var ranks sync.WaitGroup
	for r := range places {
		ranks.Go(func() {
			runtime.LockOSThread() // and never unlocks it: the thread ends
			var one unix.CPUSet
			one.Set(cpus[r])
			assert.NoError(t, unix.SchedSetaffinity(0, &one))
			var err error
			places[r], err = share(&rankStore{pretended: all, rank: r})
			assert.NoError(t, err)
		})
	}
	ranks.Wait()
	for _, p := range places {
		assert.Equal(t, 2, int(p.Segment.Head.Cores))
		p.Segment.Close()
	}
}

// alter returns a function that changes the record of a leader's segment.
func alter(change func(*segmentRecord)) func(int, string, []byte) []byte {
	return func(from int, key string, value []byte) []byte {
		var record segmentRecord
		if key != segmentKey || json.Unmarshal(value, &record) != nil {
			return value
		}
		change(&record)
		value, _ = json.Marshal(&record)
		return value
	}
}

// TestLeaderThatIsNotFound: a rank that can't open its leader's segment, or finds another one there, leads
// a node of its own.
func TestLeaderThatIsNotFound(t *testing.T) {
	for name, change := range map[string]func(*segmentRecord){
		"another segment": func(r *segmentRecord) { r.ID = "another one" },
		"another host":    func(r *segmentRecord) { r.Host += "2" },
		"no descriptor":   func(r *segmentRecord) { r.FD = 1 << 20 },
		"no segment":      func(r *segmentRecord) { r.FD = 0 },
		"no process":      func(r *segmentRecord) { r.PID = 1 << 30 },
	} {
		t.Run(name, func(t *testing.T) {
			altered := map[int]func(int, string, []byte) []byte{1: alter(change), 4: alter(change)}
			all := newPretended(5, []int{0, 0, 0, 1, 1})
			onNodes(t, joinAll(t, all, altered), 0, 1, 0, 2, 3)
		})
	}
}

// ended returns the id of a process that has ended.
func ended(t *testing.T) uint32 {
	cmd := exec.Command("true")
	require.NoError(t, cmd.Run())
	return uint32(cmd.Process.Pid)
}

// TestLeaderDies: the ranks of its node are told, whatever it had done before.
func TestLeaderDies(t *testing.T) {
	for _, state := range []uint32{job.MapNone, job.MapSeveral} {
		t.Run(fmt.Sprint("map ", state), func(t *testing.T) {
			all := newPretended(2, []int{0, 0})
			// Rank 0, up to its death.
			j := &joining{s: &rankStore{pretended: all, rank: 0}, host: hostID()}
			var err error
			j.groups, err = j.findGroups()
			require.NoError(t, err)
			require.NoError(t, j.lead())
			defer j.seg.Close()
			told := make(chan error, 1)
			go func() {
				_, err := share(&rankStore{pretended: all, rank: 1})
				told <- err
			}()
			require.NoError(t, j.s.Fence())
			require.NoError(t, j.s.Fence())
			if state != job.MapNone {
				j.seg.SetMap(state)
				require.NoError(t, j.s.Fence())
			}
			pid := ended(t)
			atomic.StoreUint32(&j.seg.Ranks[0].Claim, pid)
			select {
			case err := <-told:
				assert.ErrorContains(t, err, fmt.Sprintf("join the job of a launcher: rank 0 (pid %d), the first of this node, has ended", pid))
			case <-time.After(20 * time.Second):
				t.Error("rank 1 still waits for its leader")
			}
		})
	}
}

// TestWrongNodes: a job does not begin if a leader's record of its node can't be true.
func TestWrongNodes(t *testing.T) {
	for name, c := range map[string]struct {
		members []int
		says    string
	}{
		"without its leader":   {[]int{}, "rank 0 leads a node that it is not on"},
		"with no rank":         {[]int{0, 7}, "rank 0 says that rank 7 is on its node"},
		"with a rank twice":    {[]int{0, 0}, "rank 0 says that rank 0 is on its node"},
		"with a negative rank": {[]int{0, -1}, "rank 0 says that rank -1 is on its node"},
	} {
		t.Run(name, func(t *testing.T) {
			all := newPretended(2, []int{0, 1})
			wrong := func(from int, key string, value []byte) []byte {
				var record nodeRecord
				if key != nodeKey || from != 0 || json.Unmarshal(value, &record) != nil {
					return value
				}
				record.Members = c.members
				value, _ = json.Marshal(&record)
				return value
			}
			var ranks sync.WaitGroup
			for r := range 2 {
				ranks.Go(func() {
					_, err := share(&rankStore{pretended: all, rank: r, altered: wrong})
					assert.ErrorContains(t, err, c.says)
				})
			}
			ranks.Wait()
		})
	}
}

// TestOtherNetwork: nodes whose ranks have other settings of the network do not meet.
func TestOtherNetwork(t *testing.T) {
	for there, says := range map[[3]string]string{
		{"verbs", "0", "auto"}: "this rank has GORMAPY_FABRIC=auto and rank 1 has verbs: all must have the same",
		{"auto", "1", "auto"}:  "this rank has GORMAPY_TLS=0 and rank 1 has 1: all must have the same",
		{"auto", "0", "0"}:     "this rank has GORMAPY_TCP_MAC=auto and rank 1 has 0: all must have the same",
		{"auto", "", "auto"}:   "this rank has GORMAPY_TLS=0 and rank 1 has another version of gormapy",
	} {
		otherNetwork(t, there, says)
	}
}

func otherNetwork(t *testing.T, there [3]string, says string) {
	all := newPretended(2, []int{0, 1})
	other := func(from int, key string, value []byte) []byte {
		var record nodeRecord
		if key != nodeKey || from != 1 || json.Unmarshal(value, &record) != nil {
			return value
		}
		record.Fabric, record.TLS, record.MAC = there[0], there[1], there[2]
		if there[2] == "0" {
			record.Guards = [2]string{tcp.Clear.String(), tcp.Clear.String()}
		}
		value, _ = json.Marshal(&record)
		return value
	}
	var ranks sync.WaitGroup
	for r := range 2 {
		ranks.Go(func() {
			_, err := share(&rankStore{pretended: all, rank: r, altered: other})
			assert.ErrorContains(t, err, says)
		})
	}
	ranks.Wait()
}

// TestBestNetwork: GORMAPY_FABRIC=auto takes a network that all nodes name alike, or else TCP.
func TestBestNetwork(t *testing.T) {
	for name, c := range map[string]struct {
		zero, one map[string]string
		want      string
	}{
		"none":              {nil, nil, "tcp"},
		"the same":          {map[string]string{"verbs": "RoCE 10.0.0.0/8"}, map[string]string{"verbs": "RoCE 10.0.0.0/8"}, "verbs"},
		"one node has none": {map[string]string{"verbs": "RoCE 10.0.0.0/8"}, nil, "tcp"},
		"others":            {map[string]string{"verbs": "RoCE 10.0.0.0/8"}, map[string]string{"verbs": "InfiniBand fe80::"}, "tcp"},
		"the next best": {map[string]string{"verbs": "RoCE 10.0.0.0/8", "ofi": "efa"},
			map[string]string{"verbs": "RoCE 10.1.0.0/16", "ofi": "efa"}, "ofi"},
	} {
		t.Run(name, func(t *testing.T) {
			all := newPretended(4, []int{0, 0, 1, 1})
			tell := func(from int, key string, value []byte) []byte {
				var record nodeRecord
				if key != nodeKey || json.Unmarshal(value, &record) != nil {
					return value
				}
				record.Between = c.zero
				if from == 2 {
					record.Between = c.one
				}
				value, _ = json.Marshal(&record)
				return value
			}
			altered := map[int]func(int, string, []byte) []byte{0: tell, 1: tell, 2: tell, 3: tell}
			for r, p := range joinAll(t, all, altered) {
				assert.Equal(t, c.want, p.Segment.Across(), "on rank %d", r)
			}
		})
	}
}
