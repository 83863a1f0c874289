// Package agreement lets processes agree on a value although some of them die meanwhile: the protocol behind
// MPI_Comm_agree and MPI_Comm_shrink. A Member is the part of one process. It sends and receives through functions that it
// is given, and waits for nothing.
//
// # Problem
//
// Processes 0 to n-1 each contribute a value, in instances 1, 2, 3 …. In each instance every process that lives gets the
// same decision (uniform agreement: one that has died got the same, too), and the decision counts the contribution of each
// process that lives. Processes die at any time, also between two messages that they send at once.
//
// What is known of deaths is right but late: a process that is reported as gone is dead, or takes no part any more, and
// every death is reported to each process at some time. The reports come in any order, and may overtake messages of the
// dead. Messages between two processes keep their order, and those between living ones arrive.
//
// # Protocol
//
// A process is absent, as far as another one knows, if it is gone or has left. The coordinator of a process
// is the lowest process that is not absent. Because deaths are never reported wrongly, all processes see the same coordinator in the
// end, and what a process knows of deaths can be passed on: who is addressed as the coordinator knows that all lower
// ones are absent, and so does who is addressed by it. In an instance,
//
//  1. each process sends its state to its coordinator, and again when it has another one: its contribution, and the value that it has
//     accepted last, with the coordinator that had proposed it, if there is one (State);
//  2. the coordinator waits for the states of all that are not absent. One that is not process 0 asks for
//     them (Ask). If any state has an accepted value, it proposes the one with the highest coordinator. Otherwise it combines the
//     contributions (Propose);
//  3. a process that gets a proposal of its coordinator accepts it (Accept). It ignores those of coordinators that it knows to be absent;
//  4. when all processes that are not absent have accepted, the coordinator decides, and tells (Decide).
//
// An instance begins at a process when its program has called it and the one before has been decided there. A process that has
// decided instance k answers whatever it is sent of k by the decision. It knows no earlier ones: that instance k has been decided
// means that every living process has contributed to it, and so has decided k-1.
//
// A process that forgets all, because the communicator is freed, sends its last decision to the others (Leave), and is absent
// from then on.
//
// # Why it is right
//
// Let coordinator c decide v. All processes that are not dead had accepted v from c. A later coordinator d has the states
// of all that are not dead, among them its own, and each was sent after its sender knew that c is absent, so after it had accepted v. No
// state has a value of a coordinator between c and d other than v, for the same reason. So d proposes v.
//
// Every instance ends: each coordinator waits only for processes that live, and takes no part, or answers. A process whose
// program has not called is waited for, as in any collective.
//
// A process that has left, or finalized, has decided its instances or will never decide them, so for the others it is as good as
// dead.
//
// The test explores all orders of messages, reports, deaths and departures for three processes, and random ones for more.
//
// The algorithm is that of Chandra and Toueg with a rotating coordinator (Unreliable Failure Detectors for Reliable
// Distributed Systems, 1996), made simpler by reports of deaths that are never wrong.
//
// It may import only the standard library.
package agreement
