// Package log writes what the core decides, for whoever asks with GORMAPY_LOG:
// which launcher, transports and ways, and when peers end. A line has time,
// rank, level and area, and gives the exact cause, in lower case:
//
//	gormapy 15:04:05.123456 rank 2 debug shm: copies from rank 3 are refused: …
//
// It is for decisions, which are rare. Nothing on the way of a message or of a
// Put calls it, so that it costs nothing there when it is off.
//
// It may import settings.
package log

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gormapy/gocore/settings"
)

type level int

const (
	levelError level = iota
	levelWarn
	levelInfo
	levelDebug
)

// setup is read once, when the first line may have to be written.
var setup = sync.OnceValue(func() (s struct {
	most level
	fd   int
}) {
	s.fd = unix.Stderr
	for i, name := range settings.Log.Choices {
		if name == settings.Log.Value() {
			s.most = level(i)
		}
	}
	if path := settings.LogFile.Value(); path != "" {
		fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND|unix.O_CLOEXEC, 0o666)
		if err != nil {
			put(s.fd, "warn", "settings", fmt.Sprintf("%s is %q, which can't be opened: %v; lines go to standard error", settings.LogFile.Name, path, err))
		} else {
			s.fd = fd
		}
	}
	return s
})

var (
	mu  sync.Mutex
	who = "pid " + strconv.Itoa(os.Getpid())
)

// SetRank names this process in lines from now on.
func SetRank(rank int) {
	mu.Lock()
	defer mu.Unlock()
	who = "rank " + strconv.Itoa(rank)
}

// Errorf writes about what ends or damages the job.
func Errorf(area, format string, args ...any) { write(levelError, area, format, args) }

// Warnf writes about what users should change.
func Warnf(area, format string, args ...any) { write(levelWarn, area, format, args) }

// Infof writes about decisions for the whole job.
func Infof(area, format string, args ...any) { write(levelInfo, area, format, args) }

// Debugf writes about decisions for one object or peer.
func Debugf(area, format string, args ...any) { write(levelDebug, area, format, args) }

// Debugging reports whether Debugf writes, where finding out what to write takes time.
func Debugging() bool { return setup().most >= levelDebug }

func write(l level, area, format string, args []any) {
	s := setup()
	if l > s.most {
		return
	}
	put(s.fd, settings.Log.Choices[l], area, fmt.Sprintf(format, args...))
}

// put writes one line by one system call, so that lines of several ranks do not
// mix. Not through os.Stderr: Go ends a process whose standard error is closed.
func put(fd int, level, area, text string) {
	mu.Lock()
	defer mu.Unlock()
	text = strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
	line := fmt.Sprintf("gormapy %s %s %s %s: %s\n", time.Now().Format("15:04:05.000000"), who, level, area, text)
	for {
		if _, err := unix.Write(fd, []byte(line)); err != unix.EINTR {
			return
		}
	}
}
