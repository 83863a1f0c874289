"""Groups: ordered sets of processes."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from gormapy._ext import core, fast

from . import constants
from .exception import Exception, check
from .handle import Handle, adopt, named
from .hot import hot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

    from .session import Session

_EMPTY = 1
_RANK_ERROR = 1 << 30  # marks error codes, which the sign cannot tell from UNDEFINED


class Group(Handle, fast.Group):
    """Ordered set of processes."""

    _family = "Group"
    __slots__ = ("__weakref__",)

    def __new__(cls, group: Group | None = None) -> Self:
        return adopt(Group, super().__new__(cls), group)

    @classmethod
    def _made(cls, result):
        check(result)
        self = _new(cls) if cls.__new__ is _plain else cls.__new__(cls)
        self._h = result
        return self

    @classmethod
    def Create_from_session_pset(cls, session: Session, pset_name: str) -> Self:
        """Create a group of the processes in a process set."""
        return cls(session.Create_group(pset_name))

    def _checked(self):
        if not self._h:
            raise Exception(constants.ERR_GROUP)
        return self._h

    @hot
    def Get_size(self) -> int:
        """Return the number of processes."""
        return check(core.GroupSize(self._checked()))

    @hot
    def Get_rank(self) -> int:
        """Return the rank of this process."""
        rank = core.GroupRank(self._checked())
        if rank < -_RANK_ERROR:
            raise Exception(-rank & (_RANK_ERROR - 1))
        return rank

    size = property(fast.Group.Get_size, doc="Number of processes.")
    rank = property(fast.Group.Get_rank, doc="Rank of this process.")

    @hot
    def Translate_ranks(self, ranks: Sequence[int] | None = None, group: Group | None = None) -> list[int]:
        """Translate ranks in the group to ranks in another one."""
        if group is None:  # to the group of COMM_WORLD
            other = check(core.CommGroup(1))
            try:
                return self._translate(ranks, other)
            finally:
                fast.group_free(other)
        return self._translate(ranks, group._checked())

    def _translate(self, ranks, other):
        given = _ranks(range(self.Get_size()) if ranks is None else ranks)
        found = array("i", bytes(given.itemsize * len(given)))
        check(core.GroupTranslate(self._checked(), given.buffer_info()[0], len(given), other, found.buffer_info()[0]))
        return found.tolist()

    def Compare(self, group: Group) -> int:
        """Compare two groups."""
        return check(core.GroupCompare(self._checked(), group._checked()))

    def Dup(self) -> Self:
        """Duplicate the group."""
        return type(self)._made(core.GroupDup(self._checked()))

    @classmethod
    def Union(cls, group1: Group, group2: Group) -> Self:
        """Create a group of the members of two groups."""
        return cls._made(core.GroupUnion(group1._checked(), group2._checked()))

    @classmethod
    def Intersection(cls, group1: Group, group2: Group) -> Self:
        """Create a group of the members that two groups have in common."""
        return cls._made(core.GroupIntersection(group1._checked(), group2._checked()))

    Intersect = Intersection

    @classmethod
    def Difference(cls, group1: Group, group2: Group) -> Self:
        """Create a group of the members of one group that are not in another."""
        return cls._made(core.GroupDifference(group1._checked(), group2._checked()))

    @hot
    def Incl(self, ranks: Sequence[int]) -> Self:
        """Create a group of the listed members."""
        return type(self)._made(fast.group_incl(self._checked(), _ranks(ranks)))

    def Excl(self, ranks: Sequence[int]) -> Self:
        """Create a group of all but the listed members."""
        listed = _ranks(ranks)
        return type(self)._made(core.GroupExcl(self._checked(), listed.buffer_info()[0], len(listed)))

    def Range_incl(self, ranks: Sequence[tuple[int, int, int]]) -> Self:
        """Create a group of the members in ranges."""
        listed = _ranges(ranks)
        return type(self)._made(core.GroupRangeIncl(self._checked(), listed.buffer_info()[0], len(listed) // 3))

    def Range_excl(self, ranks: Sequence[tuple[int, int, int]]) -> Self:
        """Create a group of all but the members in ranges."""
        listed = _ranges(ranks)
        return type(self)._made(core.GroupRangeExcl(self._checked(), listed.buffer_info()[0], len(listed) // 3))

    @hot
    def Free(self) -> None:
        """Free the group."""
        if self._checked() != _EMPTY:
            fast.group_free(self._h)
        if self is not GROUP_EMPTY:
            self._h = 0


def _ranks(ranks):
    return array("i", ranks)


def _ranges(ranges):
    flat = array("i")
    for first, last, stride in ranges:
        flat.extend((first, last, stride))
    return flat


# What makes objects without the argument that Group.__new__ has for programs.
_new = fast.Group.__new__
_plain = Group.__new__

GROUP_NULL = Group()
named("Group", 0, "GROUP_NULL")
GROUP_EMPTY = Group()
GROUP_EMPTY._h = _EMPTY
named("Group", _EMPTY, "GROUP_EMPTY")
