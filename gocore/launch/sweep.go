package launch

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gormapy/gocore/sys"
)

// sweepLimit bounds a sweep: a process in an uninterruptible sleep does not end by any
// signal.
const sweepLimit = 10 * time.Second

// sweepPause is between two scans: a process that executes another program has no
// environment to read for a moment.
const sweepPause = 2 * time.Millisecond

// member reports whether process pid belongs to a job.
type member func(pid int) bool

// marked returns membership by environment: descendants that left the process group of
// their rank still have the job's id.
func marked(id string) member {
	mark := []byte(idVariable + "=" + id)
	uid := uint32(os.Getuid())
	return func(pid int) bool {
		dir := "/proc/" + strconv.Itoa(pid)
		var st unix.Stat_t
		if unix.Stat(dir, &st) != nil || st.Uid != uid && uid != 0 {
			return false
		}
		env, err := os.ReadFile(dir + "/environ")
		return err == nil && (bytes.HasPrefix(env, mark) || bytes.Contains(env, append([]byte{0}, mark...)))
	}
}

// grouped returns membership by process group, within the launcher's session.
func grouped(groups map[int]bool) member {
	session, _ := unix.Getsid(0)
	return func(pid int) bool {
		group, sid := processGroup(pid)
		return sid == session && groups[group]
	}
}

// processGroup returns the process group and session of process pid, zeros if it has
// ended. A zombie has ended: init may reap an orphan late.
func processGroup(pid int) (group, session int) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	// Fields 3, 5 and 6 of proc_pid_stat(5); the name may contain anything.
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(f) < 4 || f[0] == "Z" || f[0] == "X" {
		return 0, 0
	}
	group, _ = strconv.Atoi(f[2])
	session, _ = strconv.Atoi(f[3])
	return group, session
}

// members returns the processes of a job, without this one.
func members(is member) []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var out []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid != os.Getpid() && is(pid) {
			out = append(out, pid)
		}
	}
	return out
}

// sweep kills the processes of a job until it finds none twice in a row: one that was
// forked while the list was read is found the next time.
func sweep(is member) {
	end := time.Now().Add(sweepLimit)
	for clean := 0; clean < 2 && time.Now().Before(end); {
		found := members(is)
		for _, pid := range found {
			sys.Signal(pid, is, unix.SIGKILL)
		}
		if len(found) == 0 {
			clean++
		} else {
			clean = 0
		}
		if clean < 2 {
			time.Sleep(sweepPause)
		}
	}
}
