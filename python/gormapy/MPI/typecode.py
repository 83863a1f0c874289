"""How MPI datatypes, Python's struct codes and NumPy's type codes correspond."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gormapy._ext import core

from . import constants

if TYPE_CHECKING:
    from .datatype import Datatype

# Type codes of the predefined datatypes, by name without MPI_. Sizes follow from the code.
TYPE_CHARS = {
    "PACKED": "B",
    "BYTE": "B",
    "AINT": "p",
    "OFFSET": "p",
    "COUNT": "p",
    "CHAR": "c",
    "WCHAR": "U",
    "SIGNED_CHAR": "b",
    "SHORT": "h",
    "INT": "i",
    "LONG": "l",
    "LONG_LONG": "q",
    "UNSIGNED_CHAR": "B",
    "UNSIGNED_SHORT": "H",
    "UNSIGNED": "I",
    "UNSIGNED_LONG": "L",
    "UNSIGNED_LONG_LONG": "Q",
    "FLOAT": "f",
    "DOUBLE": "d",
    "LONG_DOUBLE": "g",
    "C_BOOL": "?",
    "INT8_T": "b",
    "INT16_T": "h",
    "INT32_T": "i",
    "INT64_T": "l",
    "UINT8_T": "B",
    "UINT16_T": "H",
    "UINT32_T": "I",
    "UINT64_T": "L",
    "FLOAT16_T": "e",
    "C_COMPLEX": "F",
    "C_DOUBLE_COMPLEX": "D",
    "C_LONG_DOUBLE_COMPLEX": "G",
    "CXX_BOOL": "?",
    "CXX_FLOAT_COMPLEX": "F",
    "CXX_DOUBLE_COMPLEX": "D",
    "CXX_LONG_DOUBLE_COMPLEX": "G",
    "CHARACTER": "c",
    "LOGICAL": "i",
    "INTEGER": "i",
    "REAL": "f",
    "DOUBLE_PRECISION": "d",
    "COMPLEX": "F",
    "DOUBLE_COMPLEX": "D",
    "LOGICAL1": "?",
    "LOGICAL2": "h",
    "LOGICAL4": "i",
    "LOGICAL8": "l",
    "INTEGER1": "b",
    "INTEGER2": "h",
    "INTEGER4": "i",
    "INTEGER8": "l",
    "REAL2": "e",
    "REAL4": "f",
    "REAL8": "d",
    "REAL16": "g",
    "COMPLEX4": "E",
    "COMPLEX8": "F",
    "COMPLEX16": "D",
    "COMPLEX32": "G",
}

_STRING_OF_CHAR = {
    "?": "b1",
    "b": "i1",
    "h": "i2",
    "i": "i4",
    "l": "i8",
    "q": "i8",
    "p": "i8",
    "B": "u1",
    "H": "u2",
    "I": "u4",
    "L": "u8",
    "Q": "u8",
    "P": "u8",
    "e": "f2",
    "f": "f4",
    "d": "f8",
    "g": "f16",
    "E": "c4",
    "F": "c8",
    "D": "c16",
    "G": "c32",
    "c": "S1",
    "S": "S1",
    "U": "U1",
}
TYPE_STRINGS = {name: _STRING_OF_CHAR[char] for name, char in TYPE_CHARS.items()}

_ALIGNMENTS = {"?": 1, "c": 1, "S": 1, "b": 1, "B": 1, "h": 2, "H": 2, "e": 2, "E": 2, "i": 4, "I": 4, "f": 4, "F": 4}
_ALIGNMENTS.update({"U": 4, "g": 16, "G": 16})

# Datatypes whose code is their type string: their size is part of their name.
_SIZED = ("INT8_T", "INT16_T", "INT32_T", "INT64_T", "UINT8_T", "UINT16_T", "UINT32_T", "UINT64_T", "C_BOOL")
_SIZED_PREFIXES = ("LOGICAL", "INTEGER", "REAL", "COMPLEX")

# Codes and the names they stand for; of several, the first that the core knows.
_CODES = {
    "?": ("C_BOOL", "CXX_BOOL"),
    "b": ("SIGNED_CHAR",),
    "h": ("SHORT",),
    "i": ("INT",),
    "l": ("LONG",),
    "q": ("LONG_LONG",),
    "B": ("UNSIGNED_CHAR",),
    "H": ("UNSIGNED_SHORT",),
    "I": ("UNSIGNED",),
    "L": ("UNSIGNED_LONG",),
    "Q": ("UNSIGNED_LONG_LONG",),
    "n": ("COUNT", "LONG"),
    "N": ("UNSIGNED_LONG",),
    "p": ("AINT", "LONG"),
    "P": ("UNSIGNED_LONG",),
    "e": ("FLOAT16_T", "REAL2"),
    "bfloat16": ("BFLOAT16_T",),  # no code of NumPy: what ml_dtypes calls it
    "f": ("FLOAT",),
    "d": ("DOUBLE",),
    "g": ("LONG_DOUBLE",),
    "Ze": ("COMPLEX4",),
    "Zf": ("C_COMPLEX", "COMPLEX8"),
    "Zd": ("C_DOUBLE_COMPLEX", "COMPLEX16"),
    "Zg": ("C_LONG_DOUBLE_COMPLEX",),
    "E": ("COMPLEX4",),
    "F": ("C_COMPLEX", "COMPLEX8"),
    "D": ("C_DOUBLE_COMPLEX", "COMPLEX16"),
    "G": ("C_LONG_DOUBLE_COMPLEX",),
    "b1": ("C_BOOL",),
    "i1": ("INT8_T",),
    "i2": ("INT16_T",),
    "i4": ("INT32_T",),
    "i8": ("INT64_T",),
    "i16": ("INTEGER16",),
    "u1": ("UINT8_T",),
    "u2": ("UINT16_T",),
    "u4": ("UINT32_T",),
    "u8": ("UINT64_T",),
    "f2": ("FLOAT16_T", "REAL2"),
    "f4": ("FLOAT",),
    "f8": ("DOUBLE",),
    "f16": ("LONG_DOUBLE",),
    "c4": ("COMPLEX4",),
    "c8": ("C_COMPLEX",),
    "c16": ("C_DOUBLE_COMPLEX",),
    "c32": ("C_LONG_DOUBLE_COMPLEX",),
    "c": ("CHAR",),
    "a": ("CHAR",),
    "S": ("CHAR",),
    "S1": ("CHAR",),
    "s": ("CHAR",),
    "1s": ("CHAR",),
    "U": ("WCHAR",),
    "U1": ("WCHAR",),
    "u": ("UINT16_T",),
    "1u": ("UINT16_T",),
    "w": ("WCHAR",),
    "1w": ("WCHAR",),
    "M": ("INT64_T",),
    "M8": ("INT64_T",),
    "m": ("INT64_T",),
    "m8": ("INT64_T",),
}

# The meaning of format codes whose size is not that of this platform's C type.
_KINDS = {"b": "i", "h": "i", "i": "i", "l": "i", "q": "i", "B": "u", "H": "u", "I": "u", "L": "u", "Q": "u", "u": "u"}

# Names of mpi4py, and the datatypes they stand for. A datatype that the core does not have is null.
ALIASES = {
    "UNSIGNED_INT": "UNSIGNED",
    "SIGNED_SHORT": "SHORT",
    "SIGNED_INT": "INT",
    "SIGNED_LONG": "LONG",
    "SIGNED_LONG_LONG": "LONG_LONG",
    "BOOL": "C_BOOL",
    "SINT8_T": "INT8_T",
    "SINT16_T": "INT16_T",
    "SINT32_T": "INT32_T",
    "SINT64_T": "INT64_T",
    "F_BOOL": "LOGICAL",
    "F_INT": "INTEGER",
    "F_FLOAT": "REAL",
    "F_DOUBLE": "DOUBLE_PRECISION",
    "F_COMPLEX": "COMPLEX",
    "F_FLOAT_COMPLEX": "COMPLEX",
    "F_DOUBLE_COMPLEX": "DOUBLE_COMPLEX",
    "C_FLOAT_COMPLEX": "C_COMPLEX",
    "FLOAT32_T": "FLOAT",
    "FLOAT64_T": "DOUBLE",
    "INT_INT": "2INT",
    "TWOINT": "2INT",
}
for _name in (*TYPE_CHARS, "BFLOAT16_T", "LOGICAL16", "INTEGER16"):
    ALIASES[_name] = _name
for _name in ("SHORT_INT", "LONG_INT", "FLOAT_INT", "DOUBLE_INT", "LONG_DOUBLE_INT"):
    ALIASES[_name] = _name

_FORTRAN_CODES = {
    "l": "LOGICAL",
    "i": "INTEGER",
    "r": "REAL",
    "s": "REAL",
    "d": "DOUBLE_PRECISION",
    "c": "COMPLEX",
    "z": "DOUBLE_COMPLEX",
}

DATATYPES = {}  # name without MPI_ -> object
_typedict: dict[str, Datatype] = {}  # code -> object
_typedict_c: dict[str, Datatype] = {}  # the same for types of C and of Fortran
_typedict_f: dict[str, Datatype] = {}


def load_table(define):
    """Make the objects of the predefined datatypes from the table of the core."""
    for entry in core.DatatypeTable().split():
        name, _, fields = entry.partition("=")
        handle, size, extent, _ = fields.split(":", 3)
        name = name.removeprefix("MPI_")
        DATATYPES[name] = define(name, int(handle), int(size), int(extent))
    for code, names in _CODES.items():
        for name in names:
            if name in DATATYPES:
                fortran = name.startswith(_SIZED_PREFIXES)
                _typedict[code] = (_typedict_f if fortran else _typedict_c)[code] = DATATYPES[name]
                break
    for code, name in _FORTRAN_CODES.items():
        if name in DATATYPES:
            _typedict_f[code] = DATATYPES[name]


def lookup(code):
    """Return the datatype of a type code."""
    try:
        return _typedict[code]
    except KeyError:
        pass
    except TypeError:  # not hashable
        raise TypeError(f"expecting a datatype or a type code, got {type(code).__name__}") from None
    if isinstance(code, str) and code[:1] in "@<=|" and code[1:] in _typedict:
        return _typedict[code[1:]]
    from .explain import no_datatype

    raise no_datatype(code)


def for_format(format, itemsize):
    """Return the datatype for the elements of a buffer with a PEP 3118 format."""
    datatype = _typedict.get(format)
    if datatype is None:
        if format is None:
            return DATATYPES["BYTE"]
        if format[:1] in (">", "!"):
            raise BufferError(
                f"message: the buffer's elements are big-endian (format {format!r}), gormapy sends native ones; "
                "convert them, for instance by a.astype(a.dtype.newbyteorder('='))"
            )
        datatype = _typedict.get(format[1:] if format[:1] in "@<=|" else format)
        if datatype is None:
            from .explain import no_elements

            raise no_elements(format)
    if datatype._size == itemsize or not itemsize:
        return datatype
    # ctypes and struct know formats whose sizes are not those of C types here
    kind = _KINDS.get(format.lstrip("@<=|"))
    return lookup(f"{kind}{itemsize}" if kind else format)


def typecode(datatype):
    """Return the type code of a datatype, None if it has none."""
    name = datatype._code_name()
    if name is None:
        return None
    if name in _SIZED or (name.startswith(_SIZED_PREFIXES) and name[-1].isdigit()):
        return TYPE_STRINGS.get(name)
    return TYPE_CHARS.get(name)


def typealign(datatype):
    """Return the alignment of a predefined datatype in bytes, None if it has none."""
    name = datatype._code_name()
    char = TYPE_CHARS.get(name)
    if char is not None:
        return _ALIGNMENTS.get(char, 8)
    if name == "BFLOAT16_T":
        return 2
    first, _, second = (name or "").rpartition("_")
    if second == "INT" and first in TYPE_CHARS:
        return max(_ALIGNMENTS.get(TYPE_CHARS[first], 8), 4)
    return 4 if name == "2INT" else None


_CLASS_NAMES = {
    constants.TYPECLASS_INTEGER: "INTEGER",
    constants.TYPECLASS_REAL: "REAL",
    constants.TYPECLASS_COMPLEX: "COMPLEX",
    constants.TYPECLASS_LOGICAL: "LOGICAL",
}


def match_size(typeclass, size):
    """Return the Fortran datatype of a class and a size."""
    from .exception import Exception

    datatype = DATATYPES.get(f"{_CLASS_NAMES.get(typeclass)}{size}")
    if datatype is None:
        raise Exception(constants.ERR_ARG)
    return datatype


_PAIRS = {
    ("FLOAT", "INT"): "FLOAT_INT",
    ("DOUBLE", "INT"): "DOUBLE_INT",
    ("LONG", "INT"): "LONG_INT",
    ("INT", "INT"): "2INT",
    ("SHORT", "INT"): "SHORT_INT",
    ("LONG_DOUBLE", "INT"): "LONG_DOUBLE_INT",
}


def pair(value, index):
    """Return the datatype of pairs of a value and an index, null if there is none."""
    for datatype in (value, index):
        datatype._checked()
    name = _PAIRS.get((value._code_name(), index._code_name()))
    return DATATYPES[name] if name else type(value)()


# How derived datatypes were made
# -------------------------------

_CONSTRUCTORS = {
    "DUP": "Dup",
    "CONTIGUOUS": "Create_contiguous",
    "VECTOR": "Create_vector",
    "HVECTOR": "Create_hvector",
    "INDEXED": "Create_indexed",
    "HINDEXED": "Create_hindexed",
    "INDEXED_BLOCK": "Create_indexed_block",
    "HINDEXED_BLOCK": "Create_hindexed_block",
    "STRUCT": "Create_struct",
    "SUBARRAY": "Create_subarray",
    "DARRAY": "Create_darray",
    "RESIZED": "Create_resized",
    "F90_INTEGER": "Create_f90_integer",
    "F90_REAL": "Create_f90_real",
    "F90_COMPLEX": "Create_f90_complex",
}
_COMBINER_NAMES = {getattr(constants, f"COMBINER_{name}"): name for name in _CONSTRUCTORS}


def _datatype_decode(datatype: Datatype, mark: bool = False) -> tuple[Datatype, str, dict[str, Any]]:
    """Return base datatype, name of the combiner and its parameters."""
    if datatype._construction is None:
        return datatype, "NAMED", {}
    combiner, types, _, params = datatype._construction
    # derived types are handed out as new objects, which the caller frees
    types = [t._reference() for t in types]
    if combiner == constants.COMBINER_STRUCT:
        base = DATATYPES.get("DATATYPE_NULL") or type(datatype)()
        return base, "STRUCT", {**params, "datatypes": types}
    base = types[0] if types else DATATYPES.get("DATATYPE_NULL") or type(datatype)()
    return base, _COMBINER_NAMES[combiner], dict(params)


def _datatype_create(datatype: Datatype, combiner: str, params: dict[str, Any], free: bool = False) -> Datatype:
    """Make the datatype that `_datatype_decode` described."""
    if combiner == "NAMED":
        return datatype
    bases = params["datatypes"] if combiner == "STRUCT" else [datatype]
    try:
        return getattr(datatype, _CONSTRUCTORS[combiner])(**params).Commit()
    finally:
        if free:
            for base in bases:
                if not base.is_predefined:
                    base.Free()
