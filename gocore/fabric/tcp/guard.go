package tcp

import (
	"fmt"
	"os"
	"strings"

	"gormapy/gocore/settings"
)

// Guard is what protects what ranks send each other after the handshake.
type Guard uint8

const (
	// Clear frames are sent as they are.
	Clear Guard = iota
	// Authenticated frames can be read on their way, but not changed, dropped, repeated or invented.
	Authenticated
	// Encrypted frames can't be read either.
	Encrypted
	guards
)

func (g Guard) String() string {
	return [...]string{"neither authenticated nor encrypted", "authenticated", "authenticated and encrypted"}[g]
}

// note returns what is said of a connection beside its addresses.
func (g Guard) note() string {
	return [...]string{"", ", authenticated", ", encrypted"}[g]
}

// The settings of guards.
var (
	TLS = settings.Add(settings.Setting{Name: "GORMAPY_TLS", Default: "0", Choices: []string{"0", "1"}, Reader: settings.ByRanks,
		Meaning: "whether what ranks send each other by TCP is encrypted, the same for all of a job: with AES-256-GCM, keys of X25519 and the job's secret (it is not the protocol TLS)"})
	MAC = settings.Add(settings.Setting{Name: "GORMAPY_TCP_MAC", Default: "auto", Choices: []string{"auto", "1", "0"}, Reader: settings.ByRanks,
		Meaning: "whether what ranks send each other by TCP is authenticated, the same for all of a job: auto is between hosts, 0 is for networks on which nobody else can send"})
)

// GuardFor returns the guard that the settings ask for, for peers on a number of hosts.
func GuardFor(hosts int) (Guard, error) {
	for _, s := range []*settings.Setting{TLS, MAC} {
		if s.Problem() != "" { // what is not understood is not taken for less
			return 0, fmt.Errorf("%s is %q, which it can't be: choose from %s", s.Name, os.Getenv(s.Name), strings.Join(s.Choices, ", "))
		}
	}
	switch mac := MAC.Value(); {
	case TLS.On():
		return Encrypted, nil
	case mac == "1", mac == "auto" && hosts > 1:
		return Authenticated, nil
	}
	return Clear, nil
}
