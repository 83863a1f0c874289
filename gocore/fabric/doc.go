// Package fabric is the contract between the transports and the layers above,
// modelled on verbs because the other interfaces can be expressed in it:
// registered memory with a remote key, an endpoint to each peer, completions
// that are polled, capabilities as numbers.
//
// Each transport declares its capabilities (Caps). What a transport lacks is
// emulated once, above, in p2p and rma by short messages, never inside a
// transport.
//
// Progress is the caller's: a thread that waits calls Poll, and the progress
// engine calls it when no thread waits. A transport starts no thread of its own.
//
// The contract is in fabric.go; package fabrictest checks it on every transport.
//
// It may import settings.
package fabric
