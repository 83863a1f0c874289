"""The programs of test_win_info.py."""

# The functions that are made in loops are called there.
# ruff: noqa: B023

import numpy as np
from rankside import near, one_node, rank, size, world

from gormapy import MPI

DEFAULTS = {
    "no_locks": "false",
    "accumulate_ordering": "rar,raw,war,waw",
    "accumulate_ops": "same_op_no_op",
    "same_size": "false",
    "same_disp_unit": "false",
    "gormapy_native_atomics": "auto",
}
NODE = near()
MORE = {
    MPI.WIN_FLAVOR_CREATE: {},
    MPI.WIN_FLAVOR_ALLOCATE: {"mpi_minimum_memory_alignment": "4096"},
    MPI.WIN_FLAVOR_SHARED: {"alloc_shared_noncontig": "false"},
    MPI.WIN_FLAVOR_DYNAMIC: {},
}


def info(hints):
    return MPI.Info.Create(hints)


def windows(hints, bytes=800, unit=8):
    "How a window of each flavor is made."
    given = info(hints)
    return {
        MPI.WIN_FLAVOR_CREATE: lambda: MPI.Win.Create(np.zeros(bytes, "u1"), unit, given, world),
        MPI.WIN_FLAVOR_ALLOCATE: lambda: MPI.Win.Allocate(bytes, unit, given, world),
        MPI.WIN_FLAVOR_SHARED: lambda: MPI.Win.Allocate_shared(bytes, unit, given, NODE),
        MPI.WIN_FLAVOR_DYNAMIC: lambda: MPI.Win.Create_dynamic(given, world),
    }


def fails(call, cls, *texts):
    try:
        call()
    except MPI.Exception as error:
        assert error.Get_error_class() == cls, error
        assert all(text in str(error) for text in texts), error
    else:
        raise AssertionError("nothing was raised")


def the_values_that_hold():
    for flavor, make in windows({}).items():
        win = make()
        assert dict(win.Get_info().items()) == {**DEFAULTS, **MORE[flavor]}
        win.Set_info(info({"accumulate_ops": "same_op", "unknown": "x", "same_size": "true"}))
        win.Set_info(MPI.INFO_NULL)
        assert dict(win.info.items()) == {**DEFAULTS, **MORE[flavor], "accumulate_ops": "same_op"}
        copy = MPI.Win(win)
        assert copy.info["accumulate_ops"] == "same_op"
        win.Free()
    hints = {"accumulate_ordering": " waw, rar", "same_size": "true", "same_disp_unit": "true", "unknown": "x"}
    for flavor, make in windows(hints).items():
        win = make()
        want = {
            **DEFAULTS,
            **MORE[flavor],
            "same_size": "true",
            "same_disp_unit": "true",
            "accumulate_ordering": "rar,waw",
        }
        assert dict(win.info.items()) == want
        win.Free()


def bad_values_name_the_choices_and_change_nothing():
    BAD = [
        ("no_locks", "yes", "true or false"),
        ("no_locks", "", "true or false"),
        ("accumulate_ordering", "none,rar", "none, or some of rar,raw,war,waw"),
        ("accumulate_ordering", "", "none, or some of rar,raw,war,waw"),
        ("accumulate_ops", "any", "same_op or same_op_no_op"),
    ]
    FIXED = [("same_size", "1", "true or false"), ("same_disp_unit", "True", "true or false")]
    for flavor, make in windows({}).items():
        win = make()
        before = dict(win.info.items())
        for key, value, choices in BAD:
            fails(
                lambda: win.Set_info(info({"accumulate_ops": "same_op", key: value})), MPI.ERR_INFO_VALUE, key, choices
            )
            assert dict(win.info.items()) == before
        win.Fence()
        win.Free()
        for key, value, choices in BAD + FIXED:
            fails(windows({key: value})[flavor], MPI.ERR_INFO_VALUE, key, repr(value), choices)
    for flavor in (MPI.WIN_FLAVOR_ALLOCATE, MPI.WIN_FLAVOR_SHARED):
        for value in ("12", "0", "x", "4194304"):
            make = windows({"mpi_minimum_memory_alignment": value})[flavor]
            fails(make, MPI.ERR_INFO_VALUE, "a power of two from 1 to 2097152")
    fails(windows({"alloc_shared_noncontig": "no"})[MPI.WIN_FLAVOR_SHARED], MPI.ERR_INFO_VALUE, "true or false")
    for wrong in (None, {"no_locks": "true"}, "no_locks"):
        try:
            MPI.Win.Allocate(8, 1, wrong, world)
        except TypeError as error:
            assert "expecting an Info" in str(error)
        else:
            raise AssertionError(wrong)
    world.Barrier()


def no_locks():
    for _flavor, make in windows({"no_locks": "true"}).items():
        win = make()
        for call in (
            lambda: win.Lock(0),
            lambda: win.Lock(win.group_size - 1, MPI.LOCK_SHARED),
            win.Lock_all,
            lambda: win.Lock(0, assertion=MPI.MODE_NOCHECK),
        ):
            fails(call, MPI.ERR_RMA_SYNC, "no_locks=true")
        win.Fence()
        win.Fence()
        win.Set_info(info({"no_locks": "false"}))
        for target in range(win.group_size):
            win.Lock(target, MPI.LOCK_SHARED)
            win.Unlock(target)
        win.Lock_all()
        win.Set_info(info({"no_locks": "true"}))  # what is locked can be unlocked
        win.Unlock_all()
        fails(win.Lock_all, MPI.ERR_RMA_SYNC, "no_locks=true")
        win.Free()


def what_is_claimed_is_checked_on_all_ranks():
    for flavor in list(MORE)[: 3 if one_node else 2]:  # all ranks have to be in the window
        other = 800 if rank < 2 else 808
        fails(
            windows({"same_size": "true"}, other)[flavor],
            MPI.ERR_SIZE,
            "same_size is true, but rank 0 has 800 bytes and rank 2 has 808",
        )
        fails(
            windows({"same_disp_unit": "true"}, 800, 8 if rank < 1 else 4)[flavor],
            MPI.ERR_DISP,
            "same_disp_unit is true, but it is 8 on rank 0 and 4 on rank 1",
        )
        fails(
            windows({"same_size": "true" if rank == 1 else "false"})[flavor],
            MPI.ERR_INFO_VALUE,
            "same_size is false on rank 0 and true on rank 1; all ranks have to give the same",
        )
        windows({}, other, 1 + rank)[flavor]().Free()  # nothing is claimed
    if not one_node:
        return
    fails(
        windows({"alloc_shared_noncontig": str(rank != 2).lower()})[MPI.WIN_FLAVOR_SHARED],
        MPI.ERR_INFO_VALUE,
        "alloc_shared_noncontig is true on rank 0 and false on rank 2",
    )


def parts_are_contiguous_unless_the_hint_says_otherwise():
    def bases(win):
        found = [win.Shared_query(r)[0] for r in range(size)]
        for r, part in enumerate(found):
            win.Fence()
            if len(part) and rank == 0:
                np.frombuffer(part, "u1")[:] = r + 1
        win.Fence()
        for r, part in enumerate(found):
            assert set(bytes(part)) <= {r + 1}
        return [part.address for part in found]

    sizes = [100, 0, 1000]
    contiguous = windows({}, sizes[rank], 1)[MPI.WIN_FLAVOR_SHARED]()
    at = bases(contiguous)
    assert at[0] % 4096 == 0 and at[2] == at[0] + 100
    contiguous.Free()
    apart = windows({"alloc_shared_noncontig": "true"}, sizes[rank], 1)[MPI.WIN_FLAVOR_SHARED]()
    assert apart.info["alloc_shared_noncontig"] == "true" and apart.info["mpi_minimum_memory_alignment"] == "4096"
    at = bases(apart)
    assert at[0] % 4096 == at[2] % 4096 == 0
    apart.Free()

    for wish in (1, 64, 8192, 65536, 2 << 20):
        # ranks may ask for different alignments: all get the largest
        hints = {"mpi_minimum_memory_alignment": str(wish if rank == 1 else 1), "alloc_shared_noncontig": "true"}
        for flavor in (MPI.WIN_FLAVOR_ALLOCATE, MPI.WIN_FLAVOR_SHARED):
            win = windows(hints, 1000, 1)[flavor]()
            assert win.attrs[0] % max(wish, 4096) == 0
            assert all(at % max(wish, 4096) == 0 for at in bases(win))
            if rank == 1:
                assert win.info["mpi_minimum_memory_alignment"] == str(max(wish, 4096))
            win.Free()
        hints = {"mpi_minimum_memory_alignment": str(wish)}
        win = windows(hints, 1000, 1)[MPI.WIN_FLAVOR_SHARED]()
        at = bases(win)
        assert at[0] % wish == 0 and at[1] - at[0] == at[2] - at[1] == 1000
        win.Free()
