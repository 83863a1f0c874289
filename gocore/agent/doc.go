// Package agent keeps the job segments of several nodes in step. One rank of each node
// is its agent: it tells the agents of the other nodes what changes in its segment, and
// writes what they tell into the entries of their ranks (the shadows, see package job).
//
// # Protocol
//
// The agents' links are a transport of package tcp, in which an agent has the number of its
// rank, and whose secret is derived from the job's. So a link and its messages are authenticated
// (encrypted, if those of the ranks are), and messages keep their order. An agent writes only the
// shadows of the ranks of the node that a message comes from.
//
//	status  rank, job.Status     when it differs from what this link was told last
//	card    rank, card           once, when the rank has published it
//	mail    from, to, mail       each mail for a rank of the receiver's node
//	abort   rank, code           once; the receiver aborts its segment likewise
//	claim   hash                 a rank of the node fails, and would print a traceback
//	verdict answer               to a claim: granted or denied, see job/claim.go
//	agent   rank, agent's card   the rank is now the agent of its node
//	cut     rank, rank, why      their nodes don't reach each other, or what comes from one of them
//	                             to the other is forged, see partition.go
//	probe                        to be acknowledged by the kernel there
//	evicted rank, why            its node has to leave the job
//
// The agent looks for changes when its doorbell is rung (job.Segment.RingAgent), which
// follows every change. It compares, so a message that finds no room is sent later, with
// what is true then. Only mails are queued.
//
// Who writes what: the records of local ranks the ranks and the launcher, as package job
// says; the shadows this agent alone; an Abort whoever comes first.
//
// # Succession
//
// When the process of an agent ends, the lowest rank of the node that lives and has not
// finalized takes its place (job.Segment.Heir): it makes an agent of its own, connects to those
// of the other nodes, whose cards are in the segment, and tells them first that it is the agent
// now. They tell it everything again, with the last mails, and pass on who it is to the others,
// because two nodes that lose their agents at once know only the old ones. With two nodes
// nobody can: they lose each other. An agent that hands over (its rank has finalized) tells who
// its successor is before it leaves, so that both may do it at the same time.
//
// # The address of a node
//
// An agent tries all addresses of the others, and those that answer have proved that they know the
// job's secret. So the address of this host that the first link uses leads to the other hosts,
// which can't be said of each address that a host has. The agent records it in the segment
// (job.Segment.SetAddress) for transports that have to choose one. An agent that was told an
// interface (GORMAPY_TCP_IF) records an address of that one.
//
// # The end of a node
//
// An agent leaves when all ranks of its node have finalized or ended, and everybody has
// been told and has got it (fabric.Disconnecter). When a link ends because the other agent's
// process has ended or has left, and there is a rank that can take its place, this has heirTime
// to do it. If none does, and the host refuses connections to where the agent listened, or there is
// no such rank, the node has left the job: its ranks that have not ended have
// ended for this node (Ended, Unreachable unless they had finalized), and an agent that comes
// later is refused. The kernel ends a link whose other host does not acknowledge within the
// time of Options.TCP.Patience, less settleTime. Then the agents decide who leaves: see partition.go. A
// process that is stopped, or computes, is no reason: its kernel acknowledges.
//
// It may import fabric, fabric/tcp, job, log and seal.
package agent
