package launch

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gormapy/gocore/boot/pmi"
	"gormapy/gocore/job"
	"gormapy/gocore/sys"
)

const (
	failGrace      = 300 * time.Millisecond // from SIGTERM to SIGKILL after a failure
	interruptGrace = 800 * time.Millisecond // the same after Ctrl-C, for programs that save their work
	giveUpDelay    = 5 * time.Second        // from SIGKILL until an unkillable rank is left alone
	tick           = 20 * time.Millisecond
	// traceDelay is how long the line about a failed rank waits for the rest of that
	// rank's output.
	traceDelay = 100 * time.Millisecond
	// repeatDelay distinguishes a second Ctrl-C from a signal that came twice, to the
	// process and to its group (timeout(1) sends both).
	repeatDelay = 200 * time.Millisecond
	// helperDelay is how long helper processes of ended ranks may take to end
	// by themselves (multiprocessing's resource tracker removes shared memory).
	helperDelay = 100 * time.Millisecond
	// maxGuardians bounds how often a guardian that was killed is replaced.
	maxGuardians = 8
)

const (
	statusTimeout    = 124
	statusBrokenPipe = 128 + int(unix.SIGPIPE)
)

// launcher is one job in progress. All its methods run on the main goroutine, which
// waits for other processes only in its select statements.
type launcher struct {
	opt     *Options
	begun   time.Time
	tasks   []*task // by rank
	binding *binding
	outputs *outputs // nil without --output-dir

	checking  *checking  // nil without --check
	recording *recording // nil without --trace and --summary

	seg    *job.Segment   // of the first node
	segs   []*job.Segment // of all nodes; but for tests there is one
	ranks  []*rank
	byPID  map[int]*rank
	live   int
	reaper *reaper

	guard     *guardian
	guardians int

	pmi     *pmi.Server
	stuckAt time.Time // when to end the job if MPICH programs make no progress

	stdout, stderr *sink
	broken         chan unwritable
	messages       *messageWriter
	signals        chan os.Signal

	failures    []*rank // that the job has gone on without
	stopping    bool    // the job is being ended, with status
	status      int
	interrupted time.Time // when the last signal that ends the job came
	termAt      time.Time // when to send SIGTERM; the zero time is never
	stacks      []stackRequest
	stacksBy    time.Time // when they are awaited no longer
	killAt      time.Time
	giveUpAt    time.Time
	verdict     string // the line about the first failure, until it is printed
	verdictAt   time.Time
	verdictOf   *rank
}

// Main is mpiexec with the command line args (os.Args). It returns the exit status. It
// must be called on the main goroutine, locked to the main thread.
func Main(args []string) int {
	if IsGuardian(args) {
		Guard(args[1])
		return 0
	}
	if isSentry(args) {
		standSentry()
		return 0
	}
	if isRedirector(args) {
		return redirect(args[2:])
	}
	opt, err := Parse(args[1:])
	switch {
	case err != nil:
		return complain(err)
	case opt.Help:
		fmt.Print(help)
		return 0
	case opt.Version:
		fmt.Println("mpiexec (gormapy) " + Version)
		return 0
	}
	status, err := Run(opt)
	if err != nil {
		return complain(err)
	}
	return status
}

// complain prints an error in one line and returns its exit status.
func complain(err error) int {
	fmt.Fprintln(os.Stderr, "mpiexec: "+err.Error())
	var program *ProgramError
	switch {
	case errors.As(err, new(UsageError)):
		return 2
	case errors.As(err, &program):
		return program.Status
	}
	return 1
}

// Run runs one job and returns its exit status, or an error if it could not be started.
func Run(opt *Options) (int, error) {
	begun := time.Now()
	if err := sys.PrepareRuntime(); err != nil {
		return 0, err
	}
	parent := os.Getenv(parentVariable)
	if parent == "" {
		if status, yes, err := handOver(opt); yes || err != nil {
			return status, err
		}
	} else if os.Getenv(recoveryVariable) != "" {
		opt.Recovery = true
	}
	tasks, err := plan(opt)
	if err != nil {
		return 0, err
	}
	l := &launcher{opt: opt, begun: begun, tasks: tasks, byPID: map[int]*rank{}, broken: make(chan unwritable, 1),
		signals: make(chan os.Signal, 64)}
	if l.binding, err = newBinding(opt.Bind); err != nil {
		return 0, err
	}
	if opt.OutputDir != "" {
		if l.outputs, err = openOutputs(opt.OutputDir, len(tasks), opt.Merge); err != nil {
			return 0, err
		}
	}
	l.stdout = newSink(1, l.onUnwritable("standard output"))
	l.stderr = newSink(2, func(error) {}) // the job does not end because its errors can't be written
	if sameFile(1, 2) {
		l.stderr = l.stdout
	}
	l.messages = newMessageWriter(l.stderr)
	l.catchSignals()
	if parent != "" {
		l.endWithParent()
	}
	nodes, err := pretendedNodes(os.Getenv(nodesVariable), len(tasks))
	if err != nil {
		return 0, err
	}
	if l.segs, err = job.CreateNodes(nodes); err != nil {
		return 0, err
	}
	l.seg = l.segs[0]
	if err := l.seg.SetParent(parent); err != nil {
		return 0, err
	}
	if l.pmi, err = pmi.NewServer(l.seg.ID(), applications(tasks)); err != nil {
		return 0, fmt.Errorf("make the PMI-1 server: %w", err)
	}
	if l.recording, err = newRecording(opt, len(tasks)); err != nil {
		return 0, err
	}
	defer l.recording.close()
	if l.checking, err = newChecking(opt, len(tasks), l.messages.print); err != nil {
		return 0, err
	}
	defer l.checking.close()
	for _, seg := range l.segs {
		seg.Head.LauncherStartTime = sys.StartTime(os.Getpid())
		atomic.StoreUint32(&seg.Head.LauncherPID, uint32(os.Getpid()))
	}
	if l.reaper, err = newReaper(); err != nil {
		return 0, err
	}
	// Before the ranks: they may start processes that only the guardian ends if the
	// launcher is killed at once.
	if err := l.startGuardian(); err != nil {
		return 0, err
	}
	defer func() { l.guard.stop() }()
	if opt.Verbose {
		l.describeJob()
	}
	if err := l.start(); err != nil {
		l.cleanUp()
		return 0, err
	}
	l.wait()
	if !l.stopping {
		l.status = l.recoveredStatus()
	}
	l.finish()
	return l.status, nil
}

// catchSignals subscribes to the signals that concern the job. SIGHUP stays ignored if
// it was (nohup). SIGINT does not, although shells without job control ignore it for
// background jobs: it is sent to a launcher to end the job.
func (l *launcher) catchSignals() {
	signal.Notify(l.signals, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGTSTP, unix.SIGCONT, unix.SIGUSR1, unix.SIGUSR2)
	if !signal.Ignored(unix.SIGHUP) {
		signal.Notify(l.signals, unix.SIGHUP)
	}
}

// startGuardian starts a guardian, the first or another, for the existing process
// groups.
func (l *launcher) startGuardian() error {
	g, err := startGuardian(l.seg.ID())
	if err != nil {
		return err
	}
	l.guard = g
	l.guardians++
	l.reaper.watch(g.pid)
	for _, r := range l.ranks {
		g.add(r.pid)
	}
	return nil
}

// start starts all ranks. If it returns an error, some ranks may run.
func (l *launcher) start() error {
	null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open /dev/null: %w", err)
	}
	defer unix.Close(null)
	s := &starter{launcher: l, null: null, stdin: 0}
	terminal := isTerminal(0)
	var typed int
	if terminal {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			return fmt.Errorf("make a pipe for standard input: %w", err)
		}
		defer unix.Close(p[0])
		s.stdin, typed = p[0], p[1]
	}
	for i := range l.tasks {
		r, err := s.start(i)
		if err != nil {
			return err
		}
		atomic.StoreUint32(&l.record(i).ChildPID, uint32(r.pid))
		l.ranks = append(l.ranks, r)
		l.byPID[r.pid] = r
		l.live++
		l.guard.add(r.pid)
		l.reaper.watch(r.pid)
		if l.opt.Verbose {
			l.describeStart(r)
		}
	}
	if terminal {
		// Not earlier: the ranks must inherit the default.
		signal.Ignore(unix.SIGTTIN)
		go copyTerminal(0, os.NewFile(uintptr(typed), "pipe"))
	}
	return nil
}

// wait serves the job until the last rank ended.
func (l *launcher) wait() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var timeout <-chan time.Time
	if l.opt.Timeout > 0 {
		timeout = time.After(l.opt.Timeout)
	}
	for l.live > 0 {
		select {
		case pid := <-l.reaper.ended:
			l.onEnd(pid)
		case s := <-l.signals:
			l.onSignal(s.(unix.Signal))
		case report := <-l.pmi.Reports():
			l.onPMI(report)
		case u := <-l.broken:
			l.onBroken(u)
		case <-timeout:
			l.onTimeout()
		case <-ticker.C:
			if l.onTick(time.Now()) {
				return
			}
		}
	}
}

// onEnd handles the end of a child. A rank is not reaped before the job's end: while it
// is a zombie, no other process gets its pid or process group, and neither peers nor
// this launcher can reach another process by them.
func (l *launcher) onEnd(pid int) {
	r := l.byPID[pid]
	if r == nil {
		ws, _ := reap(pid)
		l.onGuardianEnd(ws)
		return
	}
	ws, resources := statusOf(pid)
	r.ended, r.status = true, ws
	r.usage.end, r.usage.resources = time.Now(), resources
	r.pmi = l.pmi.Ended(r.number)
	l.live--
	if l.checking != nil {
		l.checking.Ended(r.number)
	}
	first, recovers := false, r.failed() && l.recovers(r)
	if r.failed() && !recovers {
		// Before Exited: peers take an end without Abort for a clean one.
		first = l.segment(r.number).Abort(r.number, r.code()) && !r.pmi.Aborted
		l.onOtherNodes(r.number, func(seg *job.Segment) { seg.Abort(r.number, r.code()) })
		l.completeAbort(r.number, r.code())
	}
	// In all nodes before a rank acts on it.
	l.onOtherNodes(r.number, func(seg *job.Segment) { seg.SetExited(r.number, int(ws)) })
	l.segment(r.number).Exited(r.number, int(ws))
	l.onOtherNodes(r.number, func(seg *job.Segment) { seg.RingAll() })
	if l.opt.Verbose {
		l.describeEnd(r)
	}
	if recovers {
		l.failures = append(l.failures, r)
		l.messages.print(fmt.Sprintf("mpiexec: rank %d (pid %d) %s%s", r.number, pid, endText(ws), goingOnText(l.live)))
		_ = unix.Kill(-pid, unix.SIGTERM)
		return
	}
	if !r.failed() || l.stopping {
		return
	}
	if caller, code, ok := l.aborted(); ok && !first {
		l.onAbort(caller, code)
		return
	}
	l.fail(r, abortStatus(r.code()), fmt.Sprintf("mpiexec: rank %d (pid %d) %s%s", r.number, pid, endText(ws), r.unfinished()))
	_ = unix.Kill(-pid, unix.SIGTERM) // its children in its group
}

// recovers reports whether the job goes on although r has failed. MPICH's programs, which have no record, can't. Ranks of gormapy on several
// nodes use the PMI-1 server, too.
func (l *launcher) recovers(r *rank) bool {
	if !l.opt.Recovery || l.stopping || r.pmi.Joined && l.record(r.number).PID() == 0 {
		return false
	}
	l.completeAbort(r.number, r.code())
	_, _, aborted := l.aborted()
	return !aborted
}

// recoveredStatus returns the exit status of a job that has gone on after failures: that of the first rank that ended with one; otherwise 0,
// unless all ranks were killed.
func (l *launcher) recoveredStatus() int {
	for _, r := range l.failures {
		if r.status.Exited() {
			return r.status.ExitStatus()
		}
	}
	if len(l.failures) == len(l.ranks) {
		return abortStatus(l.failures[0].code())
	}
	return 0
}

// completeAbort finishes the Abort of a rank that died in the middle of it.
func (l *launcher) completeAbort(rank, code int) {
	h := l.segment(rank).Head
	if atomic.LoadUint32(&h.AbortState) == 0 && atomic.LoadUint32(&h.AbortClaim) == uint32(rank+1) {
		atomic.StoreInt32(&h.AbortCode, int32(code))
		atomic.StoreUint32(&h.AbortState, 1)
		l.segment(rank).RingAll()
	}
}

// onGuardianEnd replaces a guardian that was killed.
func (l *launcher) onGuardianEnd(ws unix.WaitStatus) {
	l.guard.reaped()
	if l.guardians >= maxGuardians {
		return
	}
	err := l.startGuardian()
	switch {
	case err != nil:
		l.messages.print("mpiexec: the guardian " + endText(ws) + "; " + err.Error())
	case l.opt.Verbose:
		l.messages.print(fmt.Sprintf("mpiexec: the guardian %s; process %d is the new one", endText(ws), l.guard.pid))
	}
}

// onAbort ends the job because a rank called Abort.
func (l *launcher) onAbort(caller, code int) {
	if caller < 0 || caller >= len(l.ranks) {
		l.fail(nil, abortStatus(code), fmt.Sprintf("mpiexec: the job was aborted with code %d", code))
		return
	}
	pid := l.record(caller).PID()
	if pid == 0 {
		pid = l.ranks[caller].pid
	}
	l.fail(l.ranks[caller], abortStatus(code), fmt.Sprintf("mpiexec: rank %d (pid %d) called Abort(%d)", caller, pid, code))
}

// fail stops the job because of its first failure.
func (l *launcher) fail(r *rank, status int, text string) {
	l.verdict = text + stoppingText(l.live, len(l.ranks))
	if l.outputs != nil && r != nil {
		l.verdict += "; see " + l.outputs.errors(r.number)
	}
	l.verdictOf, l.verdictAt = r, time.Now().Add(traceDelay)
	l.stop(status, unix.SIGTERM, failGrace)
}

// stop begins to end the job: it sends sig to all ranks, and SIGKILL after grace.
func (l *launcher) stop(status int, sig unix.Signal, grace time.Duration) {
	l.stopping, l.status = true, status
	l.termAt, l.killAt = time.Time{}, time.Now().Add(grace)
	l.broadcast(sig)
	l.broadcast(unix.SIGCONT) // a stopped process does not act on the signal
}

func (l *launcher) broadcast(sig unix.Signal) {
	for _, r := range l.ranks {
		r.signal(sig)
	}
}

// kill sends SIGKILL to all ranks.
func (l *launcher) kill(now time.Time) {
	l.termAt, l.killAt = time.Time{}, time.Time{}
	if l.giveUpAt.IsZero() {
		l.giveUpAt = now.Add(giveUpDelay)
	}
	l.broadcast(unix.SIGKILL)
}

// ends reports whether sig ends the job when the launcher gets it.
func ends(sig unix.Signal) bool {
	switch sig {
	case unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT:
		return true
	}
	return false
}

// onSignal handles a signal to the launcher.
func (l *launcher) onSignal(sig unix.Signal) {
	switch sig {
	case unix.SIGTSTP:
		// SIGSTOP for the launcher, since it catches SIGTSTP.
		l.broadcast(sig)
		_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
	case unix.SIGCONT, unix.SIGUSR1, unix.SIGUSR2:
		l.broadcast(sig)
	default:
		now := time.Now()
		repeated := now.Sub(l.interrupted) < repeatDelay
		again := l.stopping
		l.interrupted = now
		switch {
		case repeated:
		case again:
			l.kill(now)
		default:
			// The flag first: a rank that gets the signal checks whether all ranks get
			// it.
			for _, seg := range l.segs {
				atomic.StoreUint32(&seg.Head.Interrupt, 1)
			}
			l.stop(128+int(sig), sig, interruptGrace)
		}
	}
}

// unwritable is an output that can't be written.
type unwritable struct {
	name string
	err  error
}

// onUnwritable returns the function that a sink of that name calls when it can't be
// written.
func (l *launcher) onUnwritable(name string) func(error) {
	return func(err error) {
		select {
		case l.broken <- unwritable{name, err}:
		default: // another output ends the job already
		}
	}
}

// onBroken stops the job because its output can't be written.
func (l *launcher) onBroken(u unwritable) {
	switch {
	case l.stopping:
	case u.err == unix.EPIPE: // as programs before "| head" end
		l.stop(statusBrokenPipe, unix.SIGTERM, failGrace)
	default:
		l.messages.print(fmt.Sprintf("mpiexec: can't write %s: %v%s", u.name, u.err, stoppingText(l.live, len(l.ranks))))
		l.stop(1, unix.SIGTERM, failGrace)
	}
}

// onTimeout prints what every rank does and lets the ranks print their stacks.
func (l *launcher) onTimeout() {
	if l.stopping {
		return
	}
	l.stopping, l.status = true, statusTimeout
	l.termAt = time.Now().Add(stackDelay)
	l.messages.print(fmt.Sprintf("mpiexec: time-out after %v; what the ranks do:", l.opt.Timeout))
	for i := range l.ranks {
		for _, line := range l.describe(i) {
			l.messages.print("mpiexec:   " + line)
		}
	}
	if l.outputs != nil {
		l.messages.print("mpiexec: their stacks, if they print them, are in " + filepath.Join(l.opt.OutputDir, "rank.N.*"))
	}
	l.messages.flush(tick)
	l.askForStacks()
}

// onTick does what is due. It reports whether to stop waiting for the ranks.
func (l *launcher) onTick(now time.Time) (giveUp bool) {
	due := func(t time.Time) bool { return !t.IsZero() && !now.Before(t) }
	if caller, code, ok := l.aborted(); ok && !l.stopping {
		l.onAbort(caller, code)
	}
	if due(l.stuckAt) && !l.stopping {
		l.onStuck()
	}
	if l.checking != nil && !l.stopping && l.checking.hangs(l, now) {
		l.onHang()
	}
	if l.verdict != "" && (due(l.verdictAt) || l.verdictOf != nil && l.verdictOf.silent()) {
		l.reportVerdict()
	}
	switch {
	case due(l.termAt) && l.awaitsStacks(now): // later
	case due(l.termAt):
		l.stop(l.status, unix.SIGTERM, failGrace)
	case due(l.killAt):
		if !l.interrupted.IsZero() && l.status != statusTimeout {
			l.messages.print(fmt.Sprintf("mpiexec: %s did not end within %v of %s; killed", rankList(l.running()), interruptGrace,
				unix.SignalName(unix.Signal(l.status-128))))
		}
		l.kill(now)
	case due(l.giveUpAt):
		l.messages.print(fmt.Sprintf("mpiexec: %s can't be killed (in an uninterruptible system call); left alone", rankList(l.running())))
		return true
	}
	return false
}

// onHang ends a job that is checked and whose ranks wait for ever.
func (l *launcher) onHang() {
	l.checking.hung = true
	l.messages.print("mpiexec --check: all ranks wait, and none can go on:")
	for i := range l.ranks {
		for _, line := range l.describe(i) {
			l.messages.print("mpiexec:   " + line)
		}
	}
	l.fail(nil, 1, "mpiexec --check: the job is ended")
}

func (l *launcher) reportVerdict() {
	if l.verdict != "" {
		l.messages.print(l.verdict)
		l.verdict = ""
	}
}

// running returns the ranks that have not ended.
func (l *launcher) running() []int {
	var out []int
	for _, r := range l.ranks {
		if !r.ended {
			out = append(out, r.number)
		}
	}
	return out
}

// finish ends remaining processes and passes on remaining output after the last rank
// has ended.
func (l *launcher) finish() {
	if l.stopping {
		l.cleanUp()
	} else {
		l.hangUp()
	}
	l.drain()
	l.reportRefusals()
	l.reportVerdict()
	l.report()
	l.status = l.checking.finish(l.status)
	if l.opt.Unkind != "" && l.status != 0 {
		l.messages.print(l.opt.unkindText())
	}
	if l.opt.Verbose {
		for _, line := range l.summary() {
			l.messages.print("mpiexec: " + line)
		}
	}
	l.messages.flush(time.Second)
}

// cleanUp ends all processes of the job. Those in the group of a rank got the rank's
// signal and have the same time to end. Those outside get a signal now and have less
// time.
func (l *launcher) cleanUp() {
	groups := map[int]bool{}
	for _, r := range l.ranks {
		groups[r.pid] = true
	}
	byMark, byGroup := marked(l.seg.ID()), grouped(groups)
	is := func(pid int) bool { return byMark(pid) || len(groups) > 0 && byGroup(pid) }
	strayed := func(pid int) bool { return byMark(pid) && !byGroup(pid) }
	for _, pid := range members(strayed) {
		sys.Signal(pid, strayed, unix.SIGTERM, unix.SIGCONT)
	}
	helperEnd := time.Now().Add(helperDelay)
	for hurry := l.live > 0; !hurry; {
		now := time.Now()
		graced := now.Before(l.killAt) && len(groups) > 0 && len(members(byGroup)) > 0
		helping := now.Before(helperEnd) && len(members(is)) > 0
		if !graced && !helping {
			break
		}
		select {
		case s := <-l.signals:
			hurry = ends(s.(unix.Signal)) && now.Sub(l.interrupted) >= repeatDelay
		case <-time.After(5 * time.Millisecond):
		}
	}
	sweep(is)
	for _, r := range l.ranks {
		r.reap()
	}
}

// hangUp sends SIGHUP to background processes of ranks that ended cleanly, as a terminal
// does at the end of a session: processes that are to stay are started with setsid or
// nohup. Helpers that are about to end get the time for it.
func (l *launcher) hangUp() {
	groups := map[int]bool{}
	for _, r := range l.ranks {
		if r.reap(); unix.Kill(-r.pid, 0) == nil { // others are in its group, so its number is not reused
			groups[r.pid] = true
		}
	}
	if len(groups) == 0 {
		return
	}
	is := grouped(groups)
	for end := time.Now().Add(helperDelay); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if len(members(is)) == 0 {
			return
		}
	}
	for _, pid := range members(is) {
		sys.Signal(pid, is, unix.SIGHUP, unix.SIGCONT)
	}
}
