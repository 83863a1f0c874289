package mpi

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lifeVariable makes the test binary a process that goes from before Init to after
// Finalize.
const lifeVariable = "MPI_TEST_LIFE"

// live prints what calls say before Init, between Init and Finalize, and after Finalize.
func live() int {
	say := func(when string) {
		fmt.Printf("%s: initialized %t, finalized %t\n", when, Initialized(), Finalized())
		fmt.Printf("%s: size %s\n", when, ErrorText(max(0, -CommSize(CommWorld))))
		_, code := P2P(KindSend, CommWorld, 0, 0, typeOf("BYTE"), ProcNull, 0)
		fmt.Printf("%s: send %s\n", when, ErrorText(code))
		fmt.Printf("%s: reset %s\n", when, ErrorText(Reset()))
	}
	fmt.Println("before: world", WorldInfo(), "peer", PeerInfo(0), "waits", Waits())
	say("before")
	fmt.Println("finalize before init:", Finalize(true))
	fmt.Println("init:", Init(), Init())
	say("between")
	fmt.Println("finalize:", Finalize(true), Finalize(true))
	say("after")
	fmt.Println("init again:", ErrorText(Init()))
	return 0
}

func TestCallsAreForTheTimeBetweenInitAndFinalize(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), lifeVariable+"=1")
	child.Stderr = os.Stderr
	out, err := child.Output()
	require.NoError(t, err)
	const missing = "MPI_ERR_OTHER: MPI is not initialized: call MPI.Init() first"
	const over = "MPI_ERR_OTHER: MPI was finalized: no communication is possible any more"
	assert.Equal(t, `before: world null peer null waits null
before: initialized false, finalized false
before: size `+missing+`
before: send `+missing+`
before: reset `+missing+`
finalize before init: 0
init: 0 0
between: initialized true, finalized false
between: size MPI_SUCCESS: no error
between: send MPI_SUCCESS: no error
between: reset MPI_SUCCESS: no error
finalize: 0 0
after: initialized true, finalized true
after: size `+over+`
after: send `+over+`
after: reset `+over+`
init again: MPI_ERR_OTHER: MPI was finalized: a process can initialize it once only
`, string(out))
}
