package launch

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Host is a host that a command line names.
type Host struct {
	Name  string
	Slots int // how many ranks it is to have before the next one; 0: not given
}

// String returns the host as launchers read it. The address of IPv6 is in brackets.
func (h Host) String() string {
	if strings.Contains(h.Name, ":") {
		return fmt.Sprintf("[%s]:%d", h.Name, h.Slots)
	}
	return fmt.Sprintf("%s:%d", h.Name, h.Slots)
}

// hostList reads "a,b:4,[::1]:2".
func hostList(text string) (hosts []Host, err error) {
	for _, h := range strings.Split(text, ",") {
		name, slots := splitSlots(h)
		host := Host{Name: name}
		if slots != "" && slots != "*" {
			if host.Slots, err = strconv.Atoi(slots); err != nil || host.Slots < 1 {
				return nil, fmt.Errorf("%q is not a number of slots", slots)
			}
		}
		if host.Name == "" {
			return nil, fmt.Errorf("%q has no name of a host", text)
		}
		hosts = append(hosts, host)
	}
	return hosts, nil
}

// hostFile reads a file with a host in each line, as MPICH ("host:4") and Open MPI ("host
// slots=4") have it. Comments begin with #.
func hostFile(path string) (hosts []Host, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, reason(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		one, err := hostList(words[0])
		for _, w := range words[1:] {
			if n, found := strings.CutPrefix(w, "slots="); found && err == nil {
				if one[0].Slots, err = strconv.Atoi(n); err != nil || one[0].Slots < 1 {
					err = fmt.Errorf("%q is not a number of slots", n)
				}
			}
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		hosts = append(hosts, one...)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(hosts) == 0 {
		return nil, fmt.Errorf("it names no host")
	}
	return hosts, nil
}

// splitSlots reads host, host:slots, IPv6 or [IPv6]:slots.
func splitSlots(h string) (host, slots string) {
	host = h
	if i := strings.LastIndexByte(h, ':'); i >= 0 && (strings.Count(h, ":") == 1 || strings.HasSuffix(h[:i], "]")) {
		host, slots = h[:i], h[i+1:]
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), slots
}

// isHere reports whether a host is this one.
func isHere(host string) bool {
	here, _ := os.Hostname()
	short, _, _ := strings.Cut(here, ".")
	switch host {
	case "localhost", "127.0.0.1", "::1", here, short:
		return true
	}
	return false
}

// elsewhere reports whether a host of the command line is not this one.
func (o *Options) elsewhere() bool {
	for _, h := range o.Hosts {
		if !isHere(h.Name) {
			return true
		}
	}
	return false
}

// placed returns the hosts with slots for n ranks, in blocks: those that the command line
// gives, else -ppn, else as many on each as on the others, or one more. Hosts that get no
// rank are left out.
func (o *Options) placed(n int) (hosts []Host) {
	for i, h := range o.Hosts {
		switch {
		case h.Slots > 0:
		case o.PerHost > 0:
			h.Slots = o.PerHost
		case i < n%len(o.Hosts):
			h.Slots = n/len(o.Hosts) + 1
		default:
			h.Slots = n / len(o.Hosts)
		}
		if h.Slots > 0 {
			hosts = append(hosts, h)
		}
	}
	return hosts
}
