"""Datatypes: the predefined ones, and types derived from them by the core."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from gormapy._ext import core, fast

from . import constants, msgbuffer, typecode
from .exception import Exception, check, error
from .handle import Handle, adopt, named
from .hot import hot
from .naming import Attributed, Named
from .typecode import TYPE_CHARS, TYPE_STRINGS, load_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

    from gormapy.typing import BufSpec

    from .comm import Comm

# Constructors that have the length of their lists among their integer arguments, and its index
_COUNTED = {
    constants.COMBINER_INDEXED: 0,
    constants.COMBINER_HINDEXED: 0,
    constants.COMBINER_INDEXED_BLOCK: 0,
    constants.COMBINER_HINDEXED_BLOCK: 0,
    constants.COMBINER_STRUCT: 0,
    constants.COMBINER_SUBARRAY: 0,
    constants.COMBINER_DARRAY: 2,
}

# The extension's constructors: combiner, names of address arguments, names of all arguments
_MADE = {
    fast.TYPE_DUP: (constants.COMBINER_DUP, (), ()),
    fast.TYPE_CONTIGUOUS: (constants.COMBINER_CONTIGUOUS, (), ("count",)),
    fast.TYPE_VECTOR: (constants.COMBINER_VECTOR, (), ("count", "blocklength", "stride")),
    fast.TYPE_HVECTOR: (constants.COMBINER_HVECTOR, ("stride",), ("count", "blocklength", "stride")),
    fast.TYPE_RESIZED: (constants.COMBINER_RESIZED, ("lb", "extent"), ("lb", "extent")),
    fast.TYPE_INDEXED: (constants.COMBINER_INDEXED, (), ("blocklengths", "displacements")),
    fast.TYPE_HINDEXED: (constants.COMBINER_HINDEXED, ("displacements",), ("blocklengths", "displacements")),
    fast.TYPE_INDEXED_BLOCK: (constants.COMBINER_INDEXED_BLOCK, (), ("blocklength", "displacements")),
    fast.TYPE_HINDEXED_BLOCK: (
        constants.COMBINER_HINDEXED_BLOCK,
        ("displacements",),
        ("blocklength", "displacements"),
    ),
    fast.TYPE_SUBARRAY: (constants.COMBINER_SUBARRAY, (), ("sizes", "subsizes", "starts", "order")),
    fast.TYPE_STRUCT: (constants.COMBINER_STRUCT, ("displacements",), ("blocklengths", "displacements")),
}
_LISTS = {"blocklengths", "displacements", "sizes", "subsizes", "starts"}

_F90 = (constants.COMBINER_F90_INTEGER, constants.COMBINER_F90_REAL, constants.COMBINER_F90_COMPLEX)


def _int64s(values):
    """Lay out integers for the core and return them with their address."""
    laid_out = array("q", values)
    return laid_out, laid_out.buffer_info()[0]


class Datatype(Handle, Attributed, Named, fast.Datatype):
    """Datatype: what the elements of a buffer are, and where they lie."""

    _family = "Datatype"

    def __new__(cls, datatype: Datatype | None = None) -> Self:
        self = adopt(Datatype, super().__new__(cls), datatype)
        if datatype is not None:
            fast.type_like(self, datatype)
        return self

    # The extension has size, bounds, and how the type was made, _construction: (combiner, old datatypes, names of
    # address arguments, arguments); None for a predefined one.

    def _constructed(self, recipe, parts):
        """Return how the extension has made the type by a recipe: in the form of _construction."""
        kind, *numbers = array("q", recipe)
        combiner, addresses, names = _MADE[kind]
        numbers = numbers[: -len(parts) or None] if kind == fast.TYPE_STRUCT else numbers[1:]
        lists = sum(name in _LISTS for name in names)
        length = (len(numbers) - len(names) + lists) // lists if lists else 0
        arguments = {}
        for name in names:
            if name in _LISTS:
                arguments[name], numbers = numbers[:length], numbers[length:]
            else:
                arguments[name], *numbers = numbers
        # The program may have freed the parts.
        types = [t if t.is_predefined else t._revived(core.TypePart(self._h, i)) for i, t in enumerate(parts)]
        return combiner, types, addresses, arguments

    def _revived(self, handle):
        """Return an object like this one with another handle of the same type."""
        other = type(self)(self)
        other._h = check(handle)
        fast.type_shape(other)
        return other

    @classmethod
    def _from_handle(cls, handle):
        known = _by_handle.get(handle)
        if known is not None:
            return known
        self = cls.__new__(cls)
        self._h = handle
        if handle:
            fast.type_shape(self)
            self._construction = _fortran.get(handle)
        return self

    @classmethod
    def _made(cls, recipe, combiner, types, addresses, arguments):
        """Make a datatype by a recipe of the core (gocore/mpi/recipe.go)."""
        self = cls.__new__(cls)
        fast.type_make(self, array("q", recipe))
        self._remember(combiner, types, addresses, arguments)
        return self

    def _make(self, kind, *arguments):
        """Make a datatype of this one. Lists are arrays already."""
        combiner, addresses, names = _MADE[kind]
        recipe, params = [kind, self._h], {}
        for name, value in zip(names, arguments, strict=True):
            if name in _LISTS:
                recipe.extend(value)
                params[name] = value.tolist()
            else:
                recipe.append(_integer(value, name))
                params[name] = value
        return self._made(recipe, combiner, [self], addresses, params)

    def _remember(self, combiner, types, addresses, params):
        """Remember how the type was made. The program may free the old datatypes before this one is decoded."""
        self._construction = (combiner, [t._reference() for t in types], addresses, params)

    def _reference(self):
        """Return another object for this datatype, which stays valid when this one is freed."""
        if self.is_predefined:
            return self
        other = type(self)(self)
        other._h = check(core.TypeDup(self._h))
        if self._construction is not None:
            combiner, types, addresses, params = self._construction
            other._construction = (combiner, [t._reference() for t in types], addresses, params)
        return other

    def __reduce__(self) -> str | tuple[Any, ...]:
        if self.is_named:
            return super().__reduce__()
        return typecode._datatype_create, typecode._datatype_decode(self)

    # Size and bounds
    # ---------------

    def _checked(self):
        if not self._h:
            raise Exception(constants.ERR_TYPE)
        return self

    @hot
    def Get_size(self) -> int:
        """Return the number of bytes of data."""
        return self._checked()._size

    @hot
    def Get_extent(self) -> tuple[int, int]:
        """Return the lower bound and the extent."""
        return self._checked()._lb, self._extent

    def Get_true_extent(self) -> tuple[int, int]:
        """Return the lower bound and the extent of the data alone."""
        return self._checked()._true_lb, self._true_extent

    size = property(fast.Datatype.Get_size, doc="Number of bytes of data.")

    @property
    def extent(self) -> int:
        """Step from one element to the next."""
        return self._checked()._extent

    @property
    def lb(self) -> int:
        """Lower bound."""
        return self._checked()._lb

    @property
    def ub(self) -> int:
        """Upper bound."""
        return self._checked()._lb + self._extent

    @property
    def true_extent(self) -> int:
        """Extent of the data alone."""
        return self._checked()._true_extent

    @property
    def true_lb(self) -> int:
        """Lower bound of the data alone."""
        return self._checked()._true_lb

    @property
    def true_ub(self) -> int:
        """Upper bound of the data alone."""
        return self._checked()._true_lb + self._true_extent

    # Constructors
    # ------------

    def Dup(self) -> Self:
        """Duplicate the datatype."""
        made = self._make(fast.TYPE_DUP)
        try:
            made._copy_attributes(self)
        except BaseException:
            made.Free()
            raise
        return made

    Create_dup = Dup

    @hot
    def Create_contiguous(self, count: int) -> Self:
        """Create a datatype of consecutive elements."""
        return self._make(fast.TYPE_CONTIGUOUS, count)

    @hot
    def Create_vector(self, count: int, blocklength: int, stride: int) -> Self:
        """Create a datatype of equal blocks at equal distances."""
        return self._make(fast.TYPE_VECTOR, count, blocklength, stride)

    @hot
    def Create_hvector(self, count: int, blocklength: int, stride: int) -> Self:
        """Create a datatype of equal blocks at equal distances, given in bytes."""
        return self._make(fast.TYPE_HVECTOR, count, blocklength, stride)

    @hot
    def Create_indexed(self, blocklengths: Sequence[int], displacements: Sequence[int]) -> Self:
        """Create a datatype of blocks of any length at any place."""
        return self._make(fast.TYPE_INDEXED, *_blocks(blocklengths, displacements))

    @hot
    def Create_hindexed(self, blocklengths: Sequence[int], displacements: Sequence[int]) -> Self:
        """Create a datatype of blocks of any length at any place, given in bytes."""
        return self._make(fast.TYPE_HINDEXED, *_blocks(blocklengths, displacements))

    @hot
    def Create_indexed_block(self, blocklength: int, displacements: Sequence[int]) -> Self:
        """Create a datatype of equal blocks at any place."""
        return self._make(fast.TYPE_INDEXED_BLOCK, blocklength, array("q", displacements))

    @hot
    def Create_hindexed_block(self, blocklength: int, displacements: Sequence[int]) -> Self:
        """Create a datatype of equal blocks at any place, given in bytes."""
        return self._make(fast.TYPE_HINDEXED_BLOCK, blocklength, array("q", displacements))

    @classmethod
    @hot
    def Create_struct(
        cls, blocklengths: Sequence[int], displacements: Sequence[int], datatypes: Sequence[Datatype]
    ) -> Self:
        """Create a datatype of blocks of different datatypes."""
        lengths, displs = _blocks(blocklengths, displacements)
        datatypes = list(datatypes)
        if len(datatypes) != len(lengths):
            raise ValueError(f"Create_struct: {len(lengths)} block lengths but {len(datatypes)} datatypes")
        for t in datatypes:
            if not isinstance(t, Datatype):
                raise TypeError(f"Create_struct: expecting datatypes, got {type(t).__name__}")
        recipe = [fast.TYPE_STRUCT, *lengths, *displs, *(t._h for t in datatypes)]
        combiner, addresses, names = _MADE[fast.TYPE_STRUCT]
        arguments = dict(zip(names, (lengths.tolist(), displs.tolist()), strict=True))
        return cls._made(recipe, combiner, datatypes, addresses, arguments)

    @hot
    def Create_subarray(
        self, sizes: Sequence[int], subsizes: Sequence[int], starts: Sequence[int], order: int = constants.ORDER_C
    ) -> Self:
        """Create a datatype of a part of an array with several dimensions."""
        lists = [array("q", values) for values in (sizes, subsizes, starts)]
        if len({len(values) for values in lists}) != 1:
            a, b, c = (len(values) for values in lists)
            raise ValueError(f"Create_subarray: expecting as many sizes ({a}) as subsizes ({b}) and starts ({c})")
        return self._make(fast.TYPE_SUBARRAY, *lists, order)

    def Create_darray(
        self,
        size: int,
        rank: int,
        gsizes: Sequence[int],
        distribs: Sequence[int],
        dargs: Sequence[int],
        psizes: Sequence[int],
        order: int = constants.ORDER_C,
    ) -> Self:
        """Create a datatype of the part of a distributed array that one process has."""
        lists = [array("q", values).tolist() for values in (gsizes, distribs, dargs, psizes)]
        if len({len(values) for values in lists}) != 1:
            g, d, a, p = (len(values) for values in lists)
            raise ValueError(
                f"Create_darray: expecting as many gsizes ({g}) as distribs ({d}), dargs ({a}) and psizes ({p})"
            )
        laid_out, address = _int64s([value for values in lists for value in values])
        made = core.TypeDarray(self._h, size, rank, len(lists[0]), address, order)
        del laid_out  # alive until here: the core reads it by address
        arguments = dict(zip(("gsizes", "distribs", "dargs", "psizes"), lists, strict=True))
        arguments = {"size": size, "rank": rank, **arguments, "order": order}
        datatype = self._from_handle(check(made))
        datatype._remember(constants.COMBINER_DARRAY, [self], (), arguments)
        return datatype

    @hot
    def Create_resized(self, lb: int, extent: int) -> Self:
        """Create a datatype with other bounds."""
        return self._make(fast.TYPE_RESIZED, lb, extent)

    def Resized(self, lb: int, extent: int) -> Self:
        """Create a datatype with other bounds; the same as Create_resized."""
        return self.Create_resized(lb, extent)

    # Fortran's types of a precision and range
    # -----------------------------------------

    @classmethod
    def Create_f90_integer(cls, r: int) -> Self:
        """Return the predefined datatype of a Fortran integer of `r` decimal digits."""
        return cls._f90(_F90[0], r=r)

    @classmethod
    def Create_f90_real(cls, p: int, r: int) -> Self:
        """Return the predefined datatype of a Fortran real of a precision and a range."""
        return cls._f90(_F90[1], p=p, r=r)

    @classmethod
    def Create_f90_complex(cls, p: int, r: int) -> Self:
        """Return the predefined datatype of two Fortran reals of a precision and a range."""
        return cls._f90(_F90[2], p=p, r=r)

    @classmethod
    def _f90(cls, combiner, **params):
        handle = check(core.TypeF90(_F90.index(combiner), params.get("p", 0), params["r"]))
        _fortran[handle] = (combiner, [], (), params)
        return cls._from_handle(handle)

    @classmethod
    def Get_value_index(cls, value: Datatype, index: Datatype) -> Self:
        """Return the predefined datatype of pairs of a value and an index."""
        return typecode.pair(value, index)

    @classmethod
    def Match_size(cls, typeclass: int, size: int) -> Self:
        """Return the predefined datatype of a class and a size."""
        return typecode.match_size(typeclass, size)

    @hot
    def Commit(self) -> Self:
        """Commit the datatype: make it ready for communication."""
        fast.type_commit(self._h)
        fast.type_shape(self)
        return self

    @hot
    def Free(self) -> None:
        """Free the datatype."""
        if self.is_predefined:
            raise Exception(constants.ERR_TYPE)
        self._delete_attributes()
        fast.type_free(self._h)
        self._forget_name()
        self._h = 0
        parts = self._construction[1] if self._told else ()
        self._construction = None
        for part in parts:
            if not part.is_predefined:
                part.Free()

    # How the type was made
    # ---------------------

    def _arguments(self):
        """Return the arguments of the constructor: integers, addresses, datatypes."""
        combiner, types, addresses, params = self._construction
        integers, displacements = [], []
        for name, value in params.items():
            values = value if isinstance(value, list) else [value]
            (displacements if name in addresses else integers).extend(values)
        if combiner in _COUNTED:
            lists = [v for v in params.values() if isinstance(v, list)]
            integers.insert(_COUNTED[combiner], len(lists[0]))
        return integers, displacements, types

    def Get_envelope(self) -> tuple[int, int, int, int, int]:
        """Return which constructor has made the datatype, and how many arguments it had."""
        self._checked()
        if self._construction is None:
            return 0, 0, 0, 0, constants.COMBINER_NAMED
        integers, addresses, types = self._arguments()
        return len(integers), len(addresses), 0, len(types), self._construction[0]

    def Get_contents(self) -> tuple[list[int], list[int], list[int], list[Datatype]]:
        """Return the arguments of the constructor that has made the datatype."""
        if self._checked()._construction is None:
            raise Exception(constants.ERR_TYPE)
        integers, addresses, types = self._arguments()
        # derived types are returned as new objects, which the caller frees
        return integers, addresses, [], [t._reference() for t in types]

    envelope = property(Get_envelope, doc="Which constructor has made the datatype, and how many arguments it had.")
    contents = property(Get_contents, doc="Arguments of the constructor that has made the datatype.")

    @property
    def combiner(self) -> int:
        """Constructor that has made the datatype."""
        return self.Get_envelope()[4]

    @property
    def is_named(self) -> bool:
        """Whether the datatype has a name in MPI."""
        return not self._h or self._h in _by_handle

    @property
    def is_predefined(self) -> bool:
        """Whether the datatype is predefined."""
        return self.is_named or (self._told and self._construction[0] in _F90)

    def decode(self) -> tuple[Datatype, str, dict[str, Any]]:
        """Return how the datatype was made, by names."""
        return typecode._datatype_decode(self)

    # Pack and unpack
    # ---------------

    @hot
    def Pack(self, inbuf: BufSpec, outbuf: BufSpec, position: int, comm: Comm) -> int:
        """Pack elements into contiguous memory."""
        return self._pack("Pack", inbuf, outbuf, position, core.TypePack)

    @hot
    def Unpack(self, inbuf: BufSpec, position: int, outbuf: BufSpec, comm: Comm) -> int:
        """Unpack elements from contiguous memory."""
        return self._unpack("Unpack", inbuf, position, outbuf, core.TypeUnpack, self._size)

    def Pack_size(self, count: int, comm: Comm) -> int:
        """Return how many bytes Pack needs at most."""
        count = _integer(count, "Pack_size: count")
        if count < 0:
            raise Exception(constants.ERR_COUNT)
        return count * self.Get_size()

    def Pack_external(self, datarep: str, inbuf: BufSpec, outbuf: BufSpec, position: int) -> int:
        """Pack elements in a representation that all machines read."""
        _external32("Pack_external", datarep)
        return self._pack("Pack_external", inbuf, outbuf, position, core.TypePackExternal)

    def Unpack_external(self, datarep: str, inbuf: BufSpec, position: int, outbuf: BufSpec) -> int:
        """Unpack elements from a representation that all machines read."""
        _external32("Unpack_external", datarep)
        size = check(core.TypeExternalSize(self._h))
        return self._unpack("Unpack_external", inbuf, position, outbuf, core.TypeUnpackExternal, size)

    def Pack_external_size(self, datarep: str, count: int) -> int:
        """Return how many bytes Pack_external needs."""
        _external32("Pack_external_size", datarep)
        count = _integer(count, "Pack_external_size: count")
        if count < 0:
            raise error(constants.ERR_COUNT, f"Pack_external_size: count is {count}; it must not be negative")
        return count * check(core.TypeExternalSize(self._h))

    def _pack(self, name, items, packed, position, call):
        position = _integer(position, f"{name}: position")
        address, nbytes, _, _, _, hold_items = msgbuffer.acquire(items, True)
        where, room, _, _, _, hold_packed = msgbuffer.acquire(packed, False)
        count = nbytes // self.extent if self.extent > 0 else 0
        end = call(self._h, address, count, where, room, position)
        del hold_items, hold_packed
        return check(end)

    def _unpack(self, name, packed, position, items, call, size):
        position = _integer(position, f"{name}: position")
        address, nbytes, _, _, _, hold_items = msgbuffer.acquire(items, False)
        where, room, _, _, _, hold_packed = msgbuffer.acquire(packed, True)
        # as many whole items as the packed data has, at most as many as fit
        count = nbytes // self.extent if self.extent > 0 else 0
        left = max(0, room - position) // size if size else 0
        end = call(self._h, where, room, position, address, min(count, left))
        del hold_items, hold_packed
        return check(end)

    # Type codes of Python and NumPy
    # ------------------------------

    @property
    def typechar(self) -> str:
        """Character code of the equivalent NumPy type."""
        return TYPE_CHARS.get(self._code_name(), "V")

    @property
    def typestr(self) -> str:
        """Type string of the equivalent NumPy type."""
        return TYPE_STRINGS.get(self._code_name()) or f"V{self._extent}"

    def _code_name(self):
        named = self
        while named._construction is not None and named._construction[0] == constants.COMBINER_DUP:
            named = named._construction[1][0]
        if named._construction is not None and named._construction[0] in _F90:
            return f"{('INTEGER', 'REAL', 'COMPLEX')[_F90.index(named._construction[0])]}{named._size}"
        return _names.get(named._h)

    def tocode(self) -> str:
        """Return the type code of Python or NumPy for the datatype."""
        code = typecode.typecode(self)
        if code is None:
            raise ValueError("cannot map to character code or type string")
        return code

    @classmethod
    def fromcode(cls, code: str) -> Datatype:
        """Return the predefined datatype of a character code or type string."""
        try:
            return typecode.lookup(code)
        except KeyError:
            raise ValueError(f"cannot map {code!r} to MPI datatype") from None

    def _default_name(self):
        name = _names.get(self._h)
        return "MPI_" + name if name else ""


_by_handle = {}  # handle -> the predefined object
_names = {}  # handle -> its name without MPI_
_fortran = {}  # handle -> how a Fortran type of a precision and range was made


def _blocks(blocklengths, displacements):
    lengths, displs = array("q", blocklengths), array("q", displacements)
    if len(lengths) != len(displs):
        raise ValueError(f"datatype: {len(lengths)} block lengths but {len(displs)} displacements")
    return lengths, displs


def _integer(value, what):
    return msgbuffer.index(value, what)


def _external32(call, datarep):
    """Check the name of a data representation for packing."""
    if not isinstance(datarep, str):
        raise TypeError(f"datarep: expecting str, got {type(datarep).__name__}")
    if datarep != "external32":
        raise error(
            constants.ERR_UNSUPPORTED_DATAREP,
            f"{call}: the data representation {datarep!r} is not supported; "
            '"external32" is (MPI has no other for packing); Pack packs data as it is in memory',
        )


def _define(name, handle, size, extent):
    """Make the object of a predefined datatype."""
    datatype = Datatype.__new__(Datatype)
    datatype._h = handle
    datatype._size, datatype._extent = size, extent
    datatype._dense = size == extent
    datatype._true_extent = extent
    _by_handle.setdefault(handle, datatype)
    _names.setdefault(handle, name)
    named("Datatype", handle, name)
    return _by_handle[handle]


load_table(_define)
DATATYPE_NULL = Datatype()
named("Datatype", 0, "DATATYPE_NULL")
_by_handle[0] = DATATYPE_NULL
