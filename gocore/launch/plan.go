package launch

import (
	"os"
	"path/filepath"
	"strings"
)

// task is a program that can be started as some ranks.
type task struct {
	*Program
	number int    // of the program on the command line, from 0
	path   string // of its file
	env    []string
}

// title returns the part of the command line that identifies the program.
func (t *task) title() string {
	title := filepath.Base(t.Name)
	if len(t.Args) > 0 && len(t.Args[0]) < 60 && t.Args[0] != "" && !strings.HasPrefix(t.Args[0], "-") {
		title += " " + t.Args[0]
	}
	return title
}

// plan finds all programs, so that an error is known before any rank is started, and
// returns the task of each rank.
func plan(opt *Options) ([]*task, error) {
	var tasks []*task
	shared := environ(os.Environ(), opt.Env)
	for i := range opt.Programs {
		t := &task{Program: &opt.Programs[i], number: i}
		t.env = environ(shared, t.Env)
		if t.Dir != "" {
			t.env = environ(t.env, []string{"PWD=" + inDir(workingDir(), t.Dir)})
		}
		var err error
		if t.path, err = findProgram(t.Name, t.Dir, searchPath(t.env)); err != nil {
			return nil, err
		}
		for range t.Ranks {
			tasks = append(tasks, t)
		}
	}
	return tasks, nil
}

// applications returns the number of each rank's program.
func applications(tasks []*task) []int {
	out := make([]int, len(tasks))
	for r, t := range tasks {
		out[r] = t.number
	}
	return out
}

func workingDir() string {
	dir, _ := os.Getwd()
	return dir
}
