// Package device chooses devices and providers, registers memory with them and
// cuts registered memory into buffers. The transports of MPI (fabric/verbs,
// fabric/ofi) and the back ends of gormapy.rdma (rdmaapi/verbs, rdmaapi/ofi) are
// above it, so that both use the same device, address and provider, and refuse
// with the same errors. Queue pairs, endpoints and completions are left to them,
// because their data paths make different promises.
//
// # RDMA devices
//
// OpenIB opens the port that an IBRequest names. It chooses what is not named:
//
//   - device: the processes of a host take turns among the usable ones that are nearest
//     to the cores that they are bound to (near.go). A device that can't be opened or queried
//     is left out. Its error is returned if no device is usable.
//   - port: the first that is active and has an address. A port of Ethernet is
//     addressed by a GID, one of InfiniBand by its LID too.
//   - GID: RoCE v2 before v1, because only v2 is routed; then IPv4 before other
//     addresses, and those before link-local ones, which do not reach beyond the
//     link; then the lowest index.
//
// # Providers of libfabric
//
// ChooseOFI takes the first of efa, verbs;ofi_rxm and tcp;ofi_rxm (the fastest network
// first) that has what the caller needs, and the provider's offer with the most features.
// Among equal offers the loopback interface comes first if all ranks of the job are on one
// host. If not, the address comes first by which this host has been found to reach the others
// (OFIRequest.Address): a host may have interfaces that lead nowhere, or to itself (docker0).
// Other providers are used only if they are named: sockets and udp are slower on the same networks, and shm has spin
// locks in shared memory, so that a process which is killed while it holds one
// leaves its peers in a call that never returns.
//
// # Settings
//
// GORMAPY_IB_DEV, GORMAPY_IB_PORT, GORMAPY_IB_GID and GORMAPY_OFI_PROV fill the fields
// that a request leaves empty. The program's values come first. The error for a request
// that can't be met is an Unavailable, with what was asked for, what there is, and what to
// do.
//
// # Memory
//
// Access is that of verbs for both libraries. Register of an RDMA device uses on-demand
// paging if the device refuses to pin pages and has it, and drops remote atomics if the
// device refuses them. Register of a provider draws random keys where the provider leaves
// them to the caller, because a process that reaches an endpoint needs only the key, and
// draws again if a key is taken. No other refusal is tried again.
//
// A Mapping is registered memory of this process's own, and a Slab is a part of one, cut
// into equal buffers. A child of fork does not inherit them: the parent's next write would
// move its pages away from where the device knows them.
//
// It may import ibverbs, libfabric, settings and sys. Built without cgo it has the
// settings, and no devices.
package device
