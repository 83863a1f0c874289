package tcp

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric/fabrictest"
)

// Both ends of a connection within a host send without pauses, whatever the system does otherwise.
func TestConnectionsWithinAHostAreNotPaced(t *testing.T) {
	w := fabrictest.NewWorld(t, 2, create)
	exchange(t, w)
	for i, r := range w.Ranks {
		r.Pause()
		fd := inside(r).pairs[1-i].fd
		control, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		require.NoError(t, err)
		assert.Equal(t, unpaced, control)
	}
}

func TestWithinHost(t *testing.T) {
	fd, err := socket(netip.IPv6LinkLocalAllNodes())
	require.NoError(t, err)
	defer unix.Close(fd)
	assert.False(t, withinHost(fd), "it is not connected")
	assert.False(t, withinHost(-1))
}
