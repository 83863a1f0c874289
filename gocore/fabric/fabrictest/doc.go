// Package fabrictest is the conformance test of transports. Run checks the
// contract in fabric/fabric.go on transports that live in one process, one for
// each rank, each polled by a goroutine of its own. It also checks that
// operations are refused which a transport lacks according to its Caps.
//
// A test of a transport that needs more than Run, such as a peer that does not
// poll, can use World.
//
// Only tests import it; it may import any layer.
package fabrictest
