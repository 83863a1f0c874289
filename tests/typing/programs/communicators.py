"""Communicators, groups, topologies, attributes, error handlers, hints, and classes of the program's own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gormapy import MPI


class Team(MPI.Intracomm):
    """Communicator with a call of its own."""

    def everyone(self) -> list[int]:
        found: list[int] = self.allgather(self.Get_rank())
        return found

    def bcast(self, obj: Any, root: int = 0) -> Any:
        return super().bcast(obj, root)


@dataclass
class Grid:
    """Ranks in two dimensions."""

    cart: MPI.Cartcomm
    extent: tuple[int, int] = (4, 4)
    neighbours: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    @classmethod
    def over(cls, comm: MPI.Intracomm, periods: Sequence[bool] = (True, False)) -> Grid:
        dims: list[int] = MPI.Compute_dims(comm.Get_size(), 2)
        made = cls(comm.Create_cart(dims, periods, reorder=False))
        made.neighbours = [made.cart.Shift(direction, 1) for direction in range(made.cart.ndim)]
        return made

    def exchange(self) -> None:
        sent, found = np.zeros(4), np.zeros(4)
        self.cart.Neighbor_alltoall(sent, found)
        self.cart.Ineighbor_alltoall([sent, 1, MPI.DOUBLE], [found, 1, MPI.DOUBLE]).Wait()
        assert self.cart.neighbor_allgather(self.cart.coords)

    def row(self) -> MPI.Cartcomm:
        return self.cart.Sub([False, True])


def own(comm: MPI.Intracomm) -> None:
    team = Team(comm)
    copy = team.Dup()
    assert copy.everyone() == list(range(comm.size)) and copy.bcast(copy.rank) == 0
    copy.Free()
    dup, request = comm.Idup()
    request.Wait()
    assert MPI.Comm.Compare(comm, dup) == MPI.CONGRUENT and dup != comm
    dup.Free()


def groups(comm: MPI.Intracomm) -> None:
    group = comm.Get_group()
    every, none = group.Range_incl([(0, comm.size - 1, 1)]), group.Excl(range(comm.size))
    union = MPI.Group.Union(every, none)
    assert union.Get_size() == comm.size and union.Compare(group) == MPI.IDENT
    ranks = group.Translate_ranks([0], union)
    assert ranks == [0] and MPI.Group.Difference(every, union) == MPI.GROUP_EMPTY
    part = comm.Create_group(every, tag=4)
    made = comm.Create(every)
    for one in (part, made):
        if one != MPI.COMM_NULL:
            one.Free()


def between(comm: MPI.Intracomm) -> None:
    """Two groups of ranks that communicate with each other."""
    half = comm.Split(comm.rank % 2, comm.rank)
    assert isinstance(half, MPI.Intracomm)
    inter: MPI.Intercomm = half.Create_intercomm(0, comm, 1 - comm.rank % 2, tag=5)
    assert inter.Is_inter() and inter.remote_size == inter.Get_remote_group().Get_size()
    everyone = inter.allgather(comm.rank)
    merged: MPI.Intracomm = inter.Merge(high=comm.rank % 2 == 1)
    assert len(everyone) == inter.remote_size and merged.size == comm.size
    for one in (merged, inter, half):
        one.Free()


def topologies(comm: MPI.Intracomm) -> None:
    grid = Grid.over(comm)
    grid.exchange()
    row = grid.row()
    row.Free()
    dims, periods, coords = grid.cart.Get_topo()
    assert grid.cart.Get_cart_rank(coords) == comm.rank and len(dims) == len(periods) == grid.cart.dim
    grid.cart.Free()
    rank, size = comm.rank, comm.size
    ring = comm.Create_dist_graph_adjacent([(rank - 1) % size], [(rank + 1) % size], reorder=False)
    sources, destinations, weights = ring.Get_dist_neighbors()
    assert len(sources) == len(destinations) == 1 and weights is None and ring.outdegree == 1
    ring.Free()
    graph = comm.Create_graph(range(1, size + 1), [0] * size)
    assert graph.Get_neighbors(rank) == [0] and graph.nnodes == size
    graph.Free()


def attributes(comm: MPI.Intracomm) -> None:
    def copy(one: MPI.Comm, keyval: int, value: Any) -> Any:
        return value

    def delete(one: MPI.Comm, keyval: int, value: Any) -> None:
        assert isinstance(one, MPI.Comm) and keyval

    key = MPI.Comm.Create_keyval(copy, delete)
    comm.Set_attr(key, {"of": "the program"})
    assert comm.Get_attr(key) == {"of": "the program"}
    comm.Delete_attr(key)
    MPI.Comm.Free_keyval(key)
    upper = comm.Get_attr(MPI.TAG_UB)
    assert upper is not None and upper >= 32767


def errors(comm: MPI.Intracomm) -> str:
    def handle(one: MPI.Comm, code: int) -> None:
        print(one.Get_name(), MPI.Get_error_string(code), file=sys.stderr)

    handler = MPI.Comm.Create_errhandler(handle)
    handler.Free()
    before: MPI.Errhandler = comm.Get_errhandler()
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    try:
        comm.Send(b"", comm.size)
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_RANK and error.error_code != MPI.SUCCESS
        text = error.Get_error_string()
    else:
        text = ""
    comm.Set_errhandler(before)
    return text


def hints() -> dict[str, str]:
    info = MPI.Info.Create({"a": "1"})
    info.Set("b", "2")
    info["c"] = "3"
    info.update([("d", "4")], e="5")
    value: str | None = info.Get("a")
    assert value == "1" and "b" in info and len(info) == info.Get_nkeys() == 5
    found = dict(info.items())
    last: str = info.pop("e")
    assert last == found["e"] and set(info) == set(info.keys())
    copied = info.Dup()
    copied.Free()
    info.Free()
    return found


def describe() -> tuple[str, str]:
    version, subversion = MPI.Get_version()
    name, numbers = MPI.get_vendor()
    assert (version, subversion) >= (3, 1) and len(numbers) == 3
    if MPI.VERSION >= 4 and MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        print("threads take turns", MPI.Is_thread_main())
    elapsed: float = MPI.Wtime() - MPI.Wtime()
    assert elapsed <= MPI.Wtick() or MPI.Is_initialized() or not MPI.Is_finalized()
    return name, MPI.Get_processor_name()


def sessions() -> int:
    session = MPI.Session.Init()
    names = [session.Get_nth_pset(n) for n in range(session.Get_num_psets())]
    group = session.Create_group(names[0])
    comm = MPI.Intracomm.Create_from_group(group, "of a session")
    size = comm.Get_size()
    comm.Free()
    group.Free()
    session.Finalize()
    return size


def main() -> None:
    comm = MPI.COMM_WORLD
    own(comm)
    groups(comm)
    between(comm)
    topologies(comm)
    attributes(comm)
    assert errors(comm)
    assert hints()["a"] == "1"
    assert all(describe())
    assert sessions() == comm.size


if __name__ == "__main__":
    main()
