"""Derived datatypes at the origin and at the target, against the places that a model in NumPy gives them.

A Layout is a datatype together with the byte offset of each of its elements, worked out here from what MPI says
of its constructor, not by the library under test.
"""

import itertools

import numpy as np
from onesided import MPI, Window, case, main, rank, same, size, world


class Layout:
    """A datatype, the byte offsets of its elements in order, and its extent."""

    def __init__(self, datatype, offsets, extent=None, lb=None):
        self.datatype = datatype.Commit() if not datatype.is_predefined else datatype
        self.offsets = np.asarray(offsets, "i8")
        least = int(self.offsets.min()) if lb is None else lb
        self.lb = least
        self.extent = int(self.offsets.max()) + 4 - least if extent is None else extent
        same(datatype.Get_extent(), (self.lb, self.extent), "extent of the type")
        assert datatype.Get_size() == 4 * len(self.offsets)

    def places(self, count):
        """Return the index of each 4-byte element of several of the type."""
        return ((np.arange(count)[:, None] * self.extent + self.offsets) // 4).reshape(-1)


INT = Layout(MPI.INT, [0])


def blocks(inner, lengths, starts):
    """Return the offsets of blocks of an inner layout, each from a byte."""
    return np.concatenate(
        [start + i * inner.extent + inner.offsets for n, start in zip(lengths, starts) for i in range(n)]
    )


def bounds(inner, lengths, starts):
    """Return lower bound and extent of such a type: over all blocks that are not empty."""
    low = [s + inner.lb for n, s in zip(lengths, starts) if n]
    high = [s + (n - 1) * inner.extent + inner.lb + inner.extent for n, s in zip(lengths, starts) if n]
    return {"lb": min(low), "extent": max(high) - min(low)}


def contiguous(n, inner=INT):
    return Layout(inner.datatype.Create_contiguous(n), *both(inner, [n], [0]))


def both(inner, lengths, starts):
    limits = bounds(inner, lengths, starts)
    return blocks(inner, lengths, starts), limits["extent"], limits["lb"]


def vector(count, length, stride, inner=INT):
    starts = [i * stride * inner.extent for i in range(count)]
    return Layout(inner.datatype.Create_vector(count, length, stride), *both(inner, [length] * count, starts))


def hvector(count, length, stride, inner=INT):
    starts = [i * stride for i in range(count)]
    return Layout(inner.datatype.Create_hvector(count, length, stride), *both(inner, [length] * count, starts))


def indexed(lengths, displacements, inner=INT):
    starts = [d * inner.extent for d in displacements]
    return Layout(inner.datatype.Create_indexed(lengths, displacements), *both(inner, lengths, starts))


def hindexed(lengths, displacements, inner=INT):
    return Layout(inner.datatype.Create_hindexed(lengths, displacements), *both(inner, lengths, displacements))


def indexed_block(length, displacements, inner=INT):
    starts = [d * inner.extent for d in displacements]
    lengths = [length] * len(starts)
    return Layout(inner.datatype.Create_indexed_block(length, displacements), *both(inner, lengths, starts))


def hindexed_block(length, displacements, inner=INT):
    lengths = [length] * len(displacements)
    return Layout(inner.datatype.Create_hindexed_block(length, displacements), *both(inner, lengths, displacements))


def struct(lengths, displacements, inners):
    offsets = np.concatenate([blocks(t, [n], [d]) for t, n, d in zip(inners, lengths, displacements) if n])
    low = min(d + t.lb for t, n, d in zip(inners, lengths, displacements) if n)
    high = max(d + n * t.extent + t.lb for t, n, d in zip(inners, lengths, displacements) if n)
    datatype = MPI.Datatype.Create_struct(lengths, displacements, [t.datatype for t in inners])
    return Layout(datatype, offsets, high - low, low)


def resized(inner, lb, extent):
    return Layout(inner.datatype.Create_resized(lb, extent), inner.offsets, extent, lb)


def subarray(sizes, subsizes, starts, order=MPI.ORDER_C, inner=INT):
    numbers = np.arange(np.prod(sizes)).reshape(sizes, order="C" if order == MPI.ORDER_C else "F")
    part = numbers[tuple(slice(s, s + n) for s, n in zip(starts, subsizes))]
    part = part.reshape(-1, order="C" if order == MPI.ORDER_C else "F")
    offsets = (part[:, None] * inner.extent + inner.offsets).reshape(-1)
    extent = int(np.prod(sizes)) * inner.extent
    return Layout(inner.datatype.Create_subarray(sizes, subsizes, starts, order), offsets, extent, 0)


def darray(nprocs, me, sizes, distributions, arguments, grid, order=MPI.ORDER_C):
    coordinates = np.unravel_index(me, grid)  # row-major, whatever the order of the array
    indices = []
    for n, distribution, argument, p, c in zip(sizes, distributions, arguments, grid, coordinates):
        every = np.arange(n)
        if distribution == MPI.DISTRIBUTE_NONE:
            indices.append(every)
            continue
        default = -(-n // p) if distribution == MPI.DISTRIBUTE_BLOCK else 1
        run = default if argument == MPI.DISTRIBUTE_DFLT_DARG else argument
        indices.append(every[(every // run) % p == c])
    letter = "C" if order == MPI.ORDER_C else "F"
    part = np.arange(np.prod(sizes)).reshape(sizes, order=letter)[np.ix_(*indices)].reshape(-1, order=letter)
    datatype = MPI.INT.Create_darray(nprocs, me, sizes, distributions, arguments, grid, order)
    return Layout(datatype, 4 * part, 4 * int(np.prod(sizes)), 0)


def layouts():
    pair = vector(2, 1, 3)
    column = resized(vector(4, 1, 5), 0, 4)
    result = {
        "predefined": INT,
        "contiguous": contiguous(5),
        "vector": vector(3, 2, 4),
        "vector, backwards": vector(4, 1, -3),
        "vector without gaps": vector(3, 2, 2),
        "hvector": hvector(3, 2, 20),
        "hvector, backwards": hvector(3, 1, -8),
        "indexed": indexed([2, 0, 1, 3], [5, 1, 0, 9]),
        "indexed, descending": indexed([1, 2, 1], [6, 3, 0]),
        "hindexed": hindexed([1, 2], [12, 28]),
        "indexed_block": indexed_block(2, [7, 0, 3]),
        "hindexed_block": hindexed_block(2, [0, 24, 12]),
        "struct": struct([1, 2, 1], [8, 24, 0], [INT, INT, INT]),
        "struct of types": struct([2, 1], [0, 64], [pair, contiguous(3)]),
        "subarray": subarray([4, 5], [2, 3], [1, 1]),
        "subarray in Fortran's order": subarray([4, 5], [2, 3], [1, 1], MPI.ORDER_F),
        "subarray in 3 dimensions": subarray([3, 4, 5], [2, 2, 2], [1, 2, 0]),
        "resized, wider": resized(INT, 0, 12),
        "resized, narrower": column,
        "resized, from below": resized(contiguous(2), -4, 16),
        "vector of vectors": vector(2, 1, 2, pair),
        "hvector of columns": resized(hvector(2, 3, 100, column), 0, 200),
        "indexed of subarrays": indexed([1, 2], [0, 2], subarray([2, 3], [2, 1], [0, 1])),
        "contiguous of structs": contiguous(2, struct([1, 1], [0, 12], [INT, INT])),
        "duplicate": Layout(pair.datatype.Dup(), pair.offsets, pair.extent, pair.lb),
        "four deep": contiguous(2, vector(2, 1, 2, indexed([1, 1], [1, 0], resized(pair, 0, 20)))),
    }
    return result


def distributed():
    """Return parts of arrays that are dealt out to 4 processes in blocks, in turns and mixed."""
    result = {"predefined": INT, "contiguous": contiguous(5)}
    for order, me in itertools.product((MPI.ORDER_C, MPI.ORDER_F), (0, 3)):
        name = f"{'C' if order == MPI.ORDER_C else 'F'}, part {me}"
        block, cyclic, none = MPI.DISTRIBUTE_BLOCK, MPI.DISTRIBUTE_CYCLIC, MPI.DISTRIBUTE_NONE
        default = MPI.DISTRIBUTE_DFLT_DARG
        result[f"darray of blocks, {name}"] = darray(4, me, [5, 7], [block, block], [default] * 2, [2, 2], order)
        result[f"darray, cyclic, {name}"] = darray(4, me, [6, 9], [cyclic, cyclic], [default, 2], [2, 2], order)
        result[f"darray, mixed, {name}"] = darray(4, me, [3, 11], [none, block], [default, 3], [1, 4], order)
    return result


ROOM = 1500  # elements, around a place in the middle
MIDDLE = 500


def spread(memory, layout, count, values):
    memory[MIDDLE + layout.places(count)] = values


def taken(memory, layout, count):
    return memory[MIDDLE + layout.places(count)]


def overlap(layout, count):
    """Return whether elements share places: what must not be written to."""
    return len(set(layout.places(count))) < count * len(layout.offsets)


def sides(found):
    """Return pairs of (count, layout) with as many elements: each one with the predefined type, and with others."""
    names = list(found)
    draw = np.random.default_rng(5)  # the same pairs on all ranks
    for name, layout in found.items():
        count = 3
        total = count * len(layout.offsets)
        assert not overlap(layout, count), name
        yield (name, count, layout), ("predefined", total, INT)
        yield ("predefined", total, INT), (name, count, layout)
        for other in draw.choice(names, 3):
            m, n = len(layout.offsets), len(found[other].offsets)
            both = np.lcm(m, n)
            if both <= 120 and not overlap(layout, both // m) and not overlap(found[other], both // n):
                yield (name, both // m, layout), (other, both // n, found[other])


@case
def every_layout(flavour):
    put_get_and_accumulate(flavour, layouts())


@case
def distributed_arrays(flavour):
    put_get_and_accumulate(flavour, distributed())


def put_get_and_accumulate(flavour, found):
    """Use each layout at the origin and at the target of each call."""
    target = (rank + 1) % size
    before = (rank - 1) % size
    here = np.arange(ROOM, dtype="i4") * 3
    with Window(flavour, ROOM, "i4") as w:
        for (a, m, source), (b, n, place) in sides(found):
            label = f"{a} to {b}"
            where = (w.at(target, MIDDLE), n, place.datatype)
            values = here + 100_000 * rank
            origin = address_of(values, m, source)
            w.mine[:] = -1
            w.win.Fence()
            w.win.Put(origin, target, where)
            w.win.Fence()
            expected = np.full(ROOM, -1, "i4")
            spread(expected, place, n, taken(here + 100_000 * before, source, m))
            same(w.mine, expected, "Put", label)
            w.win.Fence()
            back = np.full(ROOM, -2, "i4")
            w.win.Get(address_of(back, m, source), target, where)
            w.win.Fence()
            returned = np.full(ROOM, -2, "i4")
            spread(returned, source, m, taken(values, source, m))
            same(back, returned, "Get", label)
            w.win.Accumulate(origin, target, where, MPI.SUM)
            w.win.Fence()
            spread(expected, place, n, 2 * taken(here + 100_000 * before, source, m))
            same(w.mine, expected, "Accumulate", label)
            world.Barrier()
            old = np.full(ROOM, -2, "i4")
            w.win.Fence()
            w.win.Get_accumulate(origin, address_of(old, m, source), target, where, MPI.REPLACE)
            w.win.Fence()
            spread(returned, source, m, 2 * taken(values, source, m))
            same(old, returned, "Get_accumulate", label)
            spread(expected, place, n, taken(here + 100_000 * before, source, m))
            same(w.mine, expected, "Get_accumulate", label)
            world.Barrier()


def address_of(memory, count, layout):
    """Return a specification whose address is in the middle of memory: types may reach below it."""
    return [MPI.BOTTOM, count, shifted(memory, layout)]


_shifted = []


def shifted(memory, layout):
    """Return the type at an absolute address, as MPI.BOTTOM wants it."""
    datatype = MPI.Datatype.Create_struct([1], [MPI.Get_address(memory) + 4 * MIDDLE], [layout.datatype])
    datatype = datatype.Create_resized(0, layout.extent).Commit()
    _shifted.append((datatype, memory))  # until the end: the operation is not complete when this returns
    return datatype


@case
def structs_of_mixed_types(flavour):
    """Records with numbers of several sizes, put field by field type and as columns."""
    record = np.dtype([("a", "i1"), ("b", "f8"), ("c", "i2"), ("d", "i4", 3)], align=True)
    fields = [record.fields[k][1] for k in "abcd"]
    datatype = MPI.Datatype.Create_struct(
        [1, 1, 1, 3], fields, [MPI.INT8_T, MPI.DOUBLE, MPI.INT16_T, MPI.INT32_T]
    ).Create_resized(0, record.itemsize)
    datatype.Commit()
    only_b = MPI.Datatype.Create_struct([1], [record.fields["b"][1]], [MPI.DOUBLE]).Create_resized(0, record.itemsize)
    only_b.Commit()
    count = 50
    values = np.zeros(count, record)
    values["a"], values["b"] = np.arange(count), np.arange(count) / 4 + rank
    values["c"], values["d"] = -np.arange(count), np.arange(3 * count).reshape(count, 3)
    target, before = (rank + 1) % size, (rank - 1) % size
    with Window(flavour, count, record) as w:
        w.win.Fence()
        w.win.Put([values, count, datatype], target, (w.at(target), count, datatype))
        w.win.Fence()
        for key in "acd":
            same(w.mine[key], values[key])
        same(w.mine["b"], np.arange(count) / 4 + before)
        world.Barrier()
        w.win.Fence()
        column = np.full(count, 0.5)
        w.win.Accumulate([column, count, MPI.DOUBLE], target, (w.at(target), count, only_b), MPI.SUM)
        w.win.Fence()
        same(w.mine["b"], np.arange(count) / 4 + before + 0.5)
        for key in "acd":
            same(w.mine[key], values[key])
        got = np.zeros(count)
        w.win.Get([got, count, MPI.DOUBLE], target, (w.at(target), count, only_b))
        w.win.Fence()
        same(got, values["b"] + 0.5)
        world.Barrier()
    datatype.Free()
    only_b.Free()


@case
def freed_types_are_used_to_the_end(flavour):
    """A type may be freed as soon as the call has returned."""
    with Window(flavour, 40, "i4") as w:
        target = (rank + 1) % size
        values = np.arange(10, dtype="i4")
        w.win.Lock(target)
        datatype = MPI.INT.Create_vector(10, 1, 4).Commit()
        w.win.Put([values, 10, MPI.INT], target, (w.at(target), 1, datatype))
        datatype.Free()
        w.win.Unlock(target)
        w.settle()
        same(w.mine[::4], values)
        assert w.mine.sum() == values.sum()


@case
def long_strided(flavour):
    """Thousands of runs in one call, so that they do not fit into one batch of anything."""
    n = 3000
    every_other = MPI.INT16_T.Create_vector(n, 1, 2).Commit()
    threes = MPI.INT16_T.Create_indexed([3] * (n // 2), list(range(0, 2 * n, 4))).Commit()
    target = (rank + 1) % size
    with Window(flavour, 2 * n, "i2") as w:
        values = np.arange(n, dtype="i2")
        w.win.Fence()
        w.win.Put([values, n, MPI.INT16_T], target, (w.at(target), 1, every_other))
        w.win.Fence()
        same(w.mine[::2], values)
        assert not w.mine[1::2].any()
        got = np.zeros(2 * n, "i2")
        w.win.Get([got, 1, threes], target, (w.at(target), 1, threes))
        w.win.Fence()
        expected = np.zeros(2 * n, "i2")
        expected[::2] = values
        expected.reshape(-1, 4)[:, 3] = 0
        same(got, expected)
        w.win.Accumulate([values, n, MPI.INT16_T], target, (w.at(target), 1, every_other))
        w.win.Fence()
        same(w.mine[::2], 2 * values)
        world.Barrier()
    every_other.Free()
    threes.Free()


main()
