"""RDMA in the vocabulary of verbs, over devices and over software.

A program opens a `Context` of a device, makes a `ProtectionDomain`, registers memory in it (`MemoryRegion`),
makes a `CompletionQueue` and a `QueuePair`, connects that to one of a peer, posts work requests and polls for
their completions. The back ends are ``verbs`` (libibverbs), ``ofi`` (libfabric), ``tcp`` and ``shm``, which are
software with the same semantics that runs anywhere: ``python -m gormapy.rdma devices`` lists what is here.

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
