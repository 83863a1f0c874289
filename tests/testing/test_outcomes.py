"""What is said of tests on ranks that pass, and of those that fail."""

import re

import pytest

SETS = 11  # tests of suites/passes.py


def test_passing_tests(suite, n):
    done = suite.take("passes")("--mpi", "-n", n, "-v", "--durations=2").check(passed=SETS)
    assert "test_passes.py::test_parametrized[gr\\xf6\\xdfer] PASSED" in done.out
    assert f"mpi: {SETS - 2} tests on ranks, by 1 jobs" in done.out
    assert "slowest 2 durations" in done.out


def test_failing_tests(suite):
    done = suite.take("fails")("--mpi", "-n", 2, "--mpi-deadlock", 1.0, "-rA")
    assert done.status == 1, str(done)

    one = done.text("test_one_rank_fails")
    assert "rank 1:" in one and "this rank alone" in one and one.count("def test_one_rank_fails") == 1
    assert "Captured stdout call, rank 0" in done.out and "printed on 0" in done.out
    waited = done.text("test_others_wait_for_it")
    assert "wrong on rank 1" in waited
    assert re.search(r"rank 0 still waited in recv for rank 1 \(test_fails\.py:\d+: comm\.recv", waited), waited
    assert "FAILED test_fails.py::test_others_wait_for_it - ValueError: wrong on rank 1" in done.out
    assert "KeyboardInterrupt" not in waited and "Interrupted" not in waited

    same = done.text("test_all_fail_in_one_place")
    assert "ranks 0, 1:" in same and same.count('raise KeyError("the same")') == 1
    values = done.text("test_all_fail_with_other_values")
    assert "rank 0:" in values and "rank 1, in the same place: assert 1 == 17" in values
    assert values.count(">       assert") == 1
    places = done.text("test_different_places")
    assert (
        "rank 0:" in places and "ValueError: first" in places and "rank 1:" in places and "TypeError: second" in places
    )

    assert done.kind("test_setup_fails") == "error" and "no such thing" in done.text("test_setup_fails")
    assert "rank 0 still waited in Barrier for rank 1" in done.text("test_setup_fails")
    assert done.kind("test_teardown_fails") == "error" and "in teardown" in done.text("test_teardown_fails")

    deadlock = done.text("test_deadlock")
    assert "Deadlock: ranks 0, 1 wait for each other" in deadlock
    assert re.search(r"^0 +recv, \d\.\d s +rank 1 +communicator of 2, tag 3 +test_fails\.py:\d+: comm", deadlock, re.M)
    assert "before the deadlock" in done.out
    assert "rank 2 waits in Barrier for ranks 0, 1, which have come to the end of the test" in done.text(
        "test_deadlock_of_one_rank"
    )

    assert "rank 1 was killed by signal 9" in done.text("test_dies") and "last words of 1" in done.out
    assert "rank 1 was killed by signal 11" in done.text("test_faults")
    assert "string_at" in done.out, "the stack of the fault"
    assert "rank 1 ended with status 3" in done.text("test_leaves") or "exit status 3" in done.text("test_leaves")

    assert done.kind("test_skipped_on_all") == "skipped" and "nothing to do" in done.text("test_skipped_on_all")
    assert done.kind("test_import_or_skip") == "skipped"
    assert "XFAIL test_fails.py::test_expected_to_fail" in done.out
    assert "[XPASS(strict)] wrongly" in done.text("test_passes_although")

    assert "rank 1 has not received a message of rank 0, tag 5" in done.out
    assert done.out.count("UserWarning: on all ranks") == 1
    assert "characters are not shown" in done.out and "ä☃" in done.out and "wenig" in done.out
    assert "MPI was finalized in this test" in done.out
    assert "can't ask on a rank" in done.text("test_breakpoint")
    assert "SystemExit: 2" in done.text("test_exits_by_system_exit")
    assert "KeyboardInterrupt" in done.text("test_own_interrupt")
    passed = (
        *("usable", "usable_again", "usable_after_the_deadlock", "usable_after_a_death", "usable_after_finalize"),
        *("skipped_on_one", "message_is_not_there", "warns", "message_is_left", "finalizes", "last"),
    )
    assert [done.kind(f"test_{name}") for name in passed] == ["passed"] * len(passed), str(done)


MORE = [pytest.param(how, marks=pytest.mark.exhaustive) for how in ("setting", "function only")]


@pytest.mark.parametrize("how", ["option", "mark", *MORE])
def test_time_out(suite, how):
    body = "    while comm.rank == 1: pass\n    comm.recv(source=1)\n"
    mark = {"mark": "@pytest.mark.timeout(4)\n", "function only": "@pytest.mark.timeout(4, func_only=True)\n"}.get(
        how, ""
    )
    suite.write(
        "test_long.py", f"import pytest\n{mark}def test_long(comm):\n{body}\ndef test_next(comm):\n    comm.Barrier()\n"
    )
    if how == "setting":
        suite.write("pytest.ini", "[pytest]\nmpi_timeout = 4\n")
    done = suite("--mpi", "-n", 2, *(["--mpi-timeout", 4] if how == "option" else []))
    done.check(1, failed=1, passed=1)
    text = done.text("test_long")
    assert re.search(r"time-out: ranks 0, 1 did not end within \d", text), str(done)
    assert re.search(r"^0 +recv, .* rank 1 ", text, re.M) and re.search(r"^1 +runs", text, re.M), str(done)
    assert "in test_long\n    while comm.rank == 1: pass" in text and "in test_long\n    comm.recv(source=1)" in text
    assert "_pytest" not in text.partition("rank 1:")[2], "the stacks begin in the test"


@pytest.mark.exhaustive
def test_rank_that_does_not_react(suite):
    suite.write(
        "test_c.py",
        "import ctypes, signal\n"
        "def test_holds_the_lock(comm):\n"
        "    if comm.rank == 1:\n"
        "        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\n"
        "        ctypes.PyDLL(None).sleep(600)\n"
        "    comm.Barrier()\n"
        "def test_next(comm):\n"
        "    comm.Barrier()\n",
    )
    done = suite("--mpi", "-n", 2, "--mpi-timeout", 2).check(1, failed=1, passed=1)
    text = done.text("test_holds_the_lock")
    assert "did not react: all ranks were ended" in text and "test_c.py" in done.out, str(done)


def test_subtests(suite):
    pytest.importorskip("_pytest.subtests")
    suite.write(
        "test_parts.py",
        "def test_parts(comm, subtests):\n"
        "    for part in range(3):\n"
        "        with subtests.test(part=part):\n"
        "            assert comm.rank != 1 or part != 1, 'the part fails'\n",
    )
    done = suite("--mpi", "-n", 2)
    text = done.text("test_parts")
    assert done.status == 1 and "rank 1:" in text and "AssertionError: the part fails" in text, str(done)
    assert "rank 0:" not in text and "1 failed in" in done.out and "SUBFAILED" not in done.out
