"""What the checker is told of calls that access only memory of their rank: packing, and combining two buffers."""

from gormapy._ext import core

from . import accesses, buffers, elements
from .wrapping import replace

# The places of the elements, of the packed data, and of the position in it
_PACKING = {
    "Pack": ((0, "inbuf"), (1, "outbuf"), (2, "position")),
    "Unpack": ((2, "outbuf"), (0, "inbuf"), (1, "position")),
    "Pack_external": ((1, "inbuf"), (2, "outbuf"), (3, "position")),
    "Unpack_external": ((3, "outbuf"), (1, "inbuf"), (2, "position")),
}
_COMBINED = (((0, "inbuf"), False), ((1, "inoutbuf"), True))


def _packing(name):
    packs = name.startswith("Pack")
    items, packed, position = _PACKING[name]

    def make(method):
        def told(self, *args, **kwargs):
            end = method(self, *args, **kwargs)
            size = core.TypeExternalSize(self._h) if name.endswith("external") else self._size
            start = int(buffers.argument(position, args, kwargs))
            count = (end - start) // size if size > 0 else 0
            if count:
                address = _address(items, args, kwargs, not packs)
                accesses.told(name, items, elements.runs(address, count, self), not packs)
                address = _address(packed, args, kwargs, packs) + start
                accesses.told(name, packed, [(address, 1, end - start, end - start)], packs)
            return end

        return told

    return make


def _address(place, args, kwargs, write):
    from gormapy.MPI.msgbuffer import acquire

    return acquire(buffers.argument(place, args, kwargs), not write)[0]


def _reducing(method):
    def told(self, *args, **kwargs):
        for place, write in _COMBINED:
            accesses.told("Reduce_local", place, buffers.at(place, args, kwargs, write), write)
        return method(self, *args, **kwargs)

    return told


def install():
    """Replace the methods of datatypes that pack, and that of operations which combines two buffers."""
    from gormapy import MPI

    for name in _PACKING:
        replace(MPI.Datatype, name, _packing(name))
    replace(MPI.Op, "Reduce_local", _reducing)
