"""Run a script whose executors use the other ranks: ``mpiexec -n 4 python -m gormapy.futures script.py``."""

from __future__ import annotations

import sys

_USAGE = """\
usage: python -m gormapy.futures (script.py | -m module | -c code | -) [arguments]

Run a program at rank 0. The other ranks are the workers of its executors
(gormapy.futures.MPIPoolExecutor). Start several processes by

    mpiexec -n 4 python -m gormapy.futures script.py"""


def main(args: list[str] | None = None) -> None:
    """Run the program that the command line names, or serve it."""
    args = sys.argv[1:] if args is None else list(args)
    if not args or args[0] in ("-h", "--help"):
        print(_USAGE, file=sys.stderr if not args else sys.stdout)
        sys.exit(0 if args else 2)
    if args[0].startswith("-") and args[0] not in ("-m", "-c", "-"):
        sys.exit(f"gormapy.futures: unknown option {args[0]}\n{_USAGE}")
    if args[0] in ("-m", "-c") and len(args) < 2:
        sys.exit(f"gormapy.futures: {args[0]} needs {'the name of a module' if args[0] == '-m' else 'a program'}")

    from gormapy import MPI
    from gormapy.futures import protocol, starting

    comm = MPI.COMM_WORLD
    if comm.Get_size() == 1:
        starting.share(None)
        _run(args)
        return
    link = protocol.Link.made(comm, 0)
    if comm.Get_rank() != 0:
        _serve(link)
    else:
        manager = starting.manage(link, imported=False)
        starting.share(manager)
        _run(args)
        starting.finish(manager)


def _run(args):
    """Run the program. Pending tasks of one that fails are dropped; it ends the job."""
    import runpy

    from gormapy import _excepthook, run
    from gormapy.futures import mainmodule, starting

    _excepthook.hide(__file__, mainmodule.__file__, run.__file__, runpy.__file__, "<frozen runpy>")
    try:
        mainmodule.run(args)
    except SystemExit:
        raise
    except BaseException:
        starting.abandon()
        raise


def _serve(link):
    """Be a worker. An interrupt ends it without a traceback, as the script has one."""
    from gormapy import _excepthook
    from gormapy._ext import core
    from gormapy.futures import worker

    try:
        worker.serve(link, imported=False)
    except KeyboardInterrupt:
        core.MarkFailed()
        _excepthook._end_by_interrupt()


if __name__ == "__main__":
    main()
