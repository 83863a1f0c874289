"""%%mpi --check where ranks end, say much, or are cut short: nothing that was found is lost, and no cell hangs."""

import os
import signal

import pytest
from kernels import pressing
from test_checked_cells import RACE, SETUP

pytestmark = [
    pytest.mark.one_node("mpiexec --check needs ranks on one host"),
    pytest.mark.shm("loads and stores are seen where ranks share memory"),
]

FINDING = 'class="gormapy-finding"'


def test_findings_of_ranks_that_die_and_their_successors_are_checked(kernel):
    kernel.run(SETUP).check()
    dies = kernel.run(RACE.replace("    mine[1] = 5", "    mine[1] = 5; import os; os.kill(os.getpid(), 9)"))
    assert dies.check("RankDied").html.count(FINDING) == 1
    assert "In [3], line 5" in dies.text
    kernel.run(SETUP.replace(" --check", "")).check()
    assert kernel.run(RACE).check().html.count(FINDING) == 1
    kernel.run("%%mpi\nwin.Lock_all()").check()
    stopped = kernel.run("%mpi stop").check()
    assert 'data-class="epoch-open"' in stopped.html and "2 ranks ended" in stopped.text
    files = "import os; [f for f in os.listdir('/proc/self/fd') if 'gormapy-found' in os.path.realpath(f'/proc/self/fd/{f}')]"
    assert kernel.run(files).check().text == "[]"
    kernel.run(SETUP.replace(" --check", "")).check()
    assert kernel.run(RACE).check().html.count(FINDING) == 0


def test_a_rank_that_exits_is_told_as_it_is_without_a_check(kernel):
    kernel.run(SETUP).check()
    died = kernel.run(RACE + "\nimport os; os._exit(0)").check("RankDied")
    assert died.html.count(FINDING) == 1 and "ended by itself with exit status 0" in died.value
    kernel.run(SETUP).check()
    assert "ended with exit status 1" in kernel.run("%%mpi\nimport os; os._exit(1)").check("RankDied").value


def test_ranks_that_are_not_checked_any_more(kernel):
    kernel.run(SETUP).check()
    assert "They are not checked." in kernel.run("%%mpi --fresh\nfrom gormapy import MPI").check().text
    refused = kernel.run("%%mpi --check --hosts no-such-host,nor-this\n1").check("StartError")
    assert "--check can't look at ranks on several hosts" in refused.value and "--hosts localhost" in refused.value
    assert kernel.run("%%mpi -n 2\nfrom gormapy import check\ncheck.is_on()").check().of(1) == ["False"]


def test_many_findings_and_long_lines(kernel):
    kernel.run(SETUP).check()
    lines = "\n".join(f"    win.Put(mine, 1); mine[0] = {i}" for i in range(20))
    many = kernel.run(f"%%mpi\nwin.Lock_all()\nif world.rank == 0:\n{lines}\nwin.Unlock_all()").check()
    assert many.html.count(FINDING) == 50 and "more findings are not shown" in many.text
    text = "'<script>' + '" + "y" * 3000 + "'"
    long = kernel.run(RACE.replace("mine[1] = 5", f"mine[1] = 5; {text}")).check()
    assert long.html.count(FINDING) == 1 and "<script>" not in long.html and "&lt;script&gt;" in long.html
    assert len(long.text) < 2000


def test_the_limit_is_that_of_a_cell_and_is_told(kernel):
    kernel.run(SETUP).check()
    busy = "%%mpi\nwin.Lock_all()\nif world.rank == 0:\n    win.Put(mine, 1)\n    for i in range({}): mine[0] = 1\nwin.Unlock_all()"
    for _ in range(2):
        assert "only the first" not in kernel.run(busy.format(30_000)).check().text
    assert kernel.run(RACE).check().html.count(FINDING) == 1
    told = "Of rank 0 only the first 50,000 loads and stores here were looked at."
    assert told in kernel.run(busy.format(51_000)).check().text
    assert told not in kernel.run(busy.format(51_000)).check().text
    exact = kernel.run(SETUP.replace("--check", "--check=exact")).check()
    assert "Starting 2 ranks that are checked exactly" in exact.text
    assert "only the first" not in kernel.run(busy.format(51_000)).check().text
    assert "Starting" not in kernel.run("%%mpi --check\n1").check().text  # they are
    kernel.run("%%mpi --check=all\n1").check("UsageError")


def test_places_in_cells_that_some_ranks_have_not_run(kernel):
    kernel.run(SETUP).check()
    kernel.run("%%mpi --ranks 0\nwin.Lock_all()\nwin.Put(mine, 1)").check()
    late = "%%mpi\nimport time\nif world.rank == 0: mine[1] = 5\nworld.Barrier()\nif world.rank == 0: time.sleep(0.5)"
    out = kernel.run(late).check()
    assert "In [3], line 3" in out.text and "In [4], line 3" in out.text


def test_an_interrupt_while_the_checker_is_busy(kernel):
    kernel.run(SETUP).check()
    launcher = int(kernel.run("%%mpi --ranks 0\nimport os\nos.getppid()").check().of(0)[0])
    os.kill(launcher, signal.SIGSTOP)
    try:
        asked = kernel.begin("%%mpi\nprint('here', flush=True)")

        def during(outcome, passed):
            if "here" in outcome.text:
                kernel.interrupt()
                return True

        out = kernel.finish(asked, during=during)
    finally:
        os.kill(launcher, signal.SIGCONT)
    assert out.check("CellInterrupted").seconds < 20 and "did not react" not in out.text
    assert kernel.run(RACE).check().html.count(FINDING) == 1


def test_an_interrupt_in_a_store_is_not_lost(kernel):
    kernel.run(SETUP).check()
    busy = """
        %%mpi
        import time
        win.Lock_all()
        if world.rank == 0:
            win.Put(mine, 1)
            print("here", flush=True)
            while True: mine[0] = 1
        time.sleep(60)
        """
    for _ in range(3):
        out = kernel.run(busy, during=pressing(kernel, "here")).check("CellInterrupted")
        assert out.html.count(FINDING) == 1 and "did not react" not in out.text
