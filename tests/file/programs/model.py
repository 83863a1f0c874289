"""Random views and accesses against a model: a file that is an array of NumPy's.

The first argument is the seed, the second the data representation. Every rank computes the views and the data of all ranks, so that each knows what the file
has to be.
"""

import sys

import numpy as np
from rankside import MPI, rank, size, world

rng = np.random.default_rng(int(sys.argv[1]))  # the same numbers on all ranks
DATAREP = sys.argv[2]
# etypes and their elements, in memory and in the file
KINDS = {
    "native": [(MPI.UINT8_T, "u1", "u1"), (MPI.INT, "i4", "i4"), (MPI.DOUBLE, "f8", "f8")],
    "external32": [
        (MPI.UINT8_T, "u1", "u1"),
        (MPI.INT, "i4", ">i4"),
        (MPI.DOUBLE, "f8", ">f8"),
        (MPI.LONG, "i8", ">i4"),
    ],
}[DATAREP]


def named(etype):
    """Return a filetype that shows all elements, and those elements' places in one tile."""
    return etype.Create_contiguous(1), [0], 1


def vector(etype):
    count, length = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    stride = length + int(rng.integers(0, 4))
    places = [i * stride + j for i in range(count) for j in range(length)]
    return etype.Create_vector(count, length, stride), places, (count - 1) * stride + length


def indexed(etype):
    n = int(rng.integers(1, 12))
    extent = int(rng.integers(n, 4 * n + 2))
    places = sorted(rng.choice(extent, n, replace=False).tolist())
    made = etype.Create_indexed_block(1, places)
    return made.Create_resized(0, extent * width), places, extent


def subarray(etype):
    shape = [int(k) for k in rng.integers(1, 7, 2 if rng.random() < 0.5 else 3)]
    sub = [int(rng.integers(1, k + 1)) for k in shape]
    start = [int(rng.integers(0, k - s + 1)) for k, s in zip(shape, sub, strict=True)]
    order = MPI.ORDER_C if rng.random() < 0.5 else MPI.ORDER_F
    cells = np.arange(np.prod(shape)).reshape(shape, order="C" if order == MPI.ORDER_C else "F")
    block = cells[tuple(slice(b, b + s) for b, s in zip(start, sub, strict=True))]
    return etype.Create_subarray(shape, sub, start, order), sorted(block.ravel().tolist()), int(np.prod(shape))


def draw(etype):
    """Return displacement, filetype and the elements of one tile in etypes."""
    made, places, extent = [named, vector, indexed, subarray][rng.integers(4)](etype)
    return int(rng.integers(0, 40)), made.Commit(), np.array(places), extent


def bytes_of(view, width, offset, count):
    """Return the places in the file of count elements from offset on, one row of bytes for each."""
    disp, _, places, extent = view
    at = np.arange(offset, offset + count)
    element = at // len(places) * extent + places[at % len(places)]
    return disp + element[:, None] * width + np.arange(width)


def memory(data, kind, strided):
    """Return a buffer specification for data, in one piece or in every second element."""
    if not strided:
        return data, [data, len(data), kind]
    spread = np.zeros(2 * len(data), data.dtype)
    spread[::2] = data
    every = kind.Create_vector(1, 1, 1).Create_resized(0, 2 * data.itemsize).Commit()
    return spread, [spread, len(data), every]


HINTS = (
    {},
    {"cb_buffer_size": "4096"},
    {"collective_buffering": "true"},
    {"cb_nodes": "1"},
    {"collective_buffering": "true", "cb_buffer_size": "4096", "cb_nodes": "3"},
    {"collective_buffering": "false"},
)

for turn in range(12):
    etype, inner, outer = KINDS[rng.integers(len(KINDS))]
    width = np.dtype(outer).itemsize
    views = [draw(etype) for _ in range(size)]
    model = np.zeros(0, "u1")
    hints = HINTS[rng.integers(len(HINTS))]
    info = MPI.Info.Create(hints)
    amode = MPI.MODE_RDWR | MPI.MODE_CREATE | MPI.MODE_DELETE_ON_CLOSE
    file = MPI.File.Open(world, "data", amode, info)
    if rng.random() < 0.3:
        file.Set_atomicity(True)
    file.Set_view(views[rank][0], etype, views[rank][1], DATAREP)
    assert file.Get_type_extent(etype) == width
    assert file.Get_type_extent(views[rank][1]) == views[rank][3] * width
    assert file.Get_view()[3] == DATAREP
    assert file.Get_byte_offset(7) == bytes_of(views[rank], width, 7, 1)[0, 0]
    for _ in range(6):
        offsets, counts = rng.integers(0, 50, size).tolist(), rng.integers(0, 1500, size).tolist()
        everything = [rng.integers(0, 256, (n, width), "u1") for n in counts]
        how, strided = int(rng.integers(5)), bool(rng.integers(2))
        _, spec = memory(everything[rank].reshape(-1).view(outer).astype(inner), etype, strided)
        offset, count = offsets[rank], counts[rank]
        status = MPI.Status()
        if how == 0:
            file.Write_at_all(offset, spec, status)
        elif how == 1:
            file.Seek(offset)
            file.Write_all(spec, status)
            assert file.Get_position() == offset + count
        elif how == 2:
            file.Iwrite_at_all(offset, spec).Wait(status)
        else:  # one after the other: where they overlap, the last one wins here too
            for turns in range(size):
                if turns == rank:
                    if how == 3:
                        file.Iwrite_at(offset, spec).Wait(status)
                    else:
                        file.Write_at(offset, spec, status)
                world.Barrier()
        assert status.Get_count(etype) == count, (how, status.Get_count(etype), count)
        writers = np.zeros(1 << 20, int)
        for view, at, data in zip(views, offsets, everything, strict=True):
            places = bytes_of(view, width, at, len(data))
            if places.size and places.max() >= len(model):
                model = np.concatenate([model, np.zeros(places.max() + 1 - len(model), "u1")])
            model[places.ravel()] = data.ravel()
            writers[places.ravel()] += 1
        world.Barrier()
        assert file.Get_size() == len(model), (file.Get_size(), len(model))
        written = np.fromfile("data", "u1")
        if how < 3 and hints.get("collective_buffering") == "false":  # nobody says which of several writers is the last
            several = np.flatnonzero(writers > 1)
            model[several] = written[several]
        assert (written == model).all(), (turn, how, np.flatnonzero(written != model)[:5])
        world.Barrier()

        # and back, also behind the end of the file
        offset, count = int(rng.integers(0, 60)) + rank, int(rng.integers(0, 1600))
        spread, spec = memory(np.full(count * np.dtype(inner).itemsize, 251, "u1").view(inner), etype, strided)
        if how == 0:
            file.Read_at_all(offset, spec, status)
        elif how == 1:
            file.Seek(offset)
            file.Read_all(spec, status)
        elif how == 2:
            file.Iread_at_all(offset, spec).Wait(status)
        elif how == 3:
            file.Iread_at(offset, spec).Wait(status)
        else:
            file.Read_at(offset, spec, status)
        got = (spread[::2] if strided else spread).astype(outer).view("u1").reshape(-1, width)
        places = bytes_of(views[rank], width, offset, count)
        there = places < len(model)
        moved = int(there.sum())
        if DATAREP != "native":  # only whole elements can be converted
            there[~there.all(axis=1)] = False
            moved = int(there.sum()) // width * np.dtype(inner).itemsize
        assert status.Get_elements(MPI.BYTE) == moved, (how, status.Get_elements(MPI.BYTE), moved)
        assert (got[there] == model[places[there]]).all(), (turn, how)
        assert (got[~there] == 251).all(), (turn, how)
        assert not strided or not spread[1::2].any()
        world.Barrier()
    file.Close()
