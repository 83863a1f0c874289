package launch

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gormapy/gocore/home"
	"gormapy/gocore/job"
)

// # Jobs away
//
// While an engine runs the job, this process stays: it is the home of the ranks (package
// home), and prints what it prints of jobs on this host. The engine has this process's
// standard streams and process group, and the ranks' output does not pass through here.
//
// A signal to the group or from the terminal reaches the engine, too; one to this process
// alone is passed on. A sentry, a process that does nothing else, tells which of the two it
// was. If this process is killed, the engine gets SIGTERM, and ends the job.

const (
	// sentryDelay is how long a signal may take to the sentry.
	sentryDelay = 100 * time.Millisecond
	// answerDelay is how long the ranks may take to say what they do.
	answerDelay = time.Second
	// awayStackDelay is stackDelay for ranks on other hosts, whose output takes a way.
	awayStackDelay = time.Second
	// collectDelay bounds the wait for the recordings of the other ranks when one fails.
	collectDelay = 3 * time.Second
	// engineDelay is how long the engine may take to end the job when a rank has failed, or
	// when it was asked to.
	engineDelay = 5 * time.Second
	// lateDelay is for what the ranks say when the engine has ended already.
	lateDelay = 200 * time.Millisecond
)

// away is a job that an engine runs.
type away struct {
	opt    *Options
	engine *engine
	begun  time.Time
	home   *home.Home
	pid    int // of the engine
	ended  chan unix.WaitStatus

	ranks   map[int]*guest
	absent  map[int][]string // what others of their node say of ranks that have not connected
	sentry  *sentry
	pending map[unix.Signal]time.Time // signals that the sentry has not seen yet

	status int    // of the job, if it is known better than by the engine; else 0
	lost   *guest // the first rank whose connection ended without a word
	lostAt time.Time

	asking    time.Time // until when the ranks may say what they do at the time-out
	printing  []*guest  // ranks that are to print their stacks, in turn
	printed   time.Time // when the last one was told to
	stacksAt  time.Time // when to end the job after the ranks have printed their stacks
	collectAt time.Time // until when the recordings of all ranks may come after a failure
	termAt    time.Time // when to send the engine SIGTERM
	killAt    time.Time
	urged     bool // the engine was told to end the job, which it had not done by itself
	timedOut  bool
}

// guest is a rank.
type guest struct {
	home.Hello
	link    *home.Link
	gone    bool     // it has said that it ends, or has ended
	waits   bool     // it waits for heard
	final   bool     // it has finalized
	lines   []string // what it does
	says    bool     // it has said that itself
	record  *home.Message
	granted bool
}

// home returns what the ranks of a job away are told of their home, but for where it is.
func (o *Options) home() *home.Where {
	return &home.Where{Record: o.Trace != "" || o.Summary, Timeout: o.Timeout}
}

// runAway runs the job by an engine, and returns its exit status.
func runAway(o *Options, e *engine, args []string) (int, error) {
	a := &away{opt: o, engine: e, begun: time.Now(), ranks: map[int]*guest{}, absent: map[int][]string{}, ended: make(chan unix.WaitStatus, 1),
		pending: map[unix.Signal]time.Time{}}
	var err error
	if a.home, err = home.Listen(o.Ranks(), job.Now); err != nil {
		return 0, err
	}
	defer a.home.Close()
	where := o.home()
	where.Addresses, where.Secret = a.home.Where()
	if a.sentry, err = startSentry(); err != nil {
		return 0, err
	}
	defer a.sentry.stop()
	signals := catchAway()
	// By this thread, which lives as long as this process: its end sends the engine SIGTERM.
	a.pid, err = syscall.ForkExec(e.program, append([]string{e.program}, args...), &syscall.ProcAttr{
		Env:   environ(environ(os.Environ(), nil), where.Variables()),
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM},
	})
	if err != nil {
		return 0, fmt.Errorf("hand over to %s: %w", e.program, err)
	}
	go func() {
		var ws unix.WaitStatus
		for {
			if _, err := unix.Wait4(a.pid, &ws, 0, nil); err != unix.EINTR {
				break
			}
		}
		a.ended <- ws
	}()
	return a.finish(a.wait(signals), signals), nil
}

// wait serves the job until the engine has ended, and returns how.
func (a *away) wait(signals <-chan os.Signal) unix.WaitStatus {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var timeout <-chan time.Time
	if a.opt.Timeout > 0 {
		timeout = time.After(a.opt.Timeout)
	}
	for {
		select {
		case e := <-a.home.Events():
			a.onEvent(e)
		case s := <-signals:
			a.onSignal(s.(unix.Signal))
		case <-timeout:
			a.onTimeout()
		case now := <-ticker.C:
			a.onTick(now)
		case ws := <-a.ended:
			return ws
		}
	}
}

// onSignal handles a signal to this process. One that ends the job is why it ends: the ranks that
// are lost from now on have not failed.
func (a *away) onSignal(s unix.Signal) {
	a.pending[s] = time.Now().Add(sentryDelay)
	if ends(s) && a.status == 0 {
		a.status = 128 + int(s)
		a.termAt = time.Now().Add(engineDelay) // flux wants two Ctrl-C, and programs may ignore one
	}
}

// onTick does what is due.
func (a *away) onTick(now time.Time) {
	due := func(t *time.Time) bool {
		if t.IsZero() || now.Before(*t) {
			return false
		}
		*t = time.Time{}
		return true
	}
	for s, end := range a.pending {
		switch {
		case a.sentry.seen(s):
			delete(a.pending, s)
		case now.After(end):
			delete(a.pending, s)
			_ = unix.Kill(a.pid, s)
		}
	}
	a.printNext()
	switch {
	case due(&a.asking):
		a.reportTimeout()
	case due(&a.stacksAt):
		a.everyone(&home.Message{Kind: home.End, Code: statusTimeout})
		a.termAt = now.Add(engineDelay)
	case due(&a.collectAt):
		a.grant()
	case due(&a.termAt):
		if a.status != 0 { // not every engine ends the ranks when it is ended
			a.everyone(&home.Message{Kind: home.End, Code: a.status})
		}
		a.urged = true
		_ = unix.Kill(a.pid, unix.SIGTERM)
		_ = unix.Kill(a.pid, unix.SIGCONT)
		a.killAt = now.Add(engineDelay)
	case due(&a.killAt):
		_ = unix.Kill(a.pid, unix.SIGKILL)
	}
}

// onEvent takes what has happened to a rank.
func (a *away) onEvent(e home.Event) {
	r := a.ranks[e.Link.Hello.Rank]
	switch {
	case e.Message == nil && !e.Over:
		if r == nil && e.Link.Hello.Rank < a.opt.Ranks() {
			a.ranks[e.Link.Hello.Rank] = &guest{Hello: e.Link.Hello, link: e.Link}
			a.greet(e.Link)
			return
		}
		e.Link.Close()
	case r == nil || r.link != e.Link:
	case e.Over:
		if !r.gone && !r.final && a.status == 0 && (a.lost == nil || e.At.Before(a.lostAt)) {
			if a.lost == nil {
				a.termAt = time.Now().Add(engineDelay)
			}
			a.lost, a.lostAt = r, e.At
		}
		r.gone = true
		a.grantIfComplete()
	default:
		a.onMessage(r, e.Message)
	}
}

// greet tells a rank that has just connected what the others were told.
func (a *away) greet(l *home.Link) {
	if !a.collectAt.IsZero() {
		_ = l.Send(&home.Message{Kind: home.Collect})
	}
	if !a.asking.IsZero() {
		_ = l.Send(&home.Message{Kind: home.Describe})
	}
}

func (a *away) onMessage(r *guest, m *home.Message) {
	switch m.Kind {
	case home.State:
		r.says = true
		for n, lines := range m.Lines {
			switch g := a.ranks[n]; {
			case g == nil:
				a.absent[n] = a.located(lines, r.Host)
			case g.Node == r.Node && g.lines == nil:
				g.lines = a.located(lines, g.Host)
			}
		}
		if !slices.ContainsFunc(a.all(), func(g *guest) bool { return g == nil || !g.says && !g.gone }) && !a.asking.IsZero() {
			a.asking = time.Now()
		}
	case home.Record:
		r.record = m
		a.grantIfComplete()
	case home.Finalized:
		r.final = true
	case home.Bye:
		r.gone = true
		_ = r.link.Send(&home.Message{Kind: home.Heard})
	case home.Peer:
		// Whose connection ended first is the first to have failed.
		g := a.ranks[m.Rank]
		if ws := unix.WaitStatus(m.Code); g != nil && g.Node == r.Node && a.status == 0 && (a.lost == nil || a.lost == g) {
			a.fail(g, abortStatus(exitStatus(ws)), endText(ws))
		}
	case home.Failed:
		r.gone, r.waits = true, true
		if a.fail(r, abortStatus(m.Code), m.How) && (a.opt.Trace != "" || a.opt.Summary) {
			a.collectAt = time.Now().Add(collectDelay)
			a.everyone(&home.Message{Kind: home.Collect})
		}
		a.grantIfComplete()
	}
}

// fail notes the job's first failure, and reports whether it is.
func (a *away) fail(r *guest, status int, how string) bool {
	if a.status != 0 || a.timedOut {
		return false
	}
	live := a.opt.Ranks() - 1
	for _, g := range a.ranks {
		if g.gone && g != r {
			live--
		}
	}
	a.status = status
	a.say(fmt.Sprintf("rank %d (%s, pid %d) %s%s", r.Rank, r.Host, r.PID, how, stoppingText(live, a.opt.Ranks())) + a.see(r))
	a.termAt = time.Now().Add(engineDelay)
	return true
}

// see returns a clause about the file with the errors of a rank, on its host.
func (a *away) see(r *guest) string {
	if a.opt.OutputDir == "" {
		return ""
	}
	o := outputs{dir: a.opt.OutputDir, merge: a.opt.Merge}
	return "; see " + o.errors(r.Rank) + " on " + r.Host
}

// grantIfComplete lets ranks that fail go on if all recordings have come that can.
func (a *away) grantIfComplete() {
	for _, g := range a.all() {
		if !a.collectAt.IsZero() && (g == nil || g.record == nil && (!g.gone || g.waits && !g.granted)) {
			return
		}
	}
	a.grant()
}

func (a *away) grant() {
	a.collectAt = time.Time{}
	for _, g := range a.ranks {
		if g.waits && !g.granted {
			g.granted = true
			_ = g.link.Send(&home.Message{Kind: home.Heard})
		}
	}
}

// all returns the ranks in order, nil for those that have not connected.
func (a *away) all() []*guest {
	list := make([]*guest, a.opt.Ranks())
	for n := range list {
		list[n] = a.ranks[n]
	}
	return list
}

// everyone sends a message to all ranks. The messages are short: they find room, also where
// the rank is stopped.
func (a *away) everyone(m *home.Message) {
	for _, g := range a.ranks {
		if !g.gone || g.waits && !g.granted {
			_ = g.link.Send(m)
		}
	}
}

// say prints a line. The engine writes to the same standard error: a line is written in one
// piece.
func (a *away) say(line string) { fmt.Fprintf(os.Stderr, "mpiexec: %s\n", line) }
