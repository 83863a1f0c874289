"""Intercommunicators."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from gormapy._ext import core, fast

from .comm import _WORLD, Comm, _subclasses
from .constants import ERR_COMM, PROC_NULL
from .errhandler import expect_for
from .exception import check, error
from .group import Group
from .handle import expect
from .info import INFO_NULL
from .intracomm import tag_of
from .msgbuffer import index

if TYPE_CHECKING:
    from .errhandler import Errhandler
    from .info import Info
    from .intracomm import Intracomm


class Intercomm(Comm):
    """Communicator of two groups of ranks, each of which communicates with the other."""

    _two_groups = True
    _groups = 2

    if TYPE_CHECKING:  # those of Comm, with the class that they return

        def Create(self, group: Group) -> Intercomm: ...
        def Split(self, color: int = 0, key: int = 0) -> Intercomm: ...
        def Split_type(self, split_type: int, key: int = 0, info: Info = INFO_NULL) -> Intercomm: ...

    @classmethod
    def Create_from_groups(
        cls,
        local_group: Group,
        local_leader: int,
        remote_group: Group,
        remote_leader: int,
        stringtag: str = "org.mpi4py",
        info: Info = INFO_NULL,
        errhandler: Errhandler | None = None,
    ) -> Intercomm:
        """Create an intercommunicator of two groups of processes, without another communicator."""
        call = "Create_from_groups"
        local = expect("Group", local_group, f"{call}: local_group")
        remote = expect("Group", remote_group, f"{call}: remote_group")
        local_leader = index(local_leader, f"{call}: local_leader")
        remote_leader = index(remote_leader, f"{call}: remote_leader")
        tag = tag_of(stringtag, call) & 0x1FFFFFFF
        if errhandler is not None:
            expect_for("Comm", errhandler, f"{call}: errhandler")
        if remote:  # it means nothing at ranks that do not lead
            _disjoint(call, local_group, remote_group)
        handle = fast.result(check(core.CommCreateGroup(_WORLD, local, tag << 1)))
        if not handle:
            return cls()
        far, wrong = PROC_NULL, None
        if local_group.rank == local_leader:
            try:
                (far,) = remote_group.Translate_ranks([remote_leader])  # to the group of COMM_WORLD
            except Exception as failed:
                wrong = failed  # with PROC_NULL the core tells the other members that there is no remote leader
        try:
            made = cls._wrap(
                fast.result(check(core.CommCreateIntercomm(handle, local_leader, _WORLD, far, tag << 1 | 1)))
            )
        except Exception as failed:
            with suppress(Exception):  # a member may have ended
                fast.comm_free(handle)
            raise (wrong or failed) from None
        fast.comm_free(handle)
        if made and errhandler is not None:
            made.Set_errhandler(errhandler)
        return made

    def Get_remote_group(self) -> Group:
        """Return the remote group."""
        return Group._made(core.CommRemoteGroup(self._h))

    def Get_remote_size(self) -> int:
        """Return the number of ranks in the remote group."""
        return self._far_size()

    remote_group = property(Get_remote_group, doc="Remote group.")
    remote_size = property(Get_remote_size, doc="Number of ranks in the remote group.")

    def Merge(self, high: bool = False) -> Intracomm:
        """Create an intracommunicator of both groups."""
        return _subclasses["Intracomm"]._wrap(fast.comm_merge(self._h, bool(high)))


def _disjoint(call, local_group, remote_group):
    common = Group.Intersection(local_group, remote_group)
    ranks = common.Translate_ranks()
    common.free()
    if ranks:
        raise error(ERR_COMM, f"{call}: rank {ranks[0]} is in both groups, which have to be disjoint")


_subclasses.update(Intercomm=Intercomm)
