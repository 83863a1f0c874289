package boot

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"gormapy/gocore/agent"
	"gormapy/gocore/boot/pmi"
	"gormapy/gocore/boot/rendezvous"
	"gormapy/gocore/boot/store"
	"gormapy/gocore/fabric/tcp"
	"gormapy/gocore/job"
	"gormapy/gocore/sys"
)

// Variables that gormapy's launcher sets. Settings have other names, so that they can't
// be confused.
const (
	EnvSegment = "GORMAPY_JOB_SEGMENT"
	EnvRank    = "GORMAPY_JOB_RANK"
	EnvSize    = "GORMAPY_JOB_SIZE"
	EnvProgram = "GORMAPY_JOB_APPNUM"
)

// Place is the place of a process in its job.
type Place struct {
	Segment  *job.Segment
	Rank     int
	Program  int    // number of its program on the command line (MPI_APPNUM)
	Launcher string // "mpiexec", "Hydra", …, "none"
	// Why is, for a singleton in the environment of a rank, the reason why it is not
	// that rank; empty otherwise.
	Why string
	// Agent is the node's agent, if this rank is to be it; else nil.
	Agent *agent.Agent
	// Abort asks a foreign launcher to end the job; nil if there is none.
	Abort func(code int)
	// Finalize reports the end of this rank to a foreign launcher; nil if there is none.
	Finalize func()
	// Unmanaged: there is no process manager that ends the ranks of a job that has failed.
	Unmanaged bool
	// Watch, if not nil, has f called for what ends the job, unless a process manager ends its
	// ranks.
	Watch func(f func(store.Event))
	// Environ is how the environment was changed, so that children do not take the
	// launcher's variables for theirs: NAME was taken out, NAME=VALUE was set.
	Environ []string
}

// given is the place that the program itself has given to this process; see Give.
var given *struct {
	rank, size      int
	address, secret string
}

// Give has Find join a job whose ranks know their places: see rendezvous.Join.
func Give(rank, size int, address, secret string) {
	given = &struct {
		rank, size      int
		address, secret string
	}{rank, size, address, secret}
}

// Find finds the place of this process and claims it.
func Find() (*Place, error) {
	if g := given; g != nil {
		s, err := rendezvous.Join(g.rank, g.size, g.address, g.secret)
		if err != nil {
			return nil, err
		}
		return joined(s)
	}
	l, err := find()
	if err != nil {
		return nil, err
	}
	switch l.kind {
	case kindNone:
		return single("")
	case kindOwn:
		return own(os.Getenv(EnvSegment))
	}
	s, err := l.join()
	if err != nil {
		return nil, err
	}
	return joined(s)
}

// joined claims this process's place in a job whose store it has joined.
func joined(s store.Store) (*Place, error) {
	changes := append(consume(), EnvTaken+"="+os.Getenv(EnvTaken))
	p, err := share(s)
	if err != nil {
		return nil, err
	}
	p.Environ = changes
	p.Abort = func(code int) {
		letOutputPass()
		s.Abort(code)
	}
	p.Finalize = s.Finalize
	if w, ok := s.(store.Watcher); ok {
		p.Watch = w.Watch
	}
	_, p.Unmanaged = s.(*rendezvous.Store)
	return p, nil
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

func single(why string) (*Place, error) {
	seg, err := job.Create(1)
	if err != nil {
		return nil, err
	}
	if _, ok := seg.Claim(0); !ok {
		return nil, errors.New("claim the only rank of a new job") // impossible
	}
	return &Place{Segment: seg, Launcher: "none", Why: why}, nil
}

func own(path string) (*Place, error) {
	rank, err := strconv.Atoi(os.Getenv(EnvRank))
	if err != nil {
		return nil, fmt.Errorf("%s is set but %s is %q: was the environment of a rank copied by hand?", EnvSegment, EnvRank, os.Getenv(EnvRank))
	}
	seg, err := job.Open(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("the launcher that started this rank is gone (%w)", err)
		}
		return nil, err
	}
	if rank < 0 || rank >= len(seg.Ranks) {
		seg.Close()
		return nil, fmt.Errorf("%s is %d, but the job has %d ranks", EnvRank, rank, len(seg.Ranks))
	}
	held, ok := seg.Claim(rank)
	if !ok {
		// A rank is granted once. A process that only inherited its environment (a
		// subprocess, a multiprocessing worker) is a job of its own.
		seg.Close()
		why := fmt.Sprintf("rank %d of the job was granted to process %d before", rank, held)
		if !sys.Alive(held) {
			return nil, fmt.Errorf("%s, which has ended: a program that mpiexec starts can be one MPI process only, one after the other does not work", why)
		}
		return single(why)
	}
	seg.CloseFD()
	p := &Place{Segment: seg, Rank: rank, Program: atoi(os.Getenv(EnvProgram)), Launcher: "mpiexec"}
	if seg.Nodes() == 1 {
		pmi.Withhold(int(seg.Head.LauncherPID))
		return p, nil
	}
	c, err := pmi.Connect()
	if err != nil {
		return nil, fmt.Errorf("join the other nodes of the job: %w", err)
	}
	s, err := pmi.NewStore(c, p.Launcher)
	if err != nil {
		return nil, fmt.Errorf("join the other nodes of the job: %w", err)
	}
	defer s.Finalize()
	if p.Agent, err = meet(seg, s, tcp.Options{}); err != nil {
		return nil, fmt.Errorf("join the other nodes of the job: %w", err)
	}
	return p, nil
}
