"""mpiexec --unkind: programs that are right by the standard stay right; some that only work here do not."""

import labels
import pytest
from support.mpirun import ANY

DRIVER = labels.PROGRAMS.parent / "driver.py"

pytestmark = [
    pytest.mark.one_node("has shared windows over all ranks"),
    pytest.mark.shm("has shared windows over all ranks"),
]


def clean():
    """Return the clean programs of a module and number of ranks, as parameters."""
    groups = {}
    for label in labels.every():
        if label.verdict == "clean" and not label.flags & {"raises", "hangs", "leaves", "crashes"}:
            groups.setdefault((label.file, label.n), []).append(label.name)
    return [pytest.param(n, file, names, id=f"{file.stem}-{n}") for (file, n), names in groups.items()]


@pytest.mark.parametrize(("n", "file", "names"), clean())
@pytest.mark.parametrize("seed", [1, 2])
def test_clean_programs(mpirun, n, file, names, seed):
    mpirun(n, DRIVER, str(file), *names, launcher=[f"--unkind={seed}"], timeout=60)


WRONG = {
    "a buffer that is changed too early": """
        if rank == 0:
            mine[0] = 1
            win.Put(mine, 1)
            mine[0] = 2
            win.Flush(1)
        world.Barrier()
        assert rank == 0 or part[0] == 1
        """,
    "a result that is used too early": """
        if rank == 0:
            win.Get(mine, 1)
            assert mine[0] == 7
        """,
    "no flush before a barrier": """
        if rank == 0:
            win.Put(np.ones(1), 1)
        world.Barrier()
        assert rank == 0 or part[0] == 1
        """,
    "only a local flush before a barrier": """
        if rank == 0:
            win.Put(np.ones(1), 1)
            win.Flush_local(1)
        world.Barrier()
        assert rank == 0 or part[0] == 1
        """,
    "a request that says nothing of the target": """
        if rank == 0:
            win.Get(mine, 1)
            win.Rput(np.ones(1), 1, 1).Wait()
            assert mine[0] == 7
        """,
    "a flag that is not behind its data": """
        if rank == 0:
            win.Put(np.ones(1), 1)
            win.Accumulate(np.ones(1), 1, 1, op=MPI.REPLACE)
            win.Flush(1)
        while rank == 1 and mine[0] != 1:
            win.Fetch_and_op(np.zeros(1), mine, 1, 1, MPI.NO_OP)
            win.Flush(1)
        win.Sync()
        assert rank == 0 or part[0] == 1
        """,
    "a send that is awaited by nobody": """
        other = 1 - rank
        world.Send(np.ones(1), other)
        world.Recv(mine, other)
        """,
}


@pytest.mark.parametrize("wrong", WRONG)
def test_programs_that_only_work_here(mpirun, wrong):
    lines = WRONG[wrong].strip("\n").splitlines()
    body = "\n".join(line[8:] for line in lines)
    program = f"""
import numpy as np
from gormapy import MPI

world = MPI.COMM_WORLD
rank = world.rank
win = MPI.Win.Allocate(64, 8, comm=world)
part, mine = np.frombuffer(win, "f8"), np.zeros(1)
part[:] = 7
world.Barrier()
win.Lock_all()
{body}
win.Unlock_all()
win.Free()
"""
    mpirun(2, program)
    for seed in range(5, 25):  # on a busy machine the other rank may look too late once
        result = mpirun(2, program, launcher=[f"--unkind={seed}"], timeout=5, expect=ANY)
        if result.status:
            break
    assert result.status in (1, 124)
    assert f"mpiexec: operations came late, in the order of --unkind={seed}" in result.stderr


def test_the_order_follows_from_the_seed(mpirun):
    program = """
    import numpy as np
    from gormapy import MPI
    win = MPI.Win.Allocate(8, 8)
    win.Lock(0)
    for i in range(10):
        win.Put(np.full(1, float(i)), 0)
    win.Unlock(0)
    print(np.frombuffer(win, "f8")[0])
    """
    last = [mpirun(1, program, launcher=[f"--unkind={seed}"]).stdout for seed in (1, 1, 2, 2, 3, 4, 5)]
    assert last[0] == last[1] and last[2] == last[3]
    assert len(set(last)) > 1


COPIES = """
import numpy as np
from gormapy import MPI

world = MPI.COMM_WORLD
rank, other = world.rank, 1 - world.rank
{}
mem = np.frombuffer(win, "f8")
assert mem.ctypes.data == win.attrs[0] == win.Get_attr(MPI.WIN_BASE) == win.tomemory().address and len(mem) == 8
assert win.model == win.Get_attr(MPI.WIN_MODEL) == MPI.WIN_SEPARATE
got = np.zeros(1)
mem[0] = 7.0
world.Barrier()
win.Lock_all()
win.Get(got, other)
win.Flush(other)
assert got[0] == 0  # no call has published the store
world.Barrier()
win.Sync()
world.Barrier()
win.Get(got, other)
win.Put(np.full(1, 8.0), other, 1)
win.Flush(other)
assert got[0] == 7
world.Barrier()
assert mem[1] == 0 and MPI.Win(win).tomemory().address == win.attrs[0]
win.Sync()
assert mem[1] == 8
world.Barrier()
mem[2] = 9.0
win.Unlock_all()
world.Barrier()
win.Lock(other)
win.Get(got, other, 2)
win.Put(np.full(1, 10.0), other, 3)
win.Unlock(other)
world.Barrier()
assert got[0] == 9
win.Fence()
assert mem[3] == 10
win.Put(np.full(1, 11.0), other, 4)
mem[5] = 12.0
win.Fence()
win.Get(got, other, 5)
assert mem[4] == 11
win.Fence()
assert got[0] == 12
group = world.group.Incl([other])
mem[6] = 13.0
win.Post(group)
win.Start(group)
win.Get(got, other, 6)
win.Put(np.full(1, 14.0), other, 7)
win.Complete()
win.Wait()
assert got[0] == 13 and mem[7] == 14
win.Free()
"""
CREATIONS = {
    "Allocate": "win = MPI.Win.Allocate(64, 8, comm=world)",
    "Create": "win = MPI.Win.Create(np.zeros(8), 8, comm=world)",
    "Create in the arena": "import gormapy\nwin = MPI.Win.Create(gormapy.shared_zeros(8), 8, comm=world)",
}


@pytest.mark.parametrize("creation", CREATIONS)
def test_two_copies(mpirun, creation):
    program = COPIES.format(CREATIONS[creation])
    mpirun(2, program, launcher=["--unkind=3,separate"])
    result = mpirun(2, program, expect=ANY)
    assert result.status == 1


def test_windows_with_one_copy(mpirun):
    mpirun(
        2,
        """
        import numpy as np
        from gormapy import MPI
        world = MPI.COMM_WORLD
        mine = np.zeros(8)
        shared, dynamic = MPI.Win.Allocate_shared(64, 8, comm=world), MPI.Win.Create_dynamic(comm=world)
        empty = MPI.Win.Create(None, comm=world)
        created = MPI.Win.Create(mine if world.rank else None, 8, comm=world)
        assert {win.model for win in (shared, dynamic, empty)} == {MPI.WIN_UNIFIED}
        created.Lock_all()
        created.Put(np.ones(8), 1)
        created.Unlock_all()
        world.Barrier()
        assert not mine.any()
        for win in (shared, dynamic, empty, created):
            win.Free()
        assert mine.all() == (world.rank == 1)
        """,
        launcher=["--unkind=separate"],
    )


SEPARATE = ("completion", "epochs", "flush_missing", "requests", "same_origin", "target_conflict", "accumulate_mix")


@pytest.mark.parametrize(("n", "file", "names"), [p for p in clean() if p.values[1].stem in SEPARATE])
def test_clean_programs_with_two_copies(mpirun, n, file, names):
    mpirun(n, DRIVER, str(file), *names, launcher=["--unkind=separate"], timeout=60)


@pytest.mark.parametrize("value", ["1,unified", "separate,1", "1,", ",", "seperate", "-1"])
def test_what_unkind_does_not_know(mpirun, value):
    result = mpirun(1, "pass", launcher=[f"--unkind={value}"], expect=2)
    assert f"--unkind={value}: expecting a number, which is a seed, separate, or both" in result.stderr


@pytest.mark.parametrize(("n", "file", "names"), [p for p in clean() if p.values[1].stem in SEPARATE])
def test_clean_programs_that_are_checked(mpirun, n, file, names):
    result = mpirun(n, DRIVER, str(file), *names, launcher=["--check", "--unkind=4"], timeout=60)
    assert "mpiexec --check: nothing was found in this run" in result.stderr


def test_races_that_are_checked(mpirun):
    program = """
        import numpy as np
        from gormapy import MPI
        world = MPI.COMM_WORLD
        win = MPI.Win.Allocate(64, 8, comm=world)
        part, mine = np.frombuffer(win, "f8"), np.ones(1)
        win.Lock_all()
        if world.rank == 0:
            win.Put(mine, 1)
            mine[0] = 2
            win.Flush(1)
        world.Barrier()
        print(world.rank, part[0])
        win.Unlock_all()
        win.Free()
    """
    result = mpirun(2, program, launcher=["--unkind", "--check"], expect=1)
    assert "found origin-reuse" in result.stderr and "mpiexec --check: 1 finding" in result.stderr
    assert "1 2.0" in result.lines  # the Put has been late


@pytest.mark.parametrize("options", [["--check", "--unkind=separate"], ["--unkind=3,separate", "--check"]])
def test_two_copies_are_not_checked(mpirun, options):
    result = mpirun(1, "pass", launcher=options, expect=2)
    assert "--check and --unkind=separate are for one run each" in result.stderr
