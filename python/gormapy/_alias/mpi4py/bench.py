"""``python -m mpi4py.bench``: small programs that show whether an installation works, with the options of mpi4py's."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import TYPE_CHECKING

from gormapy import MPI

if TYPE_CHECKING:
    from collections.abc import Sequence


def helloworld(comm: MPI.Intracomm, args: Sequence[str] | None = None, verbose: bool = True) -> str:
    """Let each process say its rank, in order."""
    parser = ArgumentParser(prog="mpi4py.bench helloworld")
    parser.add_argument("-q", "--quiet", action="store_false", dest="verbose", default=verbose)
    options = parser.parse_args(args)
    size, rank = comm.Get_size(), comm.Get_rank()
    text = f"Hello, World! I am process {rank:{len(str(size - 1))}d} of {size} on {MPI.Get_processor_name()}."
    said = comm.gather(text)
    if said is not None and options.verbose:
        print("\n".join(said), flush=True)
    return text


def ringtest(comm: MPI.Intracomm, args: Sequence[str] | None = None, verbose: bool = True) -> float:
    """Time a message in the ring of processes."""
    parser = ArgumentParser(prog="mpi4py.bench ringtest")
    parser.add_argument("-q", "--quiet", action="store_false", dest="verbose", default=verbose)
    parser.add_argument("-n", "--size", type=int, default=1, help="bytes")
    parser.add_argument("-s", "--skip", type=int, default=0, help="rounds that are not timed")
    parser.add_argument("-l", "--loop", type=int, default=1, help="rounds that are")
    options = parser.parse_args(args)
    size, rank = comm.Get_size(), comm.Get_rank()
    sent, got = bytearray(b"+" * options.size), bytearray(options.size)

    def rounds(count):
        comm.Barrier()
        begun = MPI.Wtime()
        for _ in range(count):
            if size == 1:
                comm.Sendrecv(sent, 0, 0, got, 0, 0)
            elif rank == 0:
                comm.Send(sent, 1)
                comm.Recv(got, size - 1)
            else:
                comm.Recv(got, rank - 1)
                comm.Send(got, (rank + 1) % size)
        return MPI.Wtime() - begun

    rounds(options.skip)
    seconds = rounds(options.loop)
    if got != sent and options.loop > 0:
        raise RuntimeError(f"rank {rank} has got another message than was sent")
    if rank == 0 and options.verbose:
        print(
            f"time for {options.loop} loops = {seconds:g} seconds ({size} processes, {options.size} bytes)", flush=True
        )
    return seconds


def pingpong(comm: MPI.Intracomm, args: Sequence[str] | None = None, verbose: bool = True) -> list[tuple[int, float]]:
    """Time messages of growing length between processes 0 and 1."""
    parser = ArgumentParser(prog="mpi4py.bench pingpong")
    parser.add_argument("-q", "--quiet", action="store_false", dest="verbose", default=verbose)
    parser.add_argument("-m", "--min-size", type=int, default=1)
    parser.add_argument("-n", "--max-size", type=int, default=1 << 20)
    parser.add_argument("-s", "--skip", type=int, default=100)
    parser.add_argument("-l", "--loop", type=int, default=1000)
    parser.add_argument("-p", "--pickle", action="store_true", help="send objects")
    parser.add_argument("--no-header", action="store_false", dest="header")
    options = parser.parse_args(args)
    if comm.Get_size() < 2:
        raise SystemExit("pingpong needs at least two processes: mpiexec -n 2 python -m mpi4py.bench pingpong")
    rank, found = comm.Get_rank(), []
    if rank == 0 and options.verbose and options.header:
        print("# [B] bytes, latency in microseconds, bandwidth in MB/s", flush=True)
    nbytes = max(1, options.min_size)
    while nbytes <= options.max_size:
        seconds = _round_trips(comm, nbytes, options) if rank < 2 else 0.0
        comm.Barrier()
        found.append((nbytes, seconds))
        if rank == 0 and options.verbose:
            print(f"{nbytes:>10d} {seconds * 1e6:12.3f} {nbytes / seconds / 1e6:12.2f}", flush=True)
        nbytes *= 2
    return found


def _round_trips(comm, nbytes, options):
    """Return the seconds of half a round trip."""
    message, got = bytes(nbytes), bytearray(nbytes)
    rank = comm.Get_rank()
    begun = 0.0
    for k in range(options.skip + options.loop):
        if k == options.skip:
            begun = MPI.Wtime()
        for sender in (0, 1):
            if options.pickle:
                comm.send(message, 1 - rank) if rank == sender else comm.recv(source=1 - rank)
            elif rank == sender:
                comm.Send(message, 1 - rank)
            else:
                comm.Recv(got, 1 - rank)
    return (MPI.Wtime() - begun) / 2 / max(1, options.loop)


PROGRAMS = {program.__name__: program for program in (helloworld, ringtest, pingpong)}


def main(args: Sequence[str] | None = None) -> None:
    """Run the program that the command line names."""
    args = sys.argv[1:] if args is None else list(args)
    if not args or args[0] not in PROGRAMS:
        sys.exit(f"usage: python -m mpi4py.bench ({' | '.join(PROGRAMS)}) [options]")
    PROGRAMS[args[0]](MPI.COMM_WORLD, args[1:])


if __name__ == "__main__":
    main()
