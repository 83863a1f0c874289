"""Which bytes a call of MPI accesses: arguments as runs, see `elements.runs`."""

from . import elements

# Collective calls with a part for each rank: a count is that of one part
_SENT_IN_PARTS = "Scatter", "Alltoall", "Neighbor_alltoall", "Reduce_scatter_block"
_GOT_IN_PARTS = "Gather", "Allgather", "Alltoall", "Neighbor_allgather", "Neighbor_alltoall"


def argument(place, args, kwargs):
    """Return an argument: place is its index and its name. None: there is none."""
    if place is None:
        return None
    return args[place[0]] if len(args) > place[0] else kwargs.get(place[1])


def plain(given, write, parts=1):
    """Return the bytes of a buffer with one count, which is that of each of so many parts."""
    from gormapy.MPI.msgbuffer import message

    address, count, datatype, _ = message(given, not write, 0, parts)
    return elements.runs(address, count * parts, datatype)


def vector(given, write, parts):
    """Return the bytes of a buffer with counts and displacements."""
    from gormapy.MPI.msgbuffer import vector

    address, counts, displs, datatype, _ = vector(given, not write, 0, parts)
    extent = datatype._extent
    pieces = [elements.runs(address + displ * extent, count, datatype) for count, displ in zip(counts, displs)]
    return [run for piece in pieces for run in piece]


def mixed(given, write, parts):
    """Return the bytes of a buffer with counts, displacements and datatypes."""
    from gormapy.MPI import alltoallw

    found, _ = alltoallw.parts(given, not write, parts)
    pieces = [elements.runs(address, count, datatype) for address, count, datatype in found]
    return [run for piece in pieces for run in piece]


def at(place, args, kwargs, write, read=plain, **parts):
    """Return the bytes of a buffer that is an argument, as `read` finds them; none if the call has an error for it."""
    given = argument(place, args, kwargs)
    if given is None:
        return []
    try:
        return read(given, write, **parts)
    except Exception:
        return []


def of_collective(name, communicator, place, args, kwargs, write):
    """Return the bytes of the buffer that a collective call sends or gets."""
    base = name[:-1] if name.endswith(("v", "w")) else name
    if base not in (_GOT_IN_PARTS if write else _SENT_IN_PARTS):
        return at(place, args, kwargs, write)
    if base.startswith("Neighbor"):
        parts = communicator.degrees[0 if write else 1]
    else:
        parts = communicator._peers
    read = vector if name.endswith("v") else mixed if name.endswith("w") else plain
    return at(place, args, kwargs, write, read, parts=parts)
