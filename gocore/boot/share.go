package boot

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"gormapy/gocore/boot/store"
	"gormapy/gocore/fabric/tcp"
	"gormapy/gocore/job"
	"gormapy/gocore/sys"
)

// # Who shares memory
//
// A job of another launcher has no segments yet.
// The process manager says which ranks should share memory (store.Store.Nodes); without
// that, those with the same host. Whether they do is found by trying: a leader, the first
// rank of such a group, makes a segment and says where it is, and the others of the group
// open that descriptor of that process and compare the segment's random id. One that can't
// (a container with process ids of its own, another user) leads a node of its own.
//
//	leaders                                ranks that follow
//	put "segment"                          .
//	fence                                  fence
//	.                                      get the leader's "segment"; open it, claim the rank
//	                                       or else make an own one
//	fence                                  fence
//	see who has claimed, and which cores they may use: if all ranks of the job have, the map is complete (one node)
//	else put "node": members, agent        await MapOneNode or MapSeveral in the segment
//	fence                                  fence, if MapSeveral
//	get every leader's "node", write the map, MapDone
//	start the agent                        await MapDone
//
// So a job on one node has two fences, another one three, and only leaders read records:
// one of each node. Rank 0, which always leads, puts the job's secret and id into its
// record; the process manager passes it to the ranks alone. If the ranks know a secret without
// the store (GORMAPY_SECRET), that of the job is derived from it, and not put.

// segmentRecord is where a leader's segment is.
type segmentRecord struct {
	Host   string
	PID    int
	FD     int
	ID     string // random: of this segment
	Job    string // by rank 0: the id of the job
	Secret []byte // by rank 0: that of the job
}

// nodeRecord is what a leader tells of its node.
type nodeRecord struct {
	Host    string
	Members []int
	Agent   []byte // its card
	networks
}

const (
	segmentKey = "segment"
	hostKey    = "host"
	nodeKey    = "node"
)

// mapTime bounds how long a rank waits for its leader.
const mapTime = 60 * time.Second

// joining is a job that is being joined.
type joining struct {
	s      store.Store
	host   string
	groups []int // by rank: the number of the group whose ranks should share memory
	seg    *job.Segment
	leads  bool
}

// share joins the job of a process manager: it makes or maps the segment of this node, and
// claims this rank.
func share(s store.Store) (*Place, error) {
	p := &Place{Rank: s.Rank(), Program: s.Program(), Launcher: s.Name()}
	j := &joining{s: s, host: hostID()}
	if err := j.join(p); err != nil {
		return nil, fmt.Errorf("join the job of %s: %w", p.Launcher, err)
	}
	p.Segment = j.seg
	return p, nil
}

func (j *joining) join(p *Place) error {
	var err error
	if j.groups, err = j.findGroups(); err != nil {
		return err
	}
	leader := j.leader(j.groups[p.Rank])
	if leader == p.Rank {
		err = j.lead()
	}
	if err == nil {
		err = j.s.Fence()
	}
	if err != nil {
		return err
	}
	if !j.leads && !j.follow(leader) {
		if err := j.lead(); err != nil {
			return err
		}
	}
	if err := j.s.Fence(); err != nil {
		return err
	}
	if !j.leads {
		return j.awaitMap(leader)
	}
	members := j.seg.Claimed()
	j.seg.CountCores()
	if len(members) == j.s.Size() {
		j.seg.SetMap(job.MapOneNode)
		return nil
	}
	return j.meet(p, members)
}

// findGroups returns the process manager's groups, or those of ranks with the same host.
func (j *joining) findGroups() ([]int, error) {
	groups, err := j.s.Nodes()
	if err != nil || len(groups) == j.s.Size() {
		return groups, err
	}
	if err := j.s.Put(hostKey, []byte(j.host)); err != nil {
		return nil, err
	}
	if err := j.s.Fence(); err != nil {
		return nil, err
	}
	groups = make([]int, j.s.Size())
	first := map[string]int{}
	for r := range groups {
		host, err := j.s.Get(r, hostKey)
		if err != nil {
			return nil, err
		}
		if _, seen := first[string(host)]; !seen {
			first[string(host)] = r
		}
		groups[r] = first[string(host)]
	}
	return groups, nil
}

// leader returns the first rank of a group.
func (j *joining) leader(group int) int {
	for r, g := range j.groups {
		if g == group {
			return r
		}
	}
	return -1 // impossible: the group is some rank's
}

// lead makes the segment of a node. The first leaders publish it.
func (j *joining) lead() error {
	first := j.leader(j.groups[j.s.Rank()]) == j.s.Rank()
	var err error
	if j.seg, err = job.Create(j.s.Size()); err != nil {
		return err
	}
	j.leads = true
	if _, ok := j.seg.Claim(j.s.Rank()); !ok {
		return fmt.Errorf("claim rank %d of a new segment", j.s.Rank()) // impossible
	}
	if !first {
		return nil
	}
	record := segmentRecord{Host: j.host, PID: os.Getpid(), FD: j.seg.FD(), ID: j.seg.ID()}
	if j.s.Rank() == 0 {
		record.Job, record.Secret = j.seg.ID(), j.seg.Directory(0).Secret()
		if s, ok := j.s.(store.SecretStore); ok && s.Secret() != nil {
			record.Secret = nil // see secret
		}
	}
	return put(j.s, segmentKey, &record)
}

// follow opens the leader's segment and claims this rank there. It reports whether that
// worked.
func (j *joining) follow(leader int) bool {
	var record segmentRecord
	if err := get(j.s, leader, segmentKey, &record); err != nil || record.Host != j.host {
		return false
	}
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return false // /proc is of other process ids than those of this process
	}
	seg, err := job.Open(fmt.Sprintf("/proc/%d/fd/%d", record.PID, record.FD))
	if err != nil {
		return false
	}
	if seg.ID() != record.ID || len(seg.Ranks) != j.s.Size() {
		seg.Close()
		return false
	}
	if _, ok := seg.Claim(j.s.Rank()); !ok {
		seg.Close()
		return false
	}
	j.seg = seg
	return true
}

// meet completes the map of several nodes, and connects their agents.
func (j *joining) meet(p *Place, members []int) (err error) {
	j.seg.SetMap(job.MapSeveral)
	var origin segmentRecord
	if err := get(j.s, 0, segmentKey, &origin); err != nil {
		return err
	}
	j.seg.Belong(origin.Job, j.secret(&origin))
	o, err := tcp.OptionsFor(several) // it may turn out that all are on one host
	if err != nil {
		return err
	}
	a, err := newAgent(j.seg, j.s.Rank(), o)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			a.Leave()
		}
	}()
	if err := put(j.s, nodeKey, &nodeRecord{Host: j.host, Members: members, Agent: a.Card(), networks: ownNetworks()}); err != nil {
		return err
	}
	if err := j.s.Fence(); err != nil {
		return err
	}
	nodes, placed := make([]int, j.s.Size()), make([]bool, j.s.Size())
	cards, hosts, told := map[int][]byte{}, map[string]bool{}, map[int]networks{}
	for r := range nodes {
		if placed[r] {
			continue
		}
		var record nodeRecord
		if err := get(j.s, r, nodeKey, &record); err != nil {
			return fmt.Errorf("find the node of rank %d: %w", r, err)
		}
		for _, m := range record.Members {
			if m < r || m >= len(nodes) || placed[m] {
				return fmt.Errorf("rank %d says that rank %d is on its node, which another one says, too", r, m)
			}
			nodes[m], placed[m] = len(cards), true
		}
		if !placed[r] {
			return fmt.Errorf("rank %d leads a node that it is not on", r)
		}
		cards[r], hosts[record.Host], told[r] = record.Agent, true, record.networks
	}
	if err := agree(j.seg, told, len(hosts)); err != nil {
		return err
	}
	j.seg.SetNodes(nodes, nodes[j.s.Rank()], len(hosts))
	if err := a.Start(cards); err != nil {
		return err
	}
	p.Agent = a
	j.seg.SetMap(job.MapDone)
	return nil
}

// secret returns the job's secret: that of rank 0's record, or one that is derived from what the
// ranks know without the store.
func (j *joining) secret(origin *segmentRecord) []byte {
	s, ok := j.s.(store.SecretStore)
	if !ok || s.Secret() == nil {
		return origin.Secret
	}
	m := hmac.New(sha256.New, s.Secret())
	m.Write([]byte("secret of " + origin.Job))
	return m.Sum(nil)
}

// awaitMap waits until the leader has completed the map.
func (j *joining) awaitMap(leader int) error {
	state := job.MapNone
	for end := time.Now().Add(mapTime); ; {
		seen := state
		switch state = j.seg.AwaitMap(seen, time.Now().Add(100*time.Millisecond)); {
		case state == job.MapOneNode || state == job.MapDone:
			return nil
		case state == job.MapSeveral && seen != state:
			if err := j.s.Fence(); err != nil {
				return err
			}
		}
		if pid := j.seg.Ranks[leader].PID(); !sys.Alive(pid) {
			return fmt.Errorf("rank %d (pid %d), the first of this node, has ended while the ranks of the job met", leader, pid)
		}
		if time.Now().After(end) {
			return fmt.Errorf("rank %d, the first of this node, has not told within %v which ranks are on which node", leader, mapTime)
		}
	}
}

// put puts a record as JSON.
func put(s store.Store, key string, record any) error {
	b, err := json.Marshal(record)
	if err != nil {
		return err // impossible: strings, numbers and bytes
	}
	return s.Put(key, b)
}

// get gets a record that put has put.
func get(s store.Store, rank int, key string, record any) error {
	b, err := s.Get(rank, key)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, record); err != nil {
		return fmt.Errorf("the record %s of rank %d is none of this version of gormapy, which all ranks must have: %w", key, rank, err)
	}
	return nil
}

// hostID returns the same text in all processes that share a kernel, a host name, and the
// network, so that they reach each other by the loopback interface.
func hostID() string {
	name, _ := os.Hostname()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	network, _ := os.Readlink("/proc/self/ns/net")
	return name + "/" + strings.TrimSpace(string(boot)) + "/" + network
}
