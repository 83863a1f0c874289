// Package seal protects what two processes send each other after a keyed handshake (package
// handshake): whoever is between them can neither change, drop, repeat, reorder or invent
// anything without being found out, and, where it is encrypted, not read it.
//
// It is AES-256-GCM of Go's crypto packages. It is not TLS: there are no certificates and nothing to
// choose, and the two ends are known to each other by the job's secret.
//
// # Records
//
// A Way is one direction of a connection. It seals records: bytes that stay readable, then
// bytes that are encrypted, then a tag of Overhead bytes that covers both. Either part may be
// empty; where nothing is encrypted, the tag is a GMAC. The nonce of a record is its number,
// which both ends count and nobody sends, so a record opens only in its place. Each direction has a key of
// its own: what was sent one way is nothing the other way.
//
// After rekeyAfter records the next key is derived from the last one, at both ends: one key
// never protects so much that the bounds of GCM matter.
//
// A record that does not open says nothing of those after it, so the caller ends the
// connection. An end of the connection itself is not authenticated: a protocol in which it matters
// whether the other side has said everything says so in its last message.
//
// # Conn
//
// A Conn is a net.Conn on which everything is encrypted. Its records are
//
//	u32 length of the data, readable | data | tag
//
// little-endian, of at most maxData bytes of data.
//
// It may import handshake.
package seal
