// Package log writes the decisions of the core to standard error or a file, as far as
// GORMAPY_LOG asks for them: launcher, transports, paths of windows, ends of peers. A
// line has time, rank, level and area, and gives the exact cause, in lower case:
//
//	gormapy 15:04:05.123456 rank 2 debug shm: copies from rank 3 are refused: …
//
// It is for decisions, which are rare. The code that transfers a message or a Put does
// not call it, so that it costs nothing there.
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

// setup returns the settings, which it reads when the first line may have to be written.
var setup = sync.OnceValue(func() (s struct {
	max level
	fd  int
}) {
	s.fd = unix.Stderr
	for i, name := range settings.Log.Choices {
		if name == settings.Log.Value() {
			s.max = level(i)
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
	mu     sync.Mutex
	sender = "pid " + strconv.Itoa(os.Getpid())
)

// SetRank sets the rank that lines name from now on.
func SetRank(rank int) {
	mu.Lock()
	defer mu.Unlock()
	sender = "rank " + strconv.Itoa(rank)
}

// Errorf writes about events that end or damage the job.
func Errorf(area, format string, args ...any) { write(levelError, area, format, args) }

// Warnf writes about things that users should change.
func Warnf(area, format string, args ...any) { write(levelWarn, area, format, args) }

// Infof writes about decisions for the whole job.
func Infof(area, format string, args ...any) { write(levelInfo, area, format, args) }

// Debugf writes about decisions for one object or peer.
func Debugf(area, format string, args ...any) { write(levelDebug, area, format, args) }

// Debugging reports whether Debugf writes. It is for callers whose message is expensive
// to make.
func Debugging() bool { return setup().max >= levelDebug }

func write(l level, area, format string, args []any) {
	s := setup()
	if l > s.max {
		return
	}
	put(s.fd, settings.Log.Choices[l], area, fmt.Sprintf(format, args...))
}

// put writes one line by one system call, so that lines of several ranks do not
// mix. It does not use os.Stderr: Go ends a process whose standard error is closed.
func put(fd int, level, area, text string) {
	mu.Lock()
	defer mu.Unlock()
	text = strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
	line := fmt.Sprintf("gormapy %s %s %s %s: %s\n", time.Now().Format("15:04:05.000000"), sender, level, area, text)
	for {
		if _, err := unix.Write(fd, []byte(line)); err != unix.EINTR {
			return
		}
	}
}
