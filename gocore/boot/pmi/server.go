package pmi

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// The limits in the answer to get_maxes.
const (
	maxSpaceLen = 256
	maxKeyLen   = 64
	maxValueLen = 1024
	// maxStored bounds the launcher's memory for the values of one rank.
	maxStored = 4 << 20
)

// Kind is the kind of a Report.
type Kind int

// Reports to the launcher.
const (
	Aborted Kind = iota // the rank asked to end the job
	Refused             // the rank's request was wrong or not supported; it got an error
	Stuck               // ranks wait for one that won't come: the job can't continue
)

// Report is a message of the server to the launcher.
type Report struct {
	Kind Kind
	Rank int
	Code int    // of an Aborted
	Text string // one line for the user; empty for an Aborted
}

// Server is the process manager's side for the ranks of one job.
//
// # Protocol
//
// Each rank inherits one end of a socket pair. The first process that sends init on it
// is the rank. Requests and answers are one line each:
//
//	init → (get_maxes | get_appnum | get_my_kvsname | get_universe_size |
//	        put | get | barrier_in | publish_name | …)* → finalize
//
// One mutex guards the handling of all requests of all ranks. An answer is sent without
// waiting: if it does not fit into the socket, the rank sends without reading, and the
// server closes its connection and does nothing else. The mutex also guards the reading,
// so that Ended, after the death of a rank, sees all of its requests.
//
// A barrier completes when all ranks are in it. If a rank is lost to it (ended,
// finalized, or its connection closed) while others are in it, the server reports Stuck;
// the order of the two does not matter. It also does so if a rank is lost before init
// and another has sent init, since MPI_Init waits for all ranks, by means of its own.
//
// Children of the rank may have inherited the socket. The kernel reports the sender of
// each message (SCM_CREDENTIALS), and children get errors only.
type Server struct {
	size   int
	space  string
	apps   []int
	report chan Report

	listener *listener

	mu       sync.Mutex
	kvs      map[string]string
	services map[string]string // of publish_name
	conns    []*rankConn
	inside   int // ranks in the barrier
	stuck    bool
}

// NewServer makes the server of a job named id. apps has, for each rank, the number of
// its program on the command line.
func NewServer(id string, apps []int) (*Server, error) {
	s := &Server{
		size:  len(apps),
		space: "kvs_" + id,
		apps:  apps,
		// A rank causes at most one report of each kind, so sending never waits.
		report:   make(chan Report, 3*len(apps)),
		kvs:      map[string]string{"PMI_process_mapping": fmt.Sprintf("(vector,(0,1,%d))", len(apps))},
		services: map[string]string{},
		conns:    make([]*rankConn, len(apps)),
	}
	for i := range s.conns {
		s.conns[i] = &rankConn{server: s, rank: i, fd: -1}
	}
	var err error
	s.listener, err = listen(s.ready)
	return s, err
}

// Close closes all connections.
func (s *Server) Close() {
	s.listener.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.close()
	}
}

// Reports returns the channel of reports to the launcher.
func (s *Server) Reports() <-chan Report { return s.report }

// Connect makes the connection of a rank and returns the rank's end, which the caller
// passes on and closes.
func (s *Server) Connect(rank int) (fd int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conns[rank]
	if fd, err = c.connect(); err != nil {
		return -1, err
	}
	if err := s.listener.add(c.fd, rank); err != nil {
		c.close()
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// ready handles one message of rank. It handles only one, so that a rank that never stops
// sending does not starve the others.
func (s *Server) ready(rank int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.conns[rank]; c.open() { // it may have been closed after epoll returned
		c.receive()
	}
}

// Conduct is the state of a rank by its requests.
type Conduct struct {
	Joined    bool // it sent init
	Finalized bool
	Waits     bool // it is in a barrier
	Aborted   bool
	Code      int // of the abort
}

// Ended records that the process of rank has ended. It handles the rank's last messages,
// closes its connection and returns its final state.
func (s *Server) Ended(rank int) Conduct {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conns[rank]
	for i := 0; i < maxBacklog && c.open() && c.receive(); i++ {
	}
	c.close()
	how := c.conduct
	c.ended = true
	c.leaveBarrier()
	s.checkStuck()
	return how
}

// Conduct returns the current state of rank.
func (s *Server) Conduct(rank int) Conduct {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns[rank].conduct
}

// lost returns why c will never join or enter a barrier again, "" if it may.
func (c *rankConn) lost() (why string) {
	switch {
	case c.ended:
		return "has ended"
	case c.conduct.Finalized:
		return "has finalized"
	case c.broken:
		return "has lost its connection"
	}
	return ""
}

// Stuck returns a report if a rank waits for one that won't come: in a barrier, or, not
// visible to the server, in MPI_Init.
func (s *Server) Stuck() (Report, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.findStuck()
}

func (s *Server) findStuck() (Report, bool) {
	waits, runs := -1, -1
	for r, c := range s.conns {
		switch {
		case c.conduct.Waits && waits < 0:
			waits = r
		case c.conduct.Joined && c.lost() == "" && runs < 0:
			runs = r
		}
	}
	for r, c := range s.conns {
		switch why := c.lost(); {
		case why == "":
		case waits >= 0:
			return Report{Stuck, waits, 0, fmt.Sprintf("waits in a PMI barrier that rank %d, which %s, can't enter", r, why)}, true
		case runs >= 0 && !c.conduct.Joined:
			return Report{Stuck, runs, 0, fmt.Sprintf("has called MPI_Init, which rank %d, which %s, can't call any more", r, why)}, true
		}
	}
	return Report{}, false
}

// checkStuck sends a report the first time that a rank is stuck.
func (s *Server) checkStuck() {
	if report, is := s.findStuck(); is && !s.stuck {
		s.stuck = true
		s.report <- report
	}
}

// refuse answers a request with an error, and reports the first error of a rank.
func (s *Server) refuse(c *rankConn, answer, msg, text string) {
	c.answer("cmd=" + answer + " rc=-1 msg=" + msg)
	c.note(text)
}

// handle handles one line of the process that is the rank.
func (s *Server) handle(c *rankConn, line string) {
	w := parse(line)
	cmd := w["cmd"]
	switch {
	case cmd == "":
		c.abandon(fmt.Sprintf("sent %q, which is no PMI-1 request", clip(line)))
		return
	case c.conduct.Finalized:
		s.refuse(c, cmd+"_result", "finalized", fmt.Sprintf("asked for PMI-1 %s after finalize", clip(cmd)))
		return
	case cmd == "init":
		s.init(c, w)
		return
	case cmd == "abort":
		s.abort(c, w)
		return
	case !c.conduct.Joined:
		s.refuse(c, cmd+"_result", "no_init", fmt.Sprintf("asked for PMI-1 %s before init", clip(cmd)))
		return
	}
	switch cmd {
	case "get_maxes":
		c.answer(fmt.Sprintf("cmd=maxes rc=0 kvsname_max=%d keylen_max=%d vallen_max=%d", maxSpaceLen, maxKeyLen, maxValueLen))
	case "get_appnum":
		c.answer(fmt.Sprintf("cmd=appnum rc=0 appnum=%d", s.apps[c.rank]))
	case "get_my_kvsname":
		c.answer("cmd=my_kvsname rc=0 kvsname=" + s.space)
	case "get_universe_size":
		c.answer("cmd=universe_size rc=0 size=" + strconv.Itoa(s.size))
	case "put":
		s.put(c, line, w)
	case "get":
		value, ok := s.kvs[w["key"]]
		switch {
		case w["kvsname"] != s.space:
			c.answer("cmd=get_result rc=-1 msg=unknown_kvsname")
		case !ok:
			c.answer("cmd=get_result rc=-1 msg=key_not_found")
		default:
			c.answer("cmd=get_result rc=0 value=" + value)
		}
	case "barrier_in":
		s.barrier(c)
	case "publish_name", "unpublish_name", "lookup_name":
		s.name(c, cmd, line, w)
	case "spawn":
		s.refuse(c, "spawn_result", "not_supported", "asked to spawn processes, which this launcher does not do: "+
			"start all ranks at once, or use MPICH's own mpiexec (Hydra)")
	case "finalize":
		c.conduct.Finalized = true
		c.answer("cmd=finalize_ack rc=0")
		s.checkStuck()
	default:
		s.refuse(c, cmd+"_result", "unknown_command", fmt.Sprintf("asked for PMI-1 %s, which this launcher does not know", clip(cmd)))
	}
}

func (s *Server) init(c *rankConn, w words) {
	switch {
	case c.conduct.Joined:
		s.refuse(c, "response_to_init", "initialised_before", "said PMI-1 init twice")
	case w["pmi_version"] != "1":
		s.refuse(c, "response_to_init pmi_version=1 pmi_subversion=1", "version",
			fmt.Sprintf("speaks version %q of PMI; this launcher speaks PMI-1 only", clip(w["pmi_version"])))
	default:
		c.conduct.Joined = true
		defer s.checkStuck()
		// Not 1.2, which has barriers of some of the ranks.
		c.answer("cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1")
	}
}

func (s *Server) abort(c *rankConn, w words) {
	if c.conduct.Aborted {
		return
	}
	code, err := strconv.Atoi(w["exitcode"])
	if err != nil {
		code = 1
	}
	c.conduct.Aborted, c.conduct.Code = true, code
	s.report <- Report{Kind: Aborted, Rank: c.rank, Code: code}
}

func (s *Server) put(c *rankConn, line string, w words) {
	// The value is the rest of the line: the rank's library may escape characters in
	// its own way.
	_, value, _ := strings.Cut(line, " value=")
	key := w["key"]
	msg := ""
	switch {
	case w["kvsname"] != s.space:
		msg = "unknown_kvsname"
	case key == "":
		msg = "no_key"
	case strings.HasPrefix(key, "PMI_"):
		msg = "reserved_key"
	case len(key) > maxKeyLen:
		msg = "key_too_long"
	case len(value) > maxValueLen:
		msg = "value_too_long"
	case c.stored+len(key)+len(value) > maxStored:
		msg = "too_much"
	}
	if msg != "" {
		s.refuse(c, "put_result", msg, fmt.Sprintf("put under the key %q what can't be stored (%s)", clip(key), msg))
		return
	}
	c.stored += len(key) + len(value)
	s.kvs[key] = value
	c.answer("cmd=put_result rc=0")
}

func (s *Server) barrier(c *rankConn) {
	if c.conduct.Waits {
		c.abandon("said barrier_in twice")
		return
	}
	c.conduct.Waits = true
	if s.inside++; s.inside < s.size {
		s.checkStuck()
		return
	}
	s.inside = 0
	for _, c := range s.conns {
		c.conduct.Waits = false
	}
	for _, c := range s.conns {
		c.answer("cmd=barrier_out rc=0")
	}
}

// name handles the names of ports (MPI_Publish_name), among the ranks of the job.
func (s *Server) name(c *rankConn, cmd, line string, w words) {
	service := w["service"]
	_, port, _ := strings.Cut(line, " port=")
	known, ok := s.services[service]
	switch cmd {
	case "publish_name":
		switch {
		case service == "" || len(service) > maxValueLen || len(port) > maxValueLen || c.stored+len(service)+len(port) > maxStored:
			c.answer("cmd=publish_result rc=-1 msg=bad_name")
		case ok:
			c.answer("cmd=publish_result rc=-1 msg=published_before")
		default:
			c.stored += len(service) + len(port)
			s.services[service] = port
			c.answer("cmd=publish_result rc=0")
		}
	case "unpublish_name":
		if !ok {
			c.answer("cmd=unpublish_result rc=-1 msg=not_found")
			return
		}
		delete(s.services, service)
		c.answer("cmd=unpublish_result rc=0")
	case "lookup_name":
		if !ok {
			c.answer("cmd=lookup_result rc=-1 msg=not_found")
			return
		}
		c.answer("cmd=lookup_result rc=0 port=" + known)
	}
}

// clip shortens received text for a message.
func clip(text string) string {
	if len(text) > 80 {
		return text[:80] + "…"
	}
	return text
}
