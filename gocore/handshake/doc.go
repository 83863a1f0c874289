// Package handshake lets two processes prove to each other, over a connection, that
// they know a secret, which neither of them sends. Packages fabric/tcp, boot/rendezvous,
// home, rdmaapi/soft and rdmaapi/transfer have a Protocol each.
//
// An Exchange is one side of a handshake. It takes and returns bytes and does not
// depend on sockets, so that it can be driven without blocking. Call, Hear and Tell
// drive it over a connection, and wait.
//
// # Messages
//
// I initiates, A accepts. All numbers are little-endian.
//
//	I: hello      opening, tag, nonce of I
//	A: challenge  opening, nonce of A, proof
//	I: message    length of the body (4 bytes), body, proof
//	A: message    likewise
//	...           alternately, as many as the protocol has
//
// The opening has 16 bytes: "gormapy", the version of the protocol, and its name. The
// tag has 16 bytes of HMAC(secret, "gormapy NAME tag"). It says which secret is meant,
// and reveals nothing of it. A nonce has 32 bytes: random ones or, in a protocol with keys, a
// public key of X25519 that is made for this handshake. HMAC is HMAC-SHA256.
//
// A proof is
//
//	HMAC(secret, "gormapy NAME ROLE" and a zero byte, all that both have said so far, this message up to the proof)
//
// where ROLE is the sender's, initiator or acceptor. That of the challenge covers the hello, and the
// opening and the nonce of A. So the acceptor proves itself first: whoever answers without the secret
// gets nothing from the initiator but the hello, and the initiator goes on to another address. A recorded message is valid for
// no other nonces, position, role or protocol. The lengths in front of the bodies make
// what a proof covers unambiguous. A side may change its secret between two messages
// (Use), as the other side does.
//
// # Keys
//
// When a handshake with keys is over, both sides have two keys that nobody else has, one for
// what I sends, and one for what A sends (Keys):
//
//	HKDF(secret followed by what X25519 gives, salt: SHA-256 of all that was said, "gormapy NAME ROLE key")
//
// of 32 bytes each; HKDF is that of SHA-256. The proofs cover the nonces, so nobody in between can
// have put public keys of his own there without the secret; and who learns the secret later
// can't find out the keys. Package seal uses them. A program that is restricted to the algorithms of FIPS 140-3
// (GODEBUG=fips140=only) has no X25519, and no such handshake: ErrNoKeys.
//
// # Refusals
//
// An acceptor that does not know the tag, or has another version, answers with a
// challenge whose nonce and proof are zero and ends the handshake. Without that an initiator could
// not distinguish it from an acceptor that has evicted the connection and would accept
// another one. Whoever does not begin with the opening is not answered. An initiator
// ends the handshake when the challenge does not begin with the opening, without
// waiting for the rest.
//
// # What it does not do
//
// A tag is no proof: who has seen a hello can repeat it. An acceptor may prefer
// connections that have sent a known tag when it has to evict one, and makes a key and a proof for each, which takes it some
// 100 us. Who knows the tag gets the acceptor's proof for a nonce of his own, and can then try
// secrets without asking again, as he can with the tag itself: a secret must not be one that can be guessed. A refusal
// is no proof either: who is on the way can refuse in the acceptor's place, as he can end the connection. What follows the last message is neither encrypted nor authenticated, unless the
// caller does it with the keys.
//
// It may import only the standard library.
package handshake
