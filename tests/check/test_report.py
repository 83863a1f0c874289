"""What mpiexec --check prints and writes, however the job ends."""

import json
import re
from pathlib import Path

import pytest
from support.mpirun import ANY

from gormapy._resident.checked import Checked

pytestmark = [
    pytest.mark.one_node("mpiexec --check needs ranks on one host"),
    pytest.mark.shm("loads and stores are seen where ranks share memory"),
]

RACE = """
import numpy as np
from gormapy import MPI

world = MPI.COMM_WORLD
rank = world.rank
win = MPI.Win.Allocate(32, 8, comm=world)
mine = np.ones(4)
win.Lock_all()
if rank == 0:
    win.Put(mine, 1)
    mine[1] = 5.0
"""
END = """
win.Unlock_all()
win.Free()
"""


def test_report(mpirun):
    result = mpirun(2, RACE + END, launcher=["--check"], expect=1)
    said = result.stderr
    assert "mpiexec --check found origin-reuse: The buffer is changed" in said
    assert "rank 0 Put of mine, " in said
    assert "        win.Put(mine, 1)" in said
    assert "rank 0 store of mine, " in said
    assert "        mine[1] = 5.0" in said
    assert "window win (Win.Allocate), bytes 8 to 16 of the buffer of rank 0, in the epoch of Lock_all, line " in said
    assert "Flush_local" in said
    assert "(MPI 4.1, section 12.3)" in said
    assert said.rstrip().endswith("mpiexec --check: 1 finding")


def test_nothing_is_found(mpirun):
    result = mpirun(2, RACE.replace("    mine[1]", "    win.Flush(1)\n    mine[1]") + END, launcher=["--check"])
    assert result.stderr.strip() == "mpiexec --check: nothing was found in this run"


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (
            "world.Barrier()\nimport os, signal\nif rank == 1: os.kill(os.getpid(), signal.SIGKILL)\nworld.Barrier()",
            137,
        ),
        ("world.Barrier()\nif rank == 1: MPI.COMM_WORLD.Abort(7)\nworld.Barrier()", 7),
        ("if rank == 0: 1 / 0\nworld.Barrier()", 1),
    ],
    ids=["killed", "aborted", "raised"],
)
def test_findings_outlive_the_program(mpirun, tmp_path, end, status):
    out = tmp_path / "found.json"
    mpirun(2, RACE + end, launcher=[f"--check=json:{out}"], expect=status)
    first, found, last = (json.loads(line) for line in out.read_text().splitlines())
    assert first == {"gormapy_check": 1, "ranks": 2}
    assert last == {"end": True, "findings": 1, "status": status}
    assert found["class"] == "origin-reuse"
    assert found["kind"] == "race"
    assert [access["call"] for access in found["accesses"]] == ["Put", "store"]
    assert [access["variable"] for access in found["accesses"]] == ["mine", "mine"]
    assert found["bytes"] == {"rank": 0, "start": 8, "stop": 16}
    assert found["epoch"]["kind"] == "Lock_all"
    assert found["count"] == 1


def test_the_file_says_where_the_look_ended(mpirun, tmp_path):
    out = tmp_path / "found.json"
    out.touch()
    mpirun(2, RACE + "    for i in range(51_000): mine[2] = 1.0\n" + END, launcher=[f"--check=json:{out}"], expect=1)
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert {"limited": [0]} in records and "end" in records[-1]


OTHER_MEMORY = """
import mmap
import numpy as np
from gormapy import MPI

world = MPI.COMM_WORLD
mapped, some, array = mmap.mmap(-1, 4096), bytearray(b"12345678"), np.zeros(8)
win, good = MPI.Win.Create(mapped, 8, comm=world), MPI.Win.Create(array, 8, comm=world)
for one in win, good:
    one.Fence()
    one.Put(b"12345678", 1 - world.rank, 0)
    for place in 2, 3:
        one.Put(np.ones(1), world.rank, place)
    one.Get(some, 1 - world.rank, 1)
    one.Fence()
    one.Free()
"""


def test_the_report_says_whose_loads_and_stores_are_not_seen(mpirun, tmp_path):
    out = tmp_path / "found.json"
    said = mpirun(2, OTHER_MEMORY, launcher=["--check"]).stderr
    lines = [line for line in said.splitlines() if "neither NumPy nor MPI" in line]
    assert len(lines) == 1 and "(Create)" in lines[0] and "(Get)" in lines[0] and lines[0].count("(") == 2, said
    mpirun(2, OTHER_MEMORY, launcher=[f"--check=json:{out}"])
    records = [json.loads(line) for line in out.read_text().splitlines()]
    (unseen,) = [record["unseen"] for record in records if "unseen" in record]
    assert len(unseen) == 2


POLLED = """
import numpy as np
from gormapy import MPI

world = MPI.COMM_WORLD
win = MPI.Win.Allocate(16, 8, comm=world)
part, one, two = np.frombuffer(win, "i8"), np.ones(1, "i8"), np.full(1, 2)
win.Lock_all()
part[:] = 0
win.Sync()
world.Barrier()
if world.rank == 0:
    win.Put(two, 1, 1)
    win.Flush(1)
    win.Put(one, 1, 0)
    win.Flush(1)
elif world.rank == 1:
    while part[0] == 0:
        world.Iprobe()
    win.Sync()
    assert part[1] == 2
    assert part[0] == 1
win.Unlock_all()
win.Free()
"""


def test_a_loop_that_waits_for_a_value_is_contested_and_gives_order(mpirun, tmp_path):
    out = tmp_path / "found.json"
    mpirun(2, POLLED, launcher=[f"--check=json:{out}"])
    found = [record for record in map(json.loads, out.read_text().splitlines()) if "class" in record]
    assert found and all(record["class"] == "local-access" and record["contested"] for record in found)
    assert all("while part[0] == 0:" in [access["text"] for access in record["accesses"]] for record in found)


def test_what_was_not_complete_before_the_value_is_found(mpirun, tmp_path):
    out = tmp_path / "found.json"
    unflushed = POLLED.replace("    win.Flush(1)\n", "", 1)
    mpirun(2, unflushed, launcher=[f"--check=json:{out}"], expect=1)
    found = [record for record in map(json.loads, out.read_text().splitlines()) if "class" in record]
    (certain,) = (record for record in found if not record.get("contested"))
    assert certain["class"] == "flush-missing"
    assert [access["text"] for access in certain["accesses"]] == ["win.Put(two, 1, 1)", "assert part[1] == 2"]


def test_a_reset_ends_what_was_before(mpirun):
    program = f"""
{RACE}
import gormapy

if rank == 0:
    world.Ibarrier()
gormapy.reset()
mine[:] = rank
world.Barrier()
world.allreduce(1)
win.Lock_all()
win.Put(mine, rank)
win.Unlock_all()
win.Free()
"""
    said = mpirun(4, program, launcher=["--check"], expect=1).stderr
    assert said.count("--check found") == 1 and "origin-reuse" in said and said.endswith("mpiexec --check: 1 finding\n")


def test_a_job_that_hangs_is_ended(mpirun):
    program = """
    from gormapy import MPI
    world = MPI.COMM_WORLD
    if world.rank == 0:
        world.Barrier()
    else:
        world.recv(source=0)
    """
    result = mpirun(2, program, launcher=["--check"], timeout=40, expect=1)
    assert "mpiexec --check: all ranks wait, and none can go on:" in result.stderr
    assert (
        "found collective-mismatch: rank 0 waits in Barrier for ranks [1], which have never called it" in result.stderr
    )


def test_a_rank_that_computes_is_waited_for(mpirun):
    program = """
    import threading, time
    from gormapy import MPI
    world = MPI.COMM_WORLD
    if world.rank == 0:
        time.sleep(5)
    world.Barrier()
    if world.rank == 0:  # another thread sends what all wait for
        threading.Timer(5, lambda: world.send(1, 0)).start()
        world.recv(source=0)
    world.Barrier()
    """
    result = mpirun(2, program, launcher=["--check"], timeout=40)
    assert result.stderr.strip() == "mpiexec --check: nothing was found in this run"


def test_findings_of_the_program_itself(mpirun):
    program = """
    import gormapy.check
    assert gormapy.check.is_on()
    world.Barrier()
    found = gormapy.check.findings()
    assert [record["class"] for record in found] == ["origin-reuse"], found
    """
    indented = "\n".join(line[4:] for line in program.splitlines())
    mpirun(2, RACE + indented + END, launcher=["--check"], expect=1)


def test_parts_of_a_program(mpirun):
    program = """
    import pytest
    from gormapy import check
    assert check.assert_none() == 0
    win.Flush_all()
    with check.collect() as found:
        with check.paused():
            if rank == 0:
                win.Put(mine, 1)
                mine[1] = 6.0
        win.Flush_all()
        world.Barrier()
    assert not found
    with check.collect() as found:
        if rank == 0:
            win.Put(mine, 1)
            mine[1] = 7.0
    if rank == 0:
        assert [record["class"] for record in found] == ["origin-reuse"], found
        with pytest.raises(AssertionError, match="store of mine"):
            check.assert_none()
        assert check.assert_none(1) == 1
    """
    indented = "\n".join(line[4:] for line in program.splitlines())
    mpirun(2, RACE.replace("    mine[1] = 5.0", "    pass") + indented + END, launcher=["--check"], expect=1)


def test_findings_of_a_job_that_is_not_checked(mpirun):
    mpirun(
        1,
        """
        import pytest
        import gormapy.check
        assert not gormapy.check.is_on()
        with pytest.raises(RuntimeError, match="start it by mpiexec --check"):
            gormapy.check.findings()
        """,
    )


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("--check=nothing", "write --check, --check=exact, --check=json:FILE"),
        ("--check=json:", "write --check, --check=exact, --check=json:FILE"),
        ("--check=json:/no/such/folder/file", "no such file or directory"),
        (["--check", "-hosts", "no-such-host,nor-this"], "--check can't look at ranks on several hosts"),
    ],
)
def test_wrong_options(mpirun, option, says):
    result = mpirun(1, "pass", launcher=[option] if isinstance(option, str) else option, expect=ANY)
    assert result.status == 2
    assert says in result.stderr


def test_report_in_the_documentation(mpirun, tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "checking.md").read_text(encoding="utf-8")
    shown, program = (re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL)[1] for kind in ("text", "python"))
    file = tmp_path / "race.py"
    file.write_text(program)
    said = mpirun(2, file, launcher=["--check"], expect=1).stderr
    assert said.replace(str(file), "race.py").strip() == shown.split("\n", 1)[1].strip()


def test_attached_memory_over_a_network(mpirun):
    program = """
        import numpy as np
        from gormapy import MPI
        world = MPI.COMM_WORLD
        mine, there = np.zeros(1_000_000), np.zeros(1, "l")
        win = MPI.Win.Create_dynamic(comm=world)
        win.Attach(mine)
        world.Sendrecv(np.full(1, MPI.Get_address(mine)), 1 - world.rank, recvbuf=there)
        win.Lock_all()
        win.Put(np.ones(len(mine)), 1 - world.rank, int(there[0]))
        win.Unlock_all()
        world.Barrier()
        assert mine.all()
        win.Detach(mine)
        win.Free()
    """
    mpirun(2, program, launcher=["--check"], env={"GORMAPY_FABRIC": "tcp"})


def test_remarks_of_a_session_come_once():
    found = Checked(False)
    lines = [{"limited": [1]}, {"unseen": ["cell:1 (Create)"]}, {"blind": True}, {"failure": "why"}]
    with open(found.option.partition("json:")[2], "w") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    assert len(found.news()[1]) == 4
    assert found.news() == ([], [])
    found.close()
