"""How the ranks of a job reach each other: rank 0 collects it from all of them.

Windows are made to find out which paths they use, which needs every rank. So first each rank reports to rank 0, and
rank 0 tells all whether to continue. A rank that does not take part is reported instead of waited for.
"""

import contextlib
import json
import os
import platform
import time

_HERE, _GO = 1, 2  # tags
_PATIENCE = 10.0  # seconds until a rank that has initialized MPI and did not report counts as missing
_AT_MOST = 90.0  # seconds until any other rank does: many ranks take long to start


def gather():
    """Return, on rank 0, the reports of all ranks and the missing ranks; on other ranks None. All ranks call it."""
    from gormapy import MPI

    comm = MPI.COMM_WORLD
    if comm.rank != 0:
        comm.send(_here(), dest=0, tag=_HERE)
        if _await(comm, 0, _GO, _AT_MOST + _PATIENCE) is None:
            raise TimeoutError("rank 0 does not answer: all ranks of the job have to run gormapy info")
        if comm.recv(source=0, tag=_GO):
            comm.gather(_reach(MPI, comm))
        return None
    known = {0: _here()}
    begun = quiet = time.monotonic()
    while len(known) < comm.size:
        source = _await(comm, MPI.ANY_SOURCE, _HERE, 0.1)
        now = time.monotonic()
        if source is not None:
            known[source] = comm.recv(source=source, tag=_HERE)
            quiet = now
            continue
        states = [_peer(rank) for rank in range(comm.size) if rank not in known]
        if any(state["starting"] for state in states):
            quiet = now
        if all(state["ended"] for state in states):
            break
        if now - quiet > _PATIENCE or now - begun > _AT_MOST:
            break
    missing = [rank for rank in range(comm.size) if rank not in known]
    for rank in known:
        if rank:
            comm.send(not missing, dest=rank, tag=_GO)
    if missing:
        return {"ranks": [known[rank] for rank in sorted(known)], "missing": _doing(missing)}
    reaches = comm.gather(_reach(MPI, comm))
    return {"ranks": [{**known[rank], **reaches[rank]} for rank in range(comm.size)], "missing": {}}


def _await(comm, source, tag, patience):
    """Return the source of a message once one is there, None after `patience` seconds."""
    from gormapy import MPI

    status = MPI.Status()
    end = time.monotonic() + patience
    while True:
        with contextlib.suppress(MPI.Exception):  # a rank has ended without MPI
            if comm.iprobe(source, tag, status):
                return status.source
        if time.monotonic() >= end:
            return None
        time.sleep(0.001)


def _peer(rank):
    """Return the core's facts about a rank."""
    from gormapy._ext import core

    return json.loads(core.PeerInfo(rank))


def _here():
    from gormapy import MPI, __version__

    from .system import machine

    return {
        "rank": MPI.COMM_WORLD.rank,
        "pid": os.getpid(),
        "host": platform.node(),
        "cores_usable": machine()["cores_usable"],
        "python": platform.python_version(),
        "gormapy": __version__,
    }


def _reach(MPI, comm):
    """Return the transport to each rank, and the path of a window of each flavor to it."""
    from gormapy._ext import core

    peers = [_peer(rank) for rank in range(comm.size)]
    return {
        "transports": [peer["transport"] for peer in peers],
        "texts": {peer["rank"]: peer["text"] for peer in peers if peer["text"]},
        "refusals": {peer["rank"]: peer["refusal"] for peer in peers if peer["refusal"]},
        "nodes": [peer["node"] for peer in peers],
        "ways": {flavor: _ways(MPI, core, make, comm) for flavor, make in _FLAVORS.items()},
    }


_FLAVORS = {
    "Create": lambda MPI, comm: MPI.Win.Create(bytearray(8), comm=comm),
    "Allocate": lambda MPI, comm: MPI.Win.Allocate(8, comm=comm),
    "Allocate_shared": lambda MPI, comm: MPI.Win.Allocate_shared(8, comm=_node(MPI, comm)),
}


def _node(MPI, comm):
    return comm.Split_type(MPI.COMM_TYPE_SHARED)


def _ways(MPI, core, make, comm):
    """Return the path to each rank of a communicator: "-" to those that the window does not have."""
    try:
        win = make(MPI, comm)
    except MPI.Exception as error:
        return [f"fails: {error}"] * comm.size
    ranks = MPI.Group.Translate_ranks(comm.group, list(range(comm.size)), win.group)
    ways = ["-" if rank == MPI.UNDEFINED else core.WinPath(win.handle, rank) for rank in ranks]
    win.Free()
    return ways


def _doing(ranks):
    """Return what the missing ranks are executing, as the core sees it."""
    from gormapy._ext import core

    lines = core.Describe().splitlines()
    return {
        rank: "; ".join(line for line in lines if line.startswith((f"rank {rank} ", f"rank {rank}:"))) for rank in ranks
    }
