package launch

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gormapy/gocore/check"
	"gormapy/gocore/check/events"
	"gormapy/gocore/settings"
)

// envExact is the environment variable that says whether each access of a rank is looked at, however many there are.
const envExact = "GORMAPY_JOB_CHECK_EXACT"

// checking is the checker of a job: mpiexec --check.
type checking struct {
	*check.Checker
	streams []*events.Stream
	opt     *Options
	print   func(string)
	json    *os.File    // of --check=json:FILE
	seen    []time.Time // when each rank was last seen to wait in a call
	all     int64       // since when all wait, by events.Now; 0 if they do not
	hung    bool        // all ranks wait, and none can go on
	answers *os.File    // what the ranks read: findings as they are found, and answers to marks
	limited int         // how many ranks the file says to have stopped to tell of their loads and stores
	unseen  int         // how many lines it names whose memory is not looked at
	blind   bool        // it says that loads and stores are not seen
	failed  bool        // the file says that the checker has failed
}

// newChecking begins to check a job. It returns nil if the options ask for no check.
func newChecking(opt *Options, ranks int, print func(string)) (*checking, error) {
	if !opt.Check {
		return nil, nil
	}
	c := &checking{opt: opt, print: print}
	fd, err := unix.MemfdCreate("gormapy-findings", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make the file of findings: %w", err)
	}
	c.answers = os.NewFile(uintptr(fd), "findings")
	for range ranks {
		s, err := events.New()
		if err != nil {
			c.close()
			return nil, err
		}
		c.streams = append(c.streams, s)
	}
	if opt.CheckFile != "" {
		if c.json, err = os.Create(opt.CheckFile); err != nil {
			c.close()
			return nil, UsageError(fmt.Sprintf("--check=json:%s: %v", opt.CheckFile, reason(err)))
		}
		c.header()
	}
	c.Checker = check.New(c.streams, c.tell, func(mark int64) {
		c.remark()
		c.put(c.answers, map[string]any{"mark": mark})
	})
	go c.Run()
	return c, nil
}

func (c *checking) header() {
	c.put(c.json, map[string]any{"gormapy_check": 1, "ranks": len(c.streams)})
}

// put writes a line of JSON. A file that can't be written is no reason to end the job.
func (c *checking) put(to *os.File, line any) { _ = check.WriteJSON(to, line) }

// tell passes on a finding when it is found, so that no crash of the program loses it.
func (c *checking) tell(f *check.Finding) {
	c.put(c.answers, f)
	if c.json != nil {
		c.put(c.json, f)
		return
	}
	c.print("mpiexec --check found " + f.String())
}

// variables returns the environment variables by which a rank finds its stream and the findings.
func (c *checking) variables(rank int) []string {
	if c == nil {
		return nil
	}
	// Each array on pages of its own, which are protected: the kernel does not copy from or to them for other ranks.
	exact := ""
	if c.opt.CheckExact {
		exact = "1"
	}
	return []string{envExact + "=" + exact, settings.SharedArrays.Name + "=1", settings.OneCopy.Name + "=0", events.EnvStream + "=" + c.streams[rank].Path(), fmt.Sprintf("GORMAPY_JOB_FINDINGS=/proc/%d/fd/%d", os.Getpid(), c.answers.Fd())}
}

const (
	hungAfter = 3 * time.Second
	// glimpse is how long a rank may be seen not to wait: it looks for signals now and then.
	glimpse = 300 * time.Millisecond
)

// hangs reports whether all ranks that have not ended wait in calls, have told of nothing else for some time, and have one thread
// each: then none of them can go on. A rank tells of a call before it waits in it, so the checker has to look once more after all
// were seen to wait.
func (c *checking) hangs(l *launcher, now time.Time) bool {
	if c.seen == nil {
		c.seen = make([]time.Time, len(l.ranks))
	}
	all := len(l.ranks) > 0
	for i, r := range l.ranks {
		if l.record(i).Waiting() {
			c.seen[i] = now
		}
		all = all && (r.ended || now.Sub(c.seen[i]) < glimpse)
	}
	if !all {
		c.all = 0
	} else if c.all == 0 {
		c.all = events.Now()
	}
	return all && c.Idle(c.all) > hungAfter
}

// remark writes to the file what has not been looked at.
func (c *checking) remark() {
	if c.json == nil {
		return
	}
	if len(c.Limited) > c.limited {
		c.limited = len(c.Limited)
		c.put(c.json, map[string]any{"limited": slices.Sorted(slices.Values(c.Limited))})
	}
	if len(c.Unseen) > c.unseen {
		c.unseen = len(c.Unseen)
		c.put(c.json, map[string]any{"unseen": c.Unseen})
	}
	if c.Blind && !c.blind {
		c.blind = true
		c.put(c.json, map[string]any{"blind": true})
	}
	if c.Failure != "" && !c.failed {
		c.failed = true
		c.put(c.json, map[string]any{"failure": c.Failure})
	}
}

// finish reports what was found, and returns the exit status of a job that has ended with status.
func (c *checking) finish(status int) int {
	if c == nil {
		return status
	}
	counted := 0
	found := c.Finish(status == statusTimeout || c.hung)
	for _, f := range found {
		if !f.Contested {
			counted++
		}
	}
	if status == 0 && counted > 0 {
		status = 1
	}
	if c.json != nil {
		// once more, with the final counts
		if err := c.json.Truncate(0); err == nil {
			_, _ = c.json.Seek(0, 0)
			c.header()
			for _, f := range found {
				c.put(c.json, f)
			}
			c.limited, c.failed, c.unseen, c.blind = 0, false, 0, false
		}
		c.remark()
		c.put(c.json, map[string]any{"end": true, "findings": counted, "status": status})
		return status
	}
	if c.Failure != "" {
		c.print("mpiexec --check: internal error, after which nothing was looked at: please report it: " + c.Failure)
	}
	if len(c.Limited) > 0 {
		slices.Sort(c.Limited)
		c.print(fmt.Sprintf("mpiexec --check: of %s only the first loads and stores were looked at; --check=exact looks at all", rankList(c.Limited)))
	}
	if c.Blind {
		c.print("mpiexec --check: only calls were looked at: loads and stores are not seen on this processor")
	}
	if n := len(c.Unseen); n > 0 {
		more := ""
		if n > unseenShown {
			more = fmt.Sprintf(" and %d more", n-unseenShown)
		}
		c.print(fmt.Sprintf("mpiexec --check: only calls were looked at, not loads and stores, of memory that neither NumPy nor MPI has allocated: %s%s",
			strings.Join(c.Unseen[:min(n, unseenShown)], ", "), more))
	}
	c.print(summary(found, counted))
	if c.opt.Verbose {
		c.print(fmt.Sprintf("mpiexec --check: %d operations, %d loads and stores", c.Events[events.Op], c.Events[events.Access]))
	}
	return status
}

// unseenShown is how many lines whose memory was not looked at are named.
const unseenShown = 3

func summary(found []*check.Finding, counted int) string {
	switch {
	case len(found) == 0:
		return "mpiexec --check: nothing was found in this run"
	case counted == 1:
		return "mpiexec --check: 1 finding"
	}
	return fmt.Sprintf("mpiexec --check: %d findings", counted)
}

func (c *checking) close() {
	if c == nil {
		return
	}
	for _, s := range c.streams {
		s.Close()
	}
	_ = c.answers.Close()
	if c.json != nil {
		_ = c.json.Close()
	}
}

// setCheck reads --check=exact and --check=json:FILE, or both with a comma between; what follows --check without "=" is not its
// argument.
func setCheck(o *Options, value string) error {
	o.Check = true
	if strings.HasSuffix(o.Unkind, separateModel) {
		return errCheckedCopies
	}
	if value == "" {
		return nil
	}
	for _, what := range strings.Split(value, ",") {
		file, json := strings.CutPrefix(what, "json:")
		switch {
		case what == "exact":
			o.CheckExact = true
		case json && file != "":
			if st, err := os.Stat(file); err != nil || st.IsDir() { // one that exists is opened, whatever its folder is
				if err := writable(file); err != nil {
					return usagef("--check=%s: %v", value, reason(err))
				}
			}
			o.CheckFile = file
		default:
			return usagef("--check=%s: write --check, --check=exact, --check=json:FILE or --check=exact,json:FILE", value)
		}
	}
	return nil
}

// separateModel is the word of --unkind for windows that keep a private and a public copy.
const separateModel = "separate"

var errCheckedCopies = usagef("--check and --unkind=%s are for one run each: what takes one copy into the other would be checked", separateModel)

// setUnkind reads --unkind, --unkind=SEED, --unkind=separate and --unkind=SEED,separate.
func setUnkind(o *Options, value string) error {
	seed, model, both := strings.Cut(value, ",")
	if seed == separateModel && !both {
		seed, model, both = "", seed, true
	}
	if both && model != separateModel || strings.Trim(seed, "0123456789") != "" {
		return usagef("--unkind=%s: expecting a number, which is a seed, %s, or both with a comma between them", value, separateModel)
	}
	if both && o.Check {
		return errCheckedCopies
	}
	if seed == "" {
		seed = strconv.Itoa(1 + rand.IntN(999_999))
	}
	o.Unkind = seed
	if both {
		o.Unkind += "," + separateModel
	}
	o.Env = append(o.Env, settings.Unkind.Name+"="+o.Unkind)
	return nil
}

// unkindText says how a job that has failed is run again in the same order.
func (o *Options) unkindText() string {
	return fmt.Sprintf("mpiexec: operations came late, in the order of --unkind=%s", o.Unkind)
}
