"""RDMA in the vocabulary of verbs, over devices and over software.

A program opens a `Context` of a device, makes a `ProtectionDomain`, registers memory in it (`MemoryRegion`),
makes a `CompletionQueue` and a `QueuePair`, connects that to one of a peer, posts work requests and polls for
their completions. The back ends are ``verbs`` (libibverbs), ``ofi`` (libfabric), ``tcp`` and ``shm``, which are
software with the same semantics that runs anywhere: ``python -m gormapy.rdma devices`` lists the devices here.

MPI is not needed and not initialized; ranks of a job can connect by their communicator.

    import numpy as np
    from gormapy import rdma

    with rdma.Context("tcp0") as context:
        pd = context.alloc_pd()
        source, target = pd.register(np.arange(10)), pd.register(np.zeros(10, int))
        cq = context.create_cq()
        one, other = pd.create_qp(cq), pd.create_qp(cq)
        one.connect(other.info())
        other.connect(one.info())
        one.post_write(source, target.remote, wr_id=1)
        print(cq.wait(timeout=5))

# The transfer engine

Above these objects there is `Engine`, the counterpart of MORI-IO's IOEngine, for programs that move blocks of memory
(of caches, of models) between processes and do not want to manage queues. Memory is registered once. Engines and
memory are named by descriptors, which can be sent as bytes over any channel. A transfer returns a `TransferStatus` at
once and is carried out by the engine's own threads, without either side's program. Any number of transfers can be in
flight.

    # one process, the target
    engine = rdma.Engine("target")
    cache = np.zeros(1 << 20, np.uint8)
    send(engine.desc().pack(), engine.register_memory(cache).pack())
    engine.register_remote(receive())            # the initiator's, to ask for its notifications
    engine.pop_inbound("initiator", 7, timeout=None)  # transfer 7 has arrived, all of it

    # another one, the initiator
    engine = rdma.Engine("initiator")
    engine_bytes, memory_bytes = receive()
    engine.register_remote(engine_bytes)
    remote = rdma.MemoryDesc.unpack(memory_bytes)
    send(engine.desc().pack())
    local = engine.register_memory(np.ones(1 << 20, np.uint8))
    status = engine.write(local, 0, remote, 0, 4096, uid=7)
    status.wait(timeout=5).check()               # or: await status

The reason why a transfer was refused or failed is in its status (`StatusCode` and a message), as in MORI-IO; an
exception is raised only for arguments of the wrong type. A `Session` is for many transfers between the same two pieces
of memory, `batch_read` and `batch_write` make one transfer of many parts, and ``await`` works in asyncio without a
thread. If a peer ends, transfers to it fail at once. A transfer to memory that the target has not registered breaks the
connection for all transfers in flight on it; the others start again automatically.

Differences from MORI-IO: only the initiator has to register the other engine (the descriptor is its permission);
`uid` may be left out, if the target need not be notified; offsets are checked before anything is sent; memory of a GPU
can't be registered; TCP is a back end.
"""

from .completion import CompletionQueue, WorkCompletion
from .constants import Access, QPState, WCOpcode, WCStatus
from .device import Context, Device, Port, backends, devices
from .engine import Engine
from .engine_desc import EngineDesc, MemoryDesc
from .engine_session import Session
from .engine_status import StatusCode, TransferStatus, wait_all
from .errors import Error, TimedOut, TypeMismatch
from .pair import Batch, QueuePair
from .region import MemoryRegion, ProtectionDomain, RemoteMemory

PD = ProtectionDomain
MR = MemoryRegion
CQ = CompletionQueue
QP = QueuePair
WC = WorkCompletion

__all__ = [
    "CQ",
    "MR",
    "PD",
    "QP",
    "WC",
    "Access",
    "Batch",
    "CompletionQueue",
    "Context",
    "Device",
    "Engine",
    "EngineDesc",
    "Error",
    "MemoryDesc",
    "MemoryRegion",
    "Port",
    "ProtectionDomain",
    "QPState",
    "QueuePair",
    "RemoteMemory",
    "Session",
    "StatusCode",
    "TimedOut",
    "TransferStatus",
    "TypeMismatch",
    "WCOpcode",
    "WCStatus",
    "WorkCompletion",
    "backends",
    "devices",
    "wait_all",
]
