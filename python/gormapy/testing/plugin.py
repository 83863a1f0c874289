"""The plugin of pytest: its options, marks and fixtures. What runs tests on ranks is imported with ``--mpi``."""

from __future__ import annotations

import os
import sys

import pytest

_OTHERS = ("mpi-pytest", "pytest_mpi")  # plugins that have the same marks
_LAUNCHED = ("GORMAPY_JOB_", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
_SLURM_STEPS = ("", "4294967291", "4294967290")  # of shells, not of srun

CONTROLLER = pytest.StashKey["object"]()
OURS = pytest.StashKey[tuple]()


def _rank():
    """Return the rank's side of the plugin in the process of a rank, else None."""
    module = sys.modules.get("gormapy.testing.rank")
    return module.current if module is not None else None


def pytest_addoption(parser):
    """Add the options."""
    group = parser.getgroup("mpi", "tests on ranks (gormapy)")
    group.addoption("--mpi", action="store_true", help="Run tests that are marked mpi or parallel on ranks that stay.")
    group.addoption(
        "--mpi-ranks",
        type=int,
        metavar="N",
        help="Number of ranks of tests that don't say it; implies --mpi. "
        "With --mpi, -n N means the same unless this option is given: -n is pytest-xdist's then.",
    )
    group.addoption(
        "--mpi-timeout", type=float, metavar="SECONDS", help="Seconds that a test on ranks may take; 0: no limit."
    )
    group.addoption(
        "--mpi-deadlock",
        type=float,
        metavar="SECONDS",
        help="Seconds for which all ranks have to wait before a deadlock is told (2).",
    )
    group.addoption(
        "--mpi-check",
        action="store_true",
        help="Fail tests in which mpiexec --check finds a race or misuse of one-sided communication; implies --mpi.",
    )
    parser.addini("mpi_ranks", "Number of ranks of tests that don't say it (2).")
    parser.addini("mpi_timeout", "Seconds that a test on ranks may take.")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config, parser, args):
    """Add -n and --check, if no plugin and no conftest.py has them, before the arguments are parsed in earnest."""
    manager = early_config.pluginmanager
    known = early_config.known_args_namespace
    group = parser.getgroup("mpi")
    if not manager.hasplugin("xdist"):
        group._addoption("-n", type=int, dest="mpi_n", metavar="N", help="With --mpi: --mpi-ranks.")
    if known.mpi or known.mpi_check or known.mpi_ranks is not None or _rank() is not None:
        if known.mpi_ranks is None and getattr(known, "numprocesses", None):
            known.numprocesses = None  # it was the number of ranks; pytest-cov looks at it
        for name in _OTHERS:
            if manager.hasplugin(name):
                manager.set_blocked(name)
        _provide_mpi4py()
    loaded = yield
    others = (option for one in (parser._anonymous, *parser._groups) for option in one.options)
    if not any("--check" in option.names() for option in others):
        group._addoption("--check", action="store_true", dest="mpi_checked", help="With --mpi: --mpi-check.")
    return loaded


def _provide_mpi4py():
    from gormapy.run import provide_mpi4py

    provide_mpi4py()


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config):
    """Take -n as the number of ranks before pytest-xdist takes it as that of its workers."""
    option = config.option
    on = option.mpi or option.mpi_check or option.mpi_ranks is not None
    if on and _rank() is None:
        if option.mpi_ranks is None:
            option.mpi_ranks = _number(config)
        if option.mpi_ranks < 1:
            raise pytest.UsageError(f"--mpi: {option.mpi_ranks} ranks: it takes 1 or more")
        option.mpi = True
        option.mpi_check |= getattr(option, "mpi_checked", False)
        _refuse(config)
    elif not on and getattr(option, "mpi_n", None) is not None:
        raise pytest.UsageError("-n is for --mpi, or for pytest-xdist, which is not installed")
    elif not on and getattr(option, "mpi_checked", False):
        raise pytest.UsageError("--check is for --mpi")
    return (yield)


def _number(config):
    """Return the number of ranks that -n, or else the project's settings, say."""
    option = config.option
    if getattr(option, "mpi_n", None) is not None:
        return option.mpi_n
    asked = getattr(option, "numprocesses", None)
    if asked is None or hasattr(config, "workerinput"):
        try:
            return int(config.getini("mpi_ranks") or 2)
        except ValueError:
            raise pytest.UsageError(f"mpi_ranks = {config.getini('mpi_ranks')}: it takes a number") from None
    if not isinstance(asked, int):
        raise pytest.UsageError(f"--mpi -n {asked}: with --mpi, -n is the number of ranks")
    option.numprocesses, option.dist, option.tx = None, "no", []
    return asked


def _refuse(config):
    """Say what does not go together with --mpi."""
    if config.option.usepdb or config.option.trace:
        raise pytest.UsageError(
            "--pdb and --trace can't ask on ranks: there is one keyboard and several ranks. Run the test on one rank, "
            "without --mpi"
        )
    if config.option.setuponly and not config.option.setupplan:
        raise pytest.UsageError("--setup-only does not reach the ranks: --setup-plan shows the fixtures of all tests")
    launched = _launched()
    if launched:
        raise pytest.UsageError(
            f"--mpi starts the ranks itself, and this pytest is a rank already ({launched} is set): run pytest without "
            "mpiexec, or mpiexec without --mpi"
        )


def _launched():
    """Return the name of a variable by which a launcher tells a process that it is a rank, or ""."""
    for name in os.environ:
        if not name.startswith(_LAUNCHED) or name == "GORMAPY_JOB_NODES":  # which is for mpiexec
            continue
        if name != "SLURM_PROCID" or os.environ.get("SLURM_STEP_ID", "") not in _SLURM_STEPS:
            return name
    return ""


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    """Register the marks, and what runs tests on ranks."""
    registered = {line.partition(":")[0].partition("(")[0].strip() for line in config.getini("markers")}
    on = config.option.mpi or _rank() is not None
    # Marks of these names that others have registered are theirs without --mpi.
    names = ("mpi", "parallel") if on else tuple({"mpi", "parallel"} - registered)
    config.stash[OURS] = names
    config.addinivalue_line(
        "markers", "mpi(ranks=N): run on N ranks, or on each number of a list; without N on those of pytest --mpi -n"
    )
    config.addinivalue_line("markers", "parallel(nprocs=3): as mpi(nprocs=3); the mark of mpi-pytest")
    runs = not config.option.collectonly and not config.option.setupplan
    if config.option.mpi and _rank() is None and runs and not _distributes(config):
        from .controller import Controller

        controller = config.stash[CONTROLLER] = Controller(config)
        config.pluginmanager.register(controller, "gormapy-controller")


def _distributes(config):
    """Report whether this process has workers of pytest-xdist that run the tests."""
    return not hasattr(config, "workerinput") and bool(getattr(config.option, "tx", None))


def pytest_report_header(config):
    """Say that tests run on ranks."""
    if config.option.mpi:
        from gormapy import __version__

        return (
            f"mpi: gormapy {__version__}, tests on {config.option.mpi_ranks} ranks that stay unless they say otherwise"
        )
    return None


def pytest_generate_tests(metafunc):
    """Make a test for each number of ranks."""
    names = metafunc.config.stash.get(OURS, ())
    if names:
        from .marks import parametrize

        parametrize(metafunc, names)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark tests by their number of ranks for ``-m "parallel[3]"``; skip those that can't run."""
    names = config.stash.get(OURS, ())
    if config.option.mpi:
        _label(config, items)
    elif names and not _launched():
        from .marks import mark_of

        for item in items:
            mark = mark_of(item, names)
            if mark is not None:
                item.add_marker(pytest.mark.skip(reason=f"is marked {mark.name}: runs on ranks, by pytest --mpi"))


def _label(config, items):
    from .marks import size_of, too_small

    labels = set()
    for item in items:
        size = size_of(item, config.option.mpi_ranks)
        label = f"parallel[{size or 1}]"
        if label not in labels:
            labels.add(label)
            config.addinivalue_line("markers", f"{label}: a number of ranks")
        item.add_marker(getattr(pytest.mark, label))
        least = too_small(item, config.option.mpi_ranks)
        if least is not None:
            item.add_marker(pytest.mark.skip(reason=f"needs {least} ranks or more: pytest --mpi -n {least}"))


# Fixtures
# --------


@pytest.fixture
def mpi_ranks(request):
    """The number of ranks of the test."""
    if hasattr(request, "param"):
        return request.param
    from gormapy import MPI

    return MPI.COMM_WORLD.Get_size()


@pytest.fixture
def comm(request):
    """A communicator of all ranks that no other test has: a duplicate of ``COMM_WORLD``."""
    from gormapy import MPI

    made = MPI.COMM_WORLD.Dup()
    yield made
    rank = _rank()
    if rank is not None:
        rank.used.append(made)  # freed once all ranks have done the test: one may have failed
    elif made:
        made.Free()


def _shared(path):
    """Return the path that rank 0 has."""
    from gormapy import MPI

    rank = _rank()
    return (rank.own_comm if rank is not None else MPI.COMM_WORLD).bcast(path, 0)


@pytest.fixture
def mpi_tmp_path(tmp_path):
    """A temporary folder that all ranks share; ``tmp_path`` is a folder of each rank's own."""
    return _shared(tmp_path)


@pytest.fixture
def mpi_file_name(mpi_tmp_path):
    """The name of a file, as text, that no other test has, and that all ranks share."""
    return str(mpi_tmp_path / "file")
