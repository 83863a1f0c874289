"""Jobs whose ranks stay and run tests, in the process of pytest."""

from __future__ import annotations

import os
import pickle
import socket
import sys
import time
import uuid
import warnings

import pytest

from .._resident.errors import RanksError, StartError
from .._resident.session import Session
from . import marks, merge
from .testrun import Output, TestRun

_CONFIGURED_WITHIN = 120.0
_STARTS = 2  # how often ranks of a size are tried that do not start
_ALIVE = 20  # ranks of all teams; the one that waits longest for a test makes room
_DEADLOCK = 2.0
_SIZE = pytest.StashKey["int | None"]()


class Team(Session):
    """The ranks that run the tests of one size."""

    worker = ("-m", "gormapy.testing.rank")
    exit_within = 30.0  # fixtures of sessions end, and coverage is saved

    def __init__(self, size, checked=False):
        super().__init__(size, checked=checked)
        self.used = time.monotonic()
        self.comms = 0  # communicators that all ranks can free
        self.last = None  # the test that they have run last

    def signal(self, ranks, number):
        """Send a signal to ranks of this host."""
        for rank in ranks:
            if not rank.gone and not rank.host:
                os.kill(rank.pid, number)


class Controller:
    """Runs the tests that are on ranks in place of pytest's own protocol."""

    def __init__(self, config):
        self.config = config
        self.teams = {}
        self.started = self.ran = 0
        self.failed = {}  # why ranks did not start, for each try, by size
        self.items = None  # those of each size that are to come
        self.late = []  # what ranks have written between tests
        self.run_id = uuid.uuid4().hex

    # Which tests
    # -----------

    def size_of(self, item):
        """Return the number of ranks of a test, None if it runs here."""
        if _SIZE not in item.stash:
            least = marks.too_small(item, self.config.option.mpi_ranks)
            item.stash[_SIZE] = None if least else marks.size_of(item, self.config.option.mpi_ranks)
        return item.stash[_SIZE]

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session):
        """End the ranks before pytest-cov, whose hook is around this one, gathers what they have measured."""
        known = not hasattr(self.config, "workerinput")  # pytest-xdist decides while the tests run
        self.order = {item: k for k, item in enumerate(session.items)} if known else None
        try:
            return (yield)
        finally:
            self.close()

    def _next(self, item, nextitem):
        """Return the next test of the same size, and whether that is unknown."""
        size = self.size_of(item)
        if self.order is None or item not in self.order:
            same = nextitem is not None and self.size_of(nextitem) == size
            return (nextitem if same else None), nextitem is not None and not same
        later = item.session.items[self.order[item] + 1 :]
        return next((other for other in later if self.size_of(other) == size), None), False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        """Run a test on ranks."""
        size = self.size_of(item)
        if size is None:
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._reports(item, nextitem, size):
            item.ihook.pytest_runtest_logreport(report=report)
        self._end_local(item, nextitem)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _end_local(self, item, nextitem):
        """End the fixtures of tests that ran in this process and that the next one does not use."""
        state = item.session._setupstate
        call = pytest.CallInfo.from_call(lambda: state.teardown_exact(nextitem), when="teardown")
        if call.excinfo is not None:
            report = item.ihook.pytest_runtest_makereport(item=item, call=call)
            item.ihook.pytest_runtest_logreport(report=report)

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_timeout_set_timer(self, item, settings):
        """Leave the time-out of a test on ranks to `TestRun`, which shows the stacks of all ranks."""
        return True if self.size_of(item) is not None else None

    # Tests
    # -----

    def _reports(self, item, nextitem, size):
        try:
            team = self._team(size)
        except RanksError as error:
            self.failed.setdefault(size, []).append(str(error))
            return [merge.failure(item, "setup", str(error)), merge._report(item, "teardown", "passed", None)]
        self.ran += 1
        team.last = item
        output = Output(self._through if self.config.getoption("capture", "fd") == "no" else None)
        option = self.config.option
        deadlock = _DEADLOCK if option.mpi_deadlock is None else option.mpi_deadlock or float("inf")
        run = TestRun(team, output, deadlock=deadlock, timeout=self._timeout())
        following, keep = self._next(item, nextitem)
        fields = {
            "nodeid": str(item.nodeid),
            "path": str(item.path),
            "location": item.location,
            "next": str(following.nodeid) if following is not None else "",
            "keep": keep,
            "free": team.comms > 0,
        }
        team.show_in(output)
        try:
            run.execute(**fields)
            self._settle(team, run)
        except BaseException:  # Ctrl-C: how the ranks are is not known
            self._drop(size, at_once=True)
            raise
        records, remarks = team.found()
        run.said += remarks
        run.said += [f"rank {r}: {result['unchecked']}" for r, result in run.results.items() if result.get("unchecked")]
        self._warn(item, run)
        for result in run.results.values():
            if result.get("exit"):
                item.session.shouldstop = f"{result['exit']} (on a rank)"
        reports = merge.reports(self.config, item, run, size)
        found = [record for record in records if not record.get("contested")]
        return merge.checked(item, reports, found) if found else reports

    def _timeout(self):
        asked = self.config.option.mpi_timeout
        if asked is None:
            asked = float(self.config.getini("mpi_timeout") or 0)
        return asked or None

    def _settle(self, team, run):
        """Put communication back after a failure, or end the team if that is not possible."""
        results = run.results.values()
        comms = {result.get("comms", -1) for result in results}
        team.comms = comms.pop() if len(comms) == 1 and len(results) == team.size else 0
        left = {number: result["left"] for number, result in run.results.items() if result.get("left")}
        for number, what in left.items():
            run.said.append(f"rank {number} has not received {what}")
        if not team.closed and any(result.get("finalized") for result in results):
            run.said.append("MPI was finalized in this test: the next one gets new ranks")
            self._drop(team.size)
        elif not team.closed and (left or run.how is not None or any(map(run.is_failure, results))):
            problem = team.reset()
            if problem:
                run.said.append(f"communication could not be put back ({problem}): the next test gets new ranks")
                self._drop(team.size, at_once=True)
        if team.closed:
            self.teams.pop(team.size, None)

    def _warn(self, item, run):
        """Pass the warnings of ranks on, each once, and those about what a test that has passed has left."""
        told = set()
        for message in run.warnings:
            key = message.text, tuple(message.category), message.filename, message.lineno
            if key in told:
                continue
            told.add(key)
            category = _category(*message.category)
            shown = warnings.WarningMessage(category(message.text), category, message.filename, message.lineno)
            self._record(shown, message.when, message.nodeid)
        if run.how is None and not any(map(run.is_failure, run.results.values())):
            for text in run.said:
                line = item.location[1]
                warning = pytest.PytestWarning(text)
                shown = warnings.WarningMessage(warning, pytest.PytestWarning, str(item.path), (line or 0) + 1)
                self._record(shown, "runtest", item.nodeid)

    def _record(self, shown, when, nodeid):
        self.config.hook.pytest_warning_recorded.call_historic(
            kwargs={"warning_message": shown, "when": when, "nodeid": nodeid, "location": None}
        )

    def _through(self, rank, stream, text):
        """Show what a rank prints at once, each line with its rank."""
        file = sys.stderr if stream == "stderr" else sys.stdout
        file.write("".join(f"[{rank}] {line}\n" for line in text.rstrip("\n").split("\n")))
        file.flush()

    # Teams
    # -----

    def _team(self, size):
        """Return the team of a size, a new one if there is none or its ranks have ended meanwhile."""
        team = self.teams.get(size)
        if team is not None:
            team.pump(0)
            if team.closed or any(rank.gone for rank in team.ranks.values()):
                self._drop(size, at_once=True)
                team = None
        if team is None:
            failed = self.failed.get(size, ())
            if len(failed) >= _STARTS:  # each takes long, and maybe until its time is over
                raise StartError(f"ranks of this number were not started again: {failed[_STARTS - 1]}")
            for other in sorted(self.teams, key=lambda n: self.teams[n].used):
                if sum(self.teams) + size > _ALIVE:
                    self._drop(other)
            team = self.teams[size] = self._start(size)
            self.failed.pop(size, None)
        team.used = time.monotonic()
        return team

    def _start(self, size):
        self.started += 1
        team = Team(size, self.config.option.mpi_check)
        try:
            team.start()
            early = Output()
            team.show_in(early)
            answers = self._configure(team)
            silent = [number for number in team.ranks if number not in answers]
            failed = {number: a.text for number, a in answers.items() if a.kind == "failed"}
            if silent or failed:
                texts = merge._by_text(failed)
                what = "\n".join(f"{merge._heading(ranks)} {text}" for text, ranks in texts.items())
                dead = "; ".join(f"rank {r} {text}" for r, text in team.dead().items()) if silent else ""
                said = "\n".join(text for phase in ("setup",) for _, text in early.sections(phase))
                raise StartError(f"pytest did not start on {size} ranks: {what or dead or 'no answer'}\n{said}")
            team.sink = None
            return team
        except BaseException:
            team.close(at_once=True)
            raise

    def _configure(self, team):
        config = self.config
        folder = config._tmp_path_factory.getbasetemp() if hasattr(config, "_tmp_path_factory") else None
        args = [str(arg) for arg in config.invocation_params.args]
        at = args.index("--") if "--" in args else len(args)
        args[at:at] = ["--capture=no"]
        terminal = config.pluginmanager.getplugin("terminalreporter")
        ranks = team.chosen()
        for rank in ranks:
            name = f"mpi-{team.size}-{self.started}-rank{rank.number}"
            options = {
                "basetemp": str(folder / name) if folder is not None else None,
                "mpi": True,
                "mpi_ranks": config.option.mpi_ranks,
            }
            settings = {
                "args": args,
                "argv": list(sys.argv),
                "options": options,
                "markup": bool(getattr(terminal, "_tw", None) and terminal._tw.hasmarkup),
                "mpi4py": "gormapy.run" in sys.modules,
                "workerinput": {
                    "workerid": name,
                    "workercount": team.size,
                    "testrunuid": self.run_id,
                    "mainargv": list(sys.argv),
                    **self._coverage(),
                },
            }
            team.send([rank], "configure", [pickle.dumps(settings)])
        return team.answers(ranks, ("configured", "failed"), _CONFIGURED_WITHIN)

    def _coverage(self):
        """Return what pytest-cov tells its workers."""
        given = getattr(self.config, "workerinput", {})
        if "cov_master_topdir" in given:
            return {name: value for name, value in given.items() if name.startswith("cov_")}
        plugin = self.config.pluginmanager.getplugin("_cov")
        if plugin is None or plugin.cov_controller is None:
            return {}
        return {
            "cov_master_host": socket.gethostname(),
            "cov_master_topdir": plugin.cov_controller.topdir,
            "cov_master_rsync_roots": [],
        }

    def _drop(self, size, at_once=False):
        team = self.teams.pop(size, None)
        if team is None or team.closed:
            return
        end = Output(self._through)
        team.show_in(end)  # fixtures of sessions may print
        team.close(at_once)
        if not at_once:
            self._tell_of_the_end(team)

    def _tell_of_the_end(self, team):
        """Report what mpiexec --check finds when ranks end, such as open epochs, as an error of their last test."""
        found = [record for record in team.found()[0] if not record.get("contested")]
        if found and team.last is not None:
            report = merge.at_the_end(team.last, found)
            team.last.ihook.pytest_runtest_logreport(report=report)

    def close(self):
        """End all ranks."""
        for size in list(self.teams):
            self._drop(size)

    def pytest_unconfigure(self):
        """End the ranks that an error has left."""
        for size in list(self.teams):
            self._drop(size, at_once=True)

    def pytest_terminal_summary(self, terminalreporter):
        """Say, with -v, how many tests ran on ranks."""
        if self.ran and self.config.get_verbosity() > 0:
            terminalreporter.write_line(f"mpi: {self.ran} tests on ranks, by {self.started} jobs")


def _category(module, name):
    """Return the class of a warning, UserWarning if it is none that this process has."""
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) and issubclass(found, Warning) else UserWarning
