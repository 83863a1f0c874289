package rendezvous

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

const (
	// candidates is how many ports are tried where none is given.
	candidates = 8
	// The ports that are tried lie below those that Linux gives to connections.
	firstPort, portRange = 20000, 12000
)

// place is where rank 0 may be: each of the hosts with each of the ports.
type place struct {
	hosts []string
	ports []int
	wide  bool // a loopback address may be rank 0's own name for a host that others name otherwise
}

func (p place) String() string {
	hosts := strings.Join(p.hosts, " or ")
	if len(p.ports) == 1 {
		return fmt.Sprintf("%s port %d", hosts, p.ports[0])
	}
	return fmt.Sprintf("%s ports %s", hosts, strings.Trim(fmt.Sprint(p.ports), "[]"))
}

// bind returns the address at which rank 0 listens: all of the host, unless only this
// host can be meant.
func (p place) bind() string {
	if len(p.hosts) == 1 && !p.wide {
		if p.hosts[0] == "localhost" {
			return "127.0.0.1"
		}
		if ip := net.ParseIP(p.hosts[0]); ip != nil && ip.IsLoopback() {
			return p.hosts[0]
		}
	}
	return ""
}

// parsePlace parses host:port.
func parsePlace(address string) (place, error) {
	host, port, err := net.SplitHostPort(address)
	if err == nil && host == "" {
		err = errors.New("no host")
	}
	if err != nil {
		return place{}, fmt.Errorf("the address of rank 0 is %q, which is not of the form host:port (%w)", address, err)
	}
	n, err := parsePort(port)
	if err != nil {
		return place{}, fmt.Errorf("the address of rank 0 is %q: %w", address, err)
	}
	return place{hosts: []string{host}, ports: []int{n}}, nil
}

func parsePort(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 65535 {
		return 0, fmt.Errorf("%q is no port: it must be a number from 1 to 65535", text)
	}
	return n, nil
}

// derivedPorts returns ports that follow from the name of a job.
func derivedPorts(name string) []int {
	var ports []int
	for k := 0; len(ports) < candidates; k++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "gormapy port %d %s", k, name))
		port := firstPort + int(binary.LittleEndian.Uint32(sum[:])%portRange)
		if !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports
}

// derivedSecret returns the secret of a job from one that users give, which may be empty,
// and the name of the job.
func derivedSecret(given []byte, name string) []byte {
	key := sha256.Sum256(given) // FIPS 140-3 allows no short keys
	m := hmac.New(sha256.New, key[:])
	m.Write([]byte("gormapy job " + name))
	return m.Sum(nil)
}

// firstHost returns the first host of one of Slurm's lists: "a1b" of "a[1-3,07]b,c".
func firstHost(list string) string {
	var b strings.Builder
	for rest := list; rest != "" && rest[0] != ','; {
		if rest[0] != '[' {
			b.WriteByte(rest[0])
			rest = rest[1:]
			continue
		}
		inner, after, _ := strings.Cut(rest[1:], "]")
		if i := strings.IndexAny(inner, "-,"); i >= 0 {
			inner = inner[:i]
		}
		b.WriteString(inner)
		rest = after
	}
	return b.String()
}
