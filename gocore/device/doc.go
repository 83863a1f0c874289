// Package device chooses devices and providers, registers memory with them and
// cuts registered memory into buffers. The transports of MPI (fabric/verbs,
// fabric/ofi) and the back ends of gormapy.rdma (rdmaapi/verbs, rdmaapi/ofi) are
// above it, so that both use the same device, address and provider, and refuse
// with the same words. Queue pairs, endpoints and completions are theirs: their
// data paths promise different things and are measured apart.
//
// # RDMA devices
//
// OpenIB opens the port that an IBRequest names. What is not named is chosen:
//
//   - device: the callers of a host, numbered by their turn, are spread over the
//     usable ones. A device that can't be opened or queried is left out, and its
//     error is told if no other one is usable.
//   - port: the first that is active and has an address. A port of Ethernet is
//     addressed by a GID, one of InfiniBand by its LID too.
//   - GID: RoCE v2 before v1, since only that is routed; then IPv4 before other
//     addresses, and those before link-local ones, which do not reach beyond the
//     link; then the lowest index.
//
// # Providers of libfabric
//
// ChooseOFI takes the first of efa, verbs;ofi_rxm and tcp;ofi_rxm that has what
// the caller needs, the fastest network first, and of a provider's offers the one
// that lacks least. Among equal offers the loopback interface comes first, because
// all ranks of a job are on one host. Other providers are used only when they are
// named: sockets and udp are slower ways to the same networks, and shm has spin
// locks in shared memory, so that a process which is killed while it holds one
// leaves its peers in a call that never returns.
//
// # Settings
//
// GORMAPY_IB_DEV, GORMAPY_IB_PORT, GORMAPY_IB_GID and GORMAPY_OFI_PROV fill what a
// request leaves empty; what a program gives wins. A request that can't be met is
// an Unavailable: it says what was asked for, what there is, and what to do.
//
// # Memory
//
// Access is that of verbs for both libraries. Register of an RDMA device has pages brought in on
// demand where the device refuses to pin them and can do that, and goes without
// remote atomics where the device refuses them. That of a provider draws keys where the
// provider leaves them to the caller, at random, because whoever reaches an
// endpoint needs nothing else, and again if a key is taken. No other refusal is
// tried again.
//
// A Mapping is registered memory of this process's own, a Slab a part of one in
// equal buffers. A child of fork does not get them: the parent's pages would move
// at the next write, away from where the device knows them.
//
// It may import ibverbs, libfabric and settings. Built without cgo it has the
// settings, and no devices.
package device
