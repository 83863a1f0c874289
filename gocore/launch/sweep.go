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

// sweepPause is between two scans.
const sweepPause = 2 * time.Millisecond

// execLimit bounds the wait for a process that executes another program.
const execLimit = time.Second

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
		for end := time.Now().Add(execLimit); err == nil && len(env) == 0 && executes(pid) && time.Now().Before(end); {
			time.Sleep(100 * time.Microsecond)
			env, err = os.ReadFile(dir + "/environ")
		}
		return err == nil && (bytes.HasPrefix(env, mark) || bytes.Contains(env, append([]byte{0}, mark...)))
	}
}

// executes reports whether process pid, which has no environment, is in execve(2): the
// memory of the new program has none until its stack is made. Kernel threads and
// processes that have ended have no memory.
func executes(pid int) bool {
	f := stat(pid)
	return len(f) > 48 && f[0] != "Z" && f[0] != "X" && f[20] != "0" && f[48] == "0" // state, vsize, env_end
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
	f := stat(pid)
	if len(f) < 4 || f[0] == "Z" || f[0] == "X" {
		return 0, 0
	}
	group, _ = strconv.Atoi(f[2])
	session, _ = strconv.Atoi(f[3])
	return group, session
}

// stat returns the fields of proc_pid_stat(5) from the third on; the name before them may
// contain anything. It returns nil if there is no such process.
func stat(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
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
