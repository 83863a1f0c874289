package sys

import "golang.org/x/sys/unix"

// Signal sends signals to process pid if intended reports that the process which has
// this number now is the intended one. Where there are pidfds no other process receives
// them, even if it is given the number meanwhile.
func Signal(pid int, intended func(pid int) bool, signals ...unix.Signal) {
	fd, ok, err := PidFD(pid)
	if ok && err == nil {
		defer unix.Close(fd)
	}
	if err == unix.ESRCH || !intended(pid) {
		return
	}
	for _, s := range signals {
		if !ok || err != nil || unix.PidfdSendSignal(fd, s, nil, 0) == unix.ENOSYS {
			_ = unix.Kill(pid, s)
		}
	}
}

// pidfdProcessGroup is PIDFD_SIGNAL_PROCESS_GROUP of linux/pidfd.h, since Linux 6.9.
const pidfdProcessGroup = 1 << 2

// Group is a process group, identified by its leader.
type Group struct {
	leader int
	age    uint64
	fd     int // pidfd of the leader, -1 if there is none
}

// OpenGroup opens the group of a leader. started is the leader's start time, or 0 if that
// is not known; then the leader must not have been reaped.
func OpenGroup(leader int, started uint64) *Group {
	g := &Group{leader: leader, age: started, fd: -1}
	if fd, ok, err := PidFD(leader); ok && err == nil {
		g.fd = fd
	}
	now := StartTime(leader)
	switch {
	case started == 0:
		g.age = now
	case started != now && g.fd >= 0: // reaped, or a stranger
		unix.Close(g.fd)
		g.fd = -1
	}
	return g
}

// Kill kills the processes of the group. If the group is empty by now and its number is
// another group's, Kill does not signal that one.
func (g *Group) Kill() {
	if g.fd >= 0 {
		switch unix.PidfdSendSignal(g.fd, unix.SIGKILL, nil, pidfdProcessGroup) {
		case nil, unix.ESRCH:
			return
		}
	}
	// The kernel gives no process a number that a group still has: a process that has
	// it now and is not the leader leads another group.
	if now := StartTime(g.leader); now == 0 || now == g.age {
		_ = unix.Kill(-g.leader, unix.SIGKILL)
	}
}
