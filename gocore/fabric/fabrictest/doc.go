// Package fabrictest is the conformance test of transports: what fabric's
// contract promises, checked on transports that live in one process, one for
// each rank, each polled by a goroutine of its own. What a transport does not
// have according to its Caps is checked to be refused.
//
// Tests of a transport that need more than Run, such as a peer that does not
// poll, can use World too.
//
// Only tests import it; it may import any layer.
package fabrictest
