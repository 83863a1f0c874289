package boot

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"gormapy/gocore/fabric/tcp"
	"gormapy/gocore/settings"
)

// What nodes set has to mean the same, not to be the same text.
func TestNodesThatDiffer(t *testing.T) {
	const fabric = "tcp"
	with := func(tls, mac string) networks {
		t.Setenv(settings.Fabric.Name, fabric)
		t.Setenv(tcp.TLS.Name, tls)
		t.Setenv(tcp.MAC.Name, mac)
		return ownNetworks()
	}
	for _, c := range []struct {
		tls, mac [2]string
		hosts    int
		says     string
	}{
		{[2]string{"", ""}, [2]string{"", ""}, 2, ""},
		{[2]string{"", ""}, [2]string{"auto", "1"}, 2, ""},
		{[2]string{"", "0"}, [2]string{"1", ""}, 2, ""},
		{[2]string{"", ""}, [2]string{"auto", "0"}, 2, "this rank has GORMAPY_TCP_MAC=auto and rank 3 has 0: all must have the same"},
		{[2]string{"", ""}, [2]string{"auto", "0"}, 1, "this rank has GORMAPY_TCP_MAC=auto and rank 3 has 0: all must have the same"},
		{[2]string{"", ""}, [2]string{"auto", "1"}, 1, "this rank has GORMAPY_TCP_MAC=auto and rank 3 has 1: all must have the same"},
		{[2]string{"1", "1"}, [2]string{"auto", "0"}, 2, ""},
		{[2]string{"1", "0"}, [2]string{"1", "1"}, 2, "this rank has GORMAPY_TLS=1 and rank 3 has 0: all must have the same"},
	} {
		here, there := with(c.tls[0], c.mac[0]), with(c.tls[1], c.mac[1])
		err := here.differs(there, 3, c.hosts)
		if c.says == "" {
			assert.NoError(t, err, "%v", c)
		} else {
			assert.EqualError(t, err, c.says)
		}
	}
	here := with("", "")
	there := here
	there.Guards = [2]string{}
	assert.ErrorContains(t, here.differs(there, 3, 2), "another version of gormapy")
	there = here
	there.Fabric = "ofi"
	assert.EqualError(t, here.differs(there, 3, 2), "this rank has GORMAPY_FABRIC=tcp and rank 3 has ofi: all must have the same")
}
