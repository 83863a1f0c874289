// Package fabric is the contract between the transports and the layers above,
// shaped after verbs because the others can be expressed in it: registered
// memory with a remote key, an endpoint to each peer, completions that are
// polled, capabilities as numbers.
//
// Each transport declares what it can do. What it can't is emulated once,
// above, in p2p and rma by short messages, never inside a transport.
//
// Progress is the caller's: Poll is called by whoever waits, from its own
// thread, and by the progress engine when nobody waits. A transport starts no
// thread of its own.
//
// It may import only the standard library.
package fabric
