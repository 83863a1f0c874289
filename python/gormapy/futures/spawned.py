"""A worker that an executor has spawned."""

from __future__ import annotations


def main() -> None:
    """Serve the process that has spawned this one until it says that this is over."""
    from gormapy import MPI, _excepthook
    from gormapy._ext import core

    from . import protocol, worker

    parent = MPI.Comm.Get_parent()
    both = parent.Merge(high=True)
    link = protocol.Link.made(both, 0)
    try:
        in_order = worker.serve(link, imported=False)
    except KeyboardInterrupt:
        core.MarkFailed()
        _excepthook._end_by_interrupt()
        raise
    if in_order:
        link.free()
        both.Free()
        parent.Disconnect()
