package launch

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// binding is the assignment of ranks to CPUs.
type binding struct {
	allowed unix.CPUSet // the launcher's
	cores   [][]int     // the allowed CPUs, by core; nil to bind nothing
}

// newBinding makes the binding of a job. With bind, each rank gets a core.
func newBinding(bind bool) (*binding, error) {
	b := &binding{}
	if err := unix.SchedGetaffinity(0, &b.allowed); err != nil {
		if !bind {
			return b, nil // it is for -v only
		}
		return nil, fmt.Errorf("--bind-to core: ask on which CPUs this process may run: %w", err)
	}
	if bind {
		b.cores = coresOf(cpus(&b.allowed), siblings)
	}
	return b, nil
}

// coresOf groups CPUs that are threads of one core: siblings names it.
func coresOf(cpus []int, siblings func(cpu int) string) [][]int {
	var out [][]int
	at := map[string]int{}
	for _, cpu := range cpus {
		name := siblings(cpu)
		i, known := at[name]
		if !known || name == "" {
			i, at[name] = len(out), len(out)
			out = append(out, nil)
		}
		out[i] = append(out[i], cpu)
	}
	return out
}

// siblings returns the list of the threads of a CPU's core, which names the core, or
// "" if it is not known.
func siblings(cpu int) string {
	list, _ := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu))
	return strings.TrimSpace(string(list))
}

// of returns the CPUs of a rank. The ranks take the cores in turn.
func (b *binding) of(rank int) []int {
	if len(b.cores) == 0 {
		return cpus(&b.allowed)
	}
	return b.cores[rank%len(b.cores)]
}

// with calls start, which starts the process of rank, while this thread is bound to
// the CPUs of that rank: a process inherits the CPUs of the thread that starts it.
// Only the main thread may call it. That thread is locked, so Go starts no thread of
// its own from it.
func (b *binding) with(rank int, start func() error) error {
	if len(b.cores) == 0 {
		return start()
	}
	var set unix.CPUSet
	for _, cpu := range b.of(rank) {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("can't bind rank %d to CPU %s: %w", rank, cpuList(b.of(rank)), err)
	}
	defer func() { _ = unix.SchedSetaffinity(0, &b.allowed) }()
	return start()
}

// text returns the CPUs of rank as a clause.
func (b *binding) text(rank int) string {
	list := b.of(rank)
	text := "CPUs " + cpuList(list)
	if len(list) == 1 {
		text = "CPU " + cpuList(list)
	}
	if len(b.cores) == 0 {
		return "on " + text
	}
	return fmt.Sprintf("bound to core %d (%s)", rank%len(b.cores), text)
}

// shared returns a clause about ranks that share cores, "" if there are enough cores.
func (b *binding) shared(ranks int) string {
	if n := len(b.cores); n > 0 && ranks > n {
		return fmt.Sprintf("%s share %s in turn", count(ranks, "rank"), count(n, "core"))
	}
	return ""
}

// cpus returns the members of a set.
func cpus(set *unix.CPUSet) []int {
	var out []int
	for cpu, left := 0, set.Count(); left > 0; cpu++ {
		if set.IsSet(cpu) {
			out = append(out, cpu)
			left--
		}
	}
	return out
}

// cpuList returns CPUs in the form "0-3,8".
func cpuList(cpus []int) string {
	var parts []string
	for i := 0; i < len(cpus); {
		last := i
		for last+1 < len(cpus) && cpus[last+1] == cpus[last]+1 {
			last++
		}
		part := strconv.Itoa(cpus[i])
		if last > i {
			part += "-" + strconv.Itoa(cpus[last])
		}
		parts = append(parts, part)
		i = last + 1
	}
	return strings.Join(parts, ",")
}
