"""Fixtures for tests that start jobs."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from zlib import crc32

import pytest

TESTS = Path(__file__).parent
# support is imported by every test folder, which are no packages.
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))

from support.alone import turn  # noqa: E402
from support.mpirun import Runner, choose_fabric, divide, environment  # noqa: E402
from support.resident import Pool, Ranks  # noqa: E402

# A shell starts what it runs in the background with SIGINT ignored, nohup with SIGHUP, and every process below would
# inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

SIZES = (1, 2, 4, 7)
POOL = pytest.StashKey()
TOLD = pytest.StashKey()  # what the pools of workers have told


def pytest_addoption(parser):
    """Add the choice of the transport that all jobs use."""
    parser.addoption(
        "--nodes",
        default="",
        help="divide all jobs into nodes that share no memory, as gocore/launch/nodes.go says: 2, 0,1",
    )
    parser.addoption("--fabric", default="", help="transport of all jobs: shm, tcp, verbs, ofi or ofi:PROVIDER")
    parser.addoption("--ranks", type=int, help="of tests that run on several numbers of ranks, take this number only")
    parser.addoption(
        "--part", metavar="K/N", type=part_of, help="take part K, from 0, of N; a test's id decides its part"
    )


def pytest_configure(config):
    """Take the choices over."""
    for text in (
        "slow: takes seconds, or is one of many that take long together; not in 'make quick'",
        "exhaustive: takes so long that 'make test' leaves it to 'make check'",
        "alone: measures time or processor time; no other test runs meanwhile, with 'pytest -n' either",
        "on_ranks(n): runs on so many ranks; for those that have no parameter n",
        "shm(reason): is about shared memory; not over a network, see --fabric",
        "one_node(reason): is about ranks that share memory, whatever the transport is; not with --nodes",
        "verbs: is over ibverbs; tests with a parameter backend get it",
    ):
        config.addinivalue_line("markers", text)
    if config.getoption("--nodes"):
        divide(config.getoption("--nodes"))
    if config.getoption("--fabric"):
        choose_fabric(config.getoption("--fabric"))


def pytest_itemcollected(item):
    """Mark what is over ibverbs, for tests/rdma/steps.py."""
    if hasattr(item, "callspec") and item.callspec.params.get("backend") == "verbs":
        item.add_marker("verbs")


def why_not(fabric):
    """Say why jobs can't use a transport on this machine, or nothing."""
    command = [sys.executable, "-m", "gormapy", "info", "--json"]
    done = subprocess.run(
        command, env=environment({"GORMAPY_FABRIC": "shm"}), capture_output=True, text=True, timeout=60
    )
    rows = {row["name"]: row for row in json.loads(done.stdout)["transports"]}
    row = rows[fabric.partition(":")[0]]
    return "" if row["usable"] else row["text"]


def ranks_of(item):
    """Return the number of ranks that a parameter of a test says, or None."""
    mark = item.get_closest_marker("on_ranks")
    if mark:
        return mark.args[0]
    return getattr(item, "callspec", None) and item.callspec.params.get("n")


def part_of(text):
    """Return the numbers K and N of the text "K/N"."""
    k, n = map(int, text.split("/"))
    if not 0 <= k < n:
        raise ValueError(text)
    return k, n


def keep(config, items, wanted):
    """Leave out the tests that are not wanted."""
    others = [item for item in items if not wanted(item)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if wanted(item)]


def pytest_collection_modifyitems(config, items):
    """Leave out what was not asked for; skip, over a network, what is about shared memory."""
    wanted = config.getoption("--ranks")
    if wanted:
        keep(config, items, lambda item: ranks_of(item) in (None, wanted))
    part = config.getoption("--part")
    if part:
        keep(config, items, lambda item: crc32(item.nodeid.encode()) % part[1] == part[0])
    fabric = config.getoption("--fabric")
    if config.getoption("--nodes"):
        fabric = fabric or "tcp"
        for item in items:
            mark = item.get_closest_marker("one_node")
            if mark:
                item.add_marker(pytest.mark.skip(reason=f"not on several nodes: {mark.args[0]}"))
    if fabric in ("", "shm"):
        return
    missing = why_not(fabric)
    for item in items:
        if missing:
            item.add_marker(pytest.mark.skip(reason=f"no {fabric} here: {missing}"))
        mark = item.get_closest_marker("shm")
        if mark:
            item.add_marker(pytest.mark.skip(reason=f"not over {fabric}: {mark.args[0]}"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """Keep tests that are to run alone apart from those of the other workers of pytest-xdist.

    This comes before the time-out of the test begins.
    """
    with turn(item.config, alone=item.get_closest_marker("alone") is not None):
        return (yield)


@pytest.fixture
def mpirun(tmp_path):
    """Run jobs by the project's own mpiexec: see support.mpirun."""
    runner = Runner(tmp_path)
    yield runner
    runner.close()


@pytest.fixture(scope="session")
def pool(tmp_path_factory, request):
    """The ranks that stay."""
    pool = Pool(tmp_path_factory.mktemp("ranks"))
    request.config.stash[POOL] = pool
    yield pool
    pool.close()


@pytest.fixture
def ranks(pool, tmp_path):
    """Run programs on ranks that stay: see support.resident."""
    return Ranks(pool, tmp_path)


def pytest_sessionfinish(session):
    """Give the process that reports what the ranks of this worker have done."""
    pool = session.config.stash.get(POOL, None)
    if pool is not None and hasattr(session.config, "workeroutput"):
        session.config.workeroutput["ranks"] = pool.told()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take what a worker of pytest-xdist says when it ends; one that has crashed says nothing."""
    told = getattr(node, "workeroutput", {}).get("ranks")
    if told:
        node.config.stash.setdefault(TOLD, []).append(told)


def pytest_terminal_summary(terminalreporter, config):
    """Say what the ranks that stay have done, and, with -v, after which programs they had to be replaced."""
    told = config.stash.get(TOLD, [])
    if POOL in config.stash:
        told = [*told, config.stash[POOL].told()]
    if not told:
        return
    ran, started = (sum(worker[key] for worker in told) for key in ("ran", "started"))
    terminalreporter.write_line(f"{ran} programs on ranks that stay, by {started} jobs")
    if config.get_verbosity() > 0:
        for program, reason in (pair for worker in told for pair in worker["reasons"].items()):
            terminalreporter.write_line(f"  replaced after {program}: {reason}")


@pytest.fixture(params=SIZES)
def n(request):
    """Numbers of ranks: one, a pair, a power of two and none."""
    return request.param
