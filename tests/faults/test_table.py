"""Every fault, in every state: the job ends at once, with the right status and one message, and leaves nothing.

A fault is of one rank, of all ranks at the same moment, or of the launcher. Meanwhile the other ranks (or all of
them) are in a call, or compute. `make faults` goes through the whole table and prints how long each job took
to end; the tests go through a part of it in which every fault and every state is met several times.
"""

import os
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from support.programs import beside

program = beside(__file__)

pytestmark = pytest.mark.exhaustive

RANKS = 3
VICTIM = 1
WHOLE = os.environ.get("FAULTS") == "whole"

# The promise is a second on a machine that has nothing else to do; the one that runs tests may be busy.
PROMISE, GENEROUS = 1.0, 20.0


@dataclass(frozen=True)
class Fault:
    """The status of the job, and what the launcher's line says."""

    status: int
    text: str
    traceback: str = ""  # the exception that is shown
    signal: int | None = None  # else the rank does it itself


FAULTS = {
    "kill -9": Fault(137, r"was killed by signal 9 \(SIGKILL\)", signal=signal.SIGKILL),
    "os._exit(3)": Fault(3, "ended with exit status 3"),
    "sys.exit(3)": Fault(3, "ended with exit status 3"),
    "raise": Fault(1, "ended with exit status 1", "ValueError: lost"),
    "Abort(5)": Fault(5, r"called Abort\(5\)"),
    "segfault": Fault(139, r"was killed by signal 11 \(SIGSEGV\)"),
    "SIGINT": Fault(130, r"was killed by signal 2 \(SIGINT\)", "KeyboardInterrupt", signal.SIGINT),
}

LAUNCHER = {"SIGINT": 130, "SIGTERM": 143, "SIGKILL": -9}

# A Python handler runs between two steps of Python: in this state there are none.
DEAF = ("in C",)


def messages(result):
    """Return what the launcher said."""
    return [line for line in result.stderr.splitlines() if line.startswith("mpiexec:")]


class Table:
    """What became of the jobs, for people."""

    def __init__(self):
        self.rows = []

    def add(self, who, fault, state, result, ended):
        said = messages(result)
        text = re.sub(r"\(pid \d+\)", "(pid ...)", said[0] if said else "").removeprefix("mpiexec: ")
        self.rows.append((who, fault, state, result.status, round(1000 * ended), text))

    def write(self, path):
        """Write the table, and the slowest ends."""
        with open(path, "w") as file:
            form = "{:<10} {:<12} {:<20} {:>6} {:>5}  {}"
            print(form.format("fault of", "fault", "others are in", "status", "ms", "message"), file=file)
            for row in self.rows:
                print(form.format(*row), file=file)
            times = sorted(row[4] for row in self.rows)
            late = sum(t > 1000 * PROMISE for t in times)
            print(
                f"\n{len(times)} jobs; until nothing was left: median {times[len(times) // 2]} ms, "
                f"90 % {times[len(times) * 9 // 10]} ms, most {times[-1]} ms; {late} took more than {PROMISE:g} s",
                file=file,
            )


@pytest.fixture(scope="module")
def table():
    """Collect the results; write them to the file that FAULT_TABLE names."""
    found = Table()
    yield found
    path = os.environ.get("FAULT_TABLE")
    if path and found.rows:
        found.write(path)


def states(index, excluded=()):
    """Return the states to try a fault in: all of them, or each third, beginning elsewhere for each fault."""
    return [s for i, s in enumerate(program.keys_of("STATES")) if s not in excluded and (WHOLE or i % 3 == index % 3)]


def start(mpirun, state, fault=None, alone=True):
    """Start a job and wait until its ranks are in the state; return it and the pids of its ranks."""
    job = mpirun.start(RANKS, program.be, state, fault, alone)
    pids = job.pids(RANKS)
    time.sleep(0.2)
    return job, pids


def at_once(try_one, chosen):
    """Try several states, two at a time: jobs that wait leave the cores to others."""
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(try_one, state) for state in chosen]:
            done.result()


def fault_of_rank(mpirun, table, who, name, state):
    """Let one rank or all ranks fail and look at the end of the job."""
    fault = FAULTS[name]
    everyone = who == "all ranks"
    job, pids = start(mpirun, state, None if fault.signal else name, alone=not everyone)
    sent = time.monotonic()
    for pid in pids.values() if everyone else [pids[VICTIM]]:
        # one that the launcher has stopped meanwhile is not there any more
        try:
            os.kill(pid, fault.signal or signal.SIGUSR1)
        except ProcessLookupError:
            assert everyone
    result = job.finish(expect=fault.status)
    ended = result.gone - sent
    table.add(who, name, state, result, ended)
    assert ended < GENEROUS, str(result)
    rank = r"rank (\d) \(pid \d+\)" if everyone else rf"rank {VICTIM} \(pid {pids[VICTIM]}\)"
    said = messages(result)
    assert len(said) == 1, str(result)
    assert re.match(rf"mpiexec: {rank} {fault.text}", said[0]), str(result)
    shown = result.stderr.count("Traceback (most recent call last)")
    # ranks that fail at once in different places all have something to show
    most = RANKS if everyone else 1
    assert 1 <= shown <= most if fault.traceback else shown == 0, str(result)
    assert fault.traceback in result.stderr, str(result)


@pytest.mark.parametrize("name", FAULTS)
def test_fault_of_one_rank(mpirun, table, name):
    chosen = states(list(FAULTS).index(name))
    at_once(lambda state: fault_of_rank(mpirun, table, "one rank", name, state), chosen)


@pytest.mark.parametrize("name", FAULTS)
def test_fault_of_all_ranks(mpirun, table, name):
    chosen = states(list(FAULTS).index(name) + 1, excluded=() if name == "kill -9" else DEAF)
    at_once(lambda state: fault_of_rank(mpirun, table, "all ranks", name, state), chosen)


@pytest.mark.parametrize("name", LAUNCHER)
def test_signal_to_the_launcher(mpirun, table, name):
    def try_one(state):
        job, _ = start(mpirun, state)
        sent = time.monotonic()
        job.signal(getattr(signal, name))
        result = job.finish(expect=LAUNCHER[name])
        ended = result.gone - sent
        table.add("launcher", name, state, result, ended)
        assert ended < GENEROUS, str(result)
        # whoever sent it knows of it: at most there is a line on what did not end by itself
        assert len(messages(result)) <= 1, str(result)
        shown = result.stderr.count("Traceback (most recent call last)")
        assert shown <= (RANKS if name == "SIGINT" else 0), result  # a KeyboardInterrupt in each place

    at_once(try_one, states(list(LAUNCHER).index(name) + 2))
