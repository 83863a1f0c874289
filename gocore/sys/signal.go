package sys

import "golang.org/x/sys/unix"

// Signal sends signals to process pid if it is the one that is meant, as is tells
// of what goes by that number now. Where there are pidfds no other process gets
// them, whoever is given the number meanwhile.
func Signal(pid int, is func(pid int) bool, signals ...unix.Signal) {
	fd, ok, err := PidFD(pid)
	if ok && err == nil {
		defer unix.Close(fd)
	}
	if err == unix.ESRCH || !is(pid) {
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

// Group is a process group, known by its leader, which must not have been reaped
// when the Group is opened.
type Group struct {
	leader int
	age    uint64
	fd     int // of the leader, -1 without
}

// OpenGroup opens the group whose leader process leader is.
func OpenGroup(leader int) *Group {
	g := &Group{leader: leader, fd: -1}
	if fd, ok, err := PidFD(leader); ok && err == nil {
		g.fd = fd
	}
	g.age = StartTime(leader)
	return g
}

// Kill ends the processes of the group. If it is empty by now, and its number is
// another group's, that one is left alone.
func (g *Group) Kill() {
	if g.fd >= 0 {
		switch unix.PidfdSendSignal(g.fd, unix.SIGKILL, nil, pidfdProcessGroup) {
		case nil, unix.ESRCH:
			return
		}
	}
	// A number that a group still has is not given to a process: who has it now and
	// is not the leader leads another group.
	if now := StartTime(g.leader); now == 0 || now == g.age {
		_ = unix.Kill(-g.leader, unix.SIGKILL)
	}
}
