package agreement

// Kind says what a message is.
type Kind uint8

// The kinds of messages.
const (
	State   Kind = iota + 1 // to the coordinator: a contribution, and what has been accepted
	Ask                     // from a coordinator that has not got the receiver's state
	Propose                 // from the coordinator
	Accept                  // to the coordinator
	Decide                  // the decision
	Leave                   // the last decision of a process that takes no part any more
)

// nobody is the coordinator of a value that has not been accepted.
const nobody = -1

// Message is what a process sends to another one.
type Message struct {
	Kind     Kind
	Instance uint32
	// Value is the contribution (State), the proposal or the decision.
	Value []byte
	// Accepted is, in a State, the value that has been accepted last, and By the coordinator that proposed it; below 0: none has.
	Accepted []byte
	By       int
}

// Member is one process. Its methods are not safe for concurrent use.
type Member struct {
	me      int
	absent  []bool
	send    func(to int, m *Message)
	combine func(contributions [][]byte, absent []bool) []byte
	decided func(instance uint32, value []byte)

	calls [][]byte // contributions of the program that no instance has taken yet

	last      uint32 // the last instance that has been decided here; the current one is last+1
	lastValue []byte

	// Of the current instance.
	started    bool
	mine       []byte // contribution
	told       int    // the coordinator that has this process's state
	accepted   []byte
	acceptedBy int
	states     []*Message // by process
	phase      phase
	proposal   []byte
	accepts    []bool // by process

	next []*Message // states of the instance after the current one
}

// phase is what a coordinator is about to do.
type phase uint8

const (
	idle phase = iota
	collecting
	proposing
)

// New returns process me of n. It sends messages by send. combine makes the decision of the contributions, by process; that of one which has
// not contributed is nil, and absent reports which are known not to take part. decided is called with each decision, in the order of the
// instances.
func New(me, n int, send func(to int, m *Message), combine func(contributions [][]byte, absent []bool) []byte, decided func(instance uint32, value []byte)) *Member {
	m := &Member{me: me, absent: make([]bool, n), send: send, combine: combine, decided: decided}
	m.begin(make([]*Message, n))
	return m
}

// begin makes a new instance the current one; states are those that have come.
func (m *Member) begin(states []*Message) {
	n := len(m.absent)
	m.started, m.mine, m.told = false, nil, nobody
	m.accepted, m.acceptedBy = nil, nobody
	m.states, m.next = states, make([]*Message, n)
	m.phase, m.proposal, m.accepts = idle, nil, make([]bool, n)
}

// Call contributes to the next instance, and returns its number. The program may call again before there is a decision.
func (m *Member) Call(contribution []byte) uint32 {
	instance := m.Next()
	m.calls = append(m.calls, contribution)
	m.advance()
	return instance
}

// Next returns the number of the instance that the next Call contributes to.
func (m *Member) Next() uint32 {
	next := m.last + uint32(len(m.calls)) + 1
	if m.started {
		next++
	}
	return next
}

// Gone records that a process is dead, or will take no part any more.
func (m *Member) Gone(process int) {
	if !m.absent[process] && process != m.me {
		m.absent[process] = true
		m.advance()
	}
}

// Absent reports whether a process is known to take no part.
func (m *Member) Absent(process int) bool { return m.absent[process] }

// Last returns the number of the last instance that has been decided here.
func (m *Member) Last() uint32 { return m.last }

// Leave tells the others that this process takes no part any more. Nothing of the Member may be called afterwards.
func (m *Member) Leave() {
	m.toOthers(&Message{Kind: Leave, Instance: m.last, Value: m.lastValue})
}

// Receive handles a message of another process.
func (m *Member) Receive(from int, msg *Message) {
	current := msg.Instance == m.last+1
	switch msg.Kind {
	case State:
		m.lowerAbsent(m.me)
		switch {
		case current:
			m.states[from] = msg
		case msg.Instance == m.last+2:
			m.next[from] = msg
		}
	case Ask:
		m.lowerAbsent(from)
	case Propose:
		m.lowerAbsent(from)
		if current && m.started && from == m.coordinator() {
			m.accepted, m.acceptedBy = msg.Value, from
			m.send(from, &Message{Kind: Accept, Instance: msg.Instance})
		}
	case Accept:
		if current && m.phase == proposing {
			m.accepts[from] = true
		}
	case Decide, Leave:
		if current && m.started {
			if m.phase != idle { // others wait for this process
				m.toOthers(&Message{Kind: Decide, Instance: msg.Instance, Value: msg.Value})
			}
			m.decide(msg.Value)
		}
		if msg.Kind == Leave {
			m.absent[from] = true
		}
	}
	if msg.Kind <= Propose && m.last > 0 && msg.Instance == m.last {
		m.send(from, &Message{Kind: Decide, Instance: m.last, Value: m.lastValue})
	}
	m.advance()
}

// lowerAbsent records that all processes below a coordinator are absent.
func (m *Member) lowerAbsent(coordinator int) {
	for r := range coordinator {
		if r != m.me {
			m.absent[r] = true
		}
	}
}

// coordinator returns the lowest process that is not absent.
func (m *Member) coordinator() int {
	for r, absent := range m.absent {
		if !absent {
			return r
		}
	}
	return m.me // which is never absent
}

// advance does what the present state demands.
func (m *Member) advance() {
	for m.step() {
	}
}

// step reports whether there may be more to do.
func (m *Member) step() bool {
	if !m.started {
		if len(m.calls) == 0 {
			return false
		}
		m.started, m.mine, m.calls = true, m.calls[0], m.calls[1:]
	}
	state := &Message{Kind: State, Instance: m.last + 1, Value: m.mine, Accepted: m.accepted, By: m.acceptedBy}
	if c := m.coordinator(); c != m.me {
		if m.told != c {
			m.told = c
			m.send(c, state)
		}
		return false
	}
	if m.phase == idle {
		m.phase, m.states[m.me] = collecting, state
		if m.me > 0 {
			m.toOthers(&Message{Kind: Ask, Instance: m.last + 1})
		}
	}
	if m.phase == collecting {
		for r, s := range m.states {
			if s == nil && !m.absent[r] {
				return false
			}
		}
		m.phase, m.proposal = proposing, m.choose()
		m.accepted, m.acceptedBy, m.accepts[m.me] = m.proposal, m.me, true
		m.toOthers(&Message{Kind: Propose, Instance: m.last + 1, Value: m.proposal})
	}
	for r, accepted := range m.accepts {
		if !accepted && !m.absent[r] {
			return false
		}
	}
	m.toOthers(&Message{Kind: Decide, Instance: m.last + 1, Value: m.proposal})
	m.decide(m.proposal)
	return true
}

// choose returns what a coordinator that has all states proposes.
func (m *Member) choose() []byte {
	latest := &Message{By: nobody}
	contributions := make([][]byte, len(m.states))
	for r, s := range m.states {
		if s == nil {
			continue
		}
		contributions[r] = s.Value
		if s.By > latest.By {
			latest = s
		}
	}
	if latest.By != nobody {
		return latest.Accepted
	}
	return m.combine(contributions, m.absent)
}

// decide ends the current instance.
func (m *Member) decide(value []byte) {
	m.last, m.lastValue = m.last+1, value
	m.begin(m.next)
	m.decided(m.last, value)
}

// toOthers sends a message to all other processes that are not absent.
func (m *Member) toOthers(msg *Message) {
	for r, absent := range m.absent {
		if r != m.me && !absent {
			m.send(r, msg)
		}
	}
}
