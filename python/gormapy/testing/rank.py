"""The process of a rank: pytest without a terminal, which runs the tests that the controller names."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import traceback

import pytest
from _pytest.outcomes import Failed
from _pytest.terminal import TerminalReporter

from .._resident import worker
from .testrun import mark

current = None  # the TestRank of this process
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Options that are the controller's alone: what it selects, how it ends, what it writes.
_NOT_HERE = {
    "maxfail": 0,
    "usepdb": False,
    "trace": False,
    "collectonly": False,
    "keyword": "",
    "markexpr": "",
    "deselect": None,
    "lf": False,
    "failedfirst": False,
    "newfirst": False,
    "stepwise": False,
    "stepwise_skip": False,
    "cacheclear": False,
    "cacheshow": None,
    "setupshow": False,
    "setuponly": False,
    "setupplan": False,
    "durations": None,
    "xmlpath": None,
    "numprocesses": None,
    "maxprocesses": None,
    "dist": "no",
    "distload": False,
    "loadgroup": False,
    "looponfail": False,
    "tx": [],
    "session_timeout": None,
}


# The reporter that some of pytest and its plugins look for; none of pytest's hooks reaches it.
_Silent = type(
    "_Silent", (TerminalReporter,), {name: None for name in dir(TerminalReporter) if name.startswith("pytest_")}
)


class Interrupted(Failed):
    """The controller has interrupted the test: another rank has failed, or the time is over."""


class TestRank(worker.Worker):
    """This process as a rank that runs tests."""

    __test__ = False

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.in_phase = False  # SIGINT is for the test
        self.used = []  # communicators of the fixture comm, to be freed
        self.own_comm = None  # a communicator of the plugin
        self.failed = False
        self.configured = False
        self.phase, self.reported, self.exit = "setup", 0, ""
        self.session = None
        self.modules = {}  # items by id, and reports, by path
        self.folders = {}  # their nodes, by path and parent
        self.file = None

    def prepare(self):
        """Make what the plugin itself uses."""
        from gormapy import MPI

        self.own_comm = MPI.COMM_WORLD.Dup()
        self.pipes = os.dup(1), os.dup(2)  # which a test can't redirect

    def _on_interrupt(self, number, frame):
        if self.in_phase:
            raise Interrupted("interrupted by the controller", pytrace=False)
        super()._on_interrupt(number, frame)

    def answer(self, message):
        """Send the stacks of this process."""
        if message.kind == "stacks":
            self.say("stacks", text=self._stacks())
        return message.kind == "stacks"

    def _stacks(self):
        frames = sys._current_frames()
        texts = [_stack(frames.get(self.main), "")]
        for thread in threading.enumerate():
            if thread.ident not in self.own and thread.ident != self.main and thread.ident in frames:
                texts.append(_stack(frames[thread.ident], f"thread {thread.name}:\n"))
        return "".join(texts)

    def place(self, frame):
        """Return where in the test, or in a file that is neither pytest's nor gormapy's, a frame is."""
        inner = frame
        while frame is not None:
            code = frame.f_code
            if code.co_filename == self.file or _is_users(code.co_filename):
                text = traceback.linecache.getline(code.co_filename, frame.f_lineno).strip()
                label = f"{os.path.basename(code.co_filename)}:{frame.f_lineno}"
                below = "" if inner is frame else f"{os.path.basename(inner.f_code.co_filename)}:{inner.f_lineno}"
                return {"label": label, "line": frame.f_lineno, "text": text, "inner": below}
            frame = frame.f_back
        return None

    # Tasks
    # -----

    def do_configure(self, task):
        """Run pytest, whose loop over tests executes the tasks that follow."""
        from _pytest.config import _prepareconfig

        settings = pickle.loads(task.payloads[0])
        sys.argv[:] = settings["argv"]
        if settings["mpi4py"]:
            from gormapy.run import provide_mpi4py

            provide_mpi4py()
        sys.breakpointhook = _no_breakpoint
        config = _prepareconfig(settings["args"])
        # after the arguments are parsed: it has options
        config.pluginmanager.consider_pluginarg("no:terminal")
        for name, value in {**_NOT_HERE, **settings["options"]}.items():
            if hasattr(config.option, name):
                setattr(config.option, name, value)
        config.workerinput = settings["workerinput"]  # by which plugins know that this is not the process that reports
        config.workeroutput = {}
        config.pluginmanager.register(self, "gormapy-rank")
        with open(os.devnull, "w") as nowhere:
            terminal = _Silent(config, nowhere)
            terminal._tw.hasmarkup = settings["markup"]  # of assertions, which the controller shows
            config.pluginmanager.register(terminal, "terminalreporter")
            status = config.hook.pytest_cmdline_main(config=config)
        if not self.configured:
            raise RuntimeError(f"pytest ended with status {status} before the first test")
        self.armed = True
        sys.exit(0)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self, session):
        """Collect nothing yet; what other plugins do here is done, such as to rewrite assertions."""
        session.items = []
        session.perform_collect = lambda *args, **options: []
        try:
            return (yield)
        finally:
            del session.perform_collect

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        """Execute what the controller asks for."""
        self.session, self.configured = session, True
        self.say("configured")
        self.execute()
        return True

    def do_run(self, task):
        """Run a test."""
        from gormapy import MPI, check

        signal.signal(signal.SIGINT, self._on_interrupt)
        self.file = task.path
        self.cell = task.cell
        check.renew()
        self._enter("setup")
        self.reported, self.exit = 0, ""
        for comm in self.used:
            if task.free and comm:
                comm.Free()
        self.used.clear()
        try:
            self._run(task)
        except pytest.exit.Exception as stop:
            self.exit = str(stop) or "pytest.exit()"
        except BaseException as error:
            self._report_error(task, error)
        if not self.reported:
            self._report_error(task, RuntimeError("pytest ran no phase of the test on this rank"))
        self.guarded(self.flush)
        self.cell = None
        finalized = bool(MPI.Is_finalized())
        self.say(
            "done",
            cell=task.cell,
            failed=self.failed,
            finalized=finalized,
            comms=len(self.used),
            left="" if finalized else _left(MPI),
            exit=self.exit,
            unchecked=check.await_checker(),
        )

    def _run(self, task):
        self.failed = False
        items, reports = self._collected(task)
        item = items.get(task.nodeid)
        stack = self.session._setupstate
        if item is None:
            self._tell_missing(task, reports)
            return
        kept = list(stack.stack)
        if kept and kept != item.listchain()[: len(kept)]:
            stack.teardown_exact(item)
        self.session.items = [item]
        # Of what is set up, pytest keeps what the next test uses: of one in another file, what belongs to the session.
        following = items.get(task.next) or (self.session if task.next else item.parent if task.keep else None)
        self.session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

    def _collected(self, task):
        """Return the items of a file by their ids, and the reports of its collection that are no success."""
        if task.path not in self.modules:
            self.collecting = []
            path = task.path
            if "[" in path:  # of a folder above, maybe: pytest takes what follows for parameters
                path = os.path.relpath(path, self.session.config.invocation_params.dir)
            self.in_phase = True
            try:
                items = self.session.perform_collect([path])
            finally:
                self.in_phase = False
            self.modules[task.path] = {item.nodeid: item for item in items}, self.collecting
            self.collecting = None
        return self.modules[task.path]

    collecting = None

    def pytest_collectreport(self, report):
        """Keep why a file could not be collected."""
        if self.collecting is not None and not report.passed:
            self.collecting.append(report)

    # Files are collected one by one, but as parts of one tree: from pytest 9.1 on, the fixtures of a conftest.py belong
    # to the node of its folder, and are those of a package in all versions.

    @pytest.hookimpl(wrapper=True, tryfirst=True, optionalhook=True)
    def pytest_collect_directory(self, path, parent):
        """Return the node that the folder had when another of its files was collected."""
        made = yield
        return made if made is None else self.folders.setdefault((path, parent), made)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_finish(self, session):
        """Keep the fixtures of those folders of which no file was collected yet."""
        pending = getattr(session._fixturemanager, "_pending_conftests", {})  # from pytest 9.1 on
        kept = dict(pending)
        try:
            return (yield)
        finally:
            pending.update(kept)

    def _tell_missing(self, task, reports):
        """Report a test that this rank has not found."""
        path = task.nodeid.partition("::")[0]
        for report in reports:
            data = self.session.config.hook.pytest_report_to_serializable(config=self.session.config, report=report)
            longrepr = report.longrepr if report.skipped else str(report.longreprtext)
            if data is not None and (report.nodeid == path or task.nodeid.startswith(report.nodeid)):
                self._say_report(task, report.outcome, longrepr)
                return
        rank = f"rank {self.rank} of {self.size}"
        self._say_report(
            task,
            "failed",
            f"{rank} has collected no test of this id in {task.path}: its parameters have to be the same on all ranks",
        )

    def _say_report(self, task, outcome, longrepr):
        self.failed |= outcome == "failed"
        report = pytest.TestReport(task.nodeid, tuple(task.location), {}, outcome, longrepr, self.phase)
        self._send(report)

    def _report_error(self, task, error):
        tb = error.__traceback__
        while tb is not None and not _is_users(tb.tb_frame.f_code.co_filename):
            tb = tb.tb_next
        text = "".join(traceback.format_exception(type(error), error, tb or error.__traceback__))
        self._say_report(task, "failed", text)

    # pytest's hooks
    # --------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self):
        """Let the controller interrupt the phase."""
        return (yield from self._phase("setup"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self):
        """Let the controller interrupt the phase."""
        return (yield from self._phase("call"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self):
        """Let the controller interrupt the phase."""
        return (yield from self._phase("teardown"))

    def _phase(self, name):
        self._enter(name)
        try:
            self.in_phase = True
            return (yield)
        finally:
            self.in_phase = False

    def _enter(self, phase):
        """Begin a phase: what is printed from now on belongs to it."""
        self.flush()
        self.phase = phase
        for pipe in self.pipes:
            os.write(pipe, mark(phase).encode())
        self.say("phase", when=phase)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        """Mark the reports of phases that the controller has interrupted."""
        report = yield
        report.gormapy_interrupted = call.excinfo is not None and isinstance(call.excinfo.value, Interrupted)
        return report

    def pytest_runtest_logreport(self, report):
        """Send a report to the controller."""
        if report.failed and not getattr(report, "gormapy_interrupted", False):
            self.failed = True
        self.flush()
        self._send(report)

    def _send(self, report):
        self.reported += 1
        hook = self.session.config.hook
        data = hook.pytest_report_to_serializable(config=self.session.config, report=report)
        failed = report.failed or (hasattr(report, "wasxfail") and report.skipped)  # others may wait for this rank
        try:
            payload = pickle.dumps(data)
        except Exception:  # properties that the test has recorded
            data["user_properties"] = [(str(k), repr(v)) for k, v in report.user_properties]
            payload = pickle.dumps(data)
        self.say(
            "report", [payload], when=report.when, failed=failed and not getattr(report, "gormapy_interrupted", False)
        )

    def pytest_warning_recorded(self, warning_message, when, nodeid, location):
        """Send a warning to the controller."""
        category = warning_message.category
        self.say(
            "warning",
            text=str(warning_message.message),
            category=[category.__module__, category.__qualname__],
            filename=warning_message.filename,
            lineno=warning_message.lineno,
            when=when,
            nodeid=str(nodeid),
        )

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_timeout_set_timer(self, item, settings):
        """Leave the time-out of pytest-timeout to the controller, which sees all ranks."""
        self.say("timer", seconds=settings.timeout)
        return True

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_timeout_cancel_timer(self, item):
        """Do nothing: there is no timer."""
        return True


def _left(mpi):
    """Return what a test has left on COMM_WORLD that a later one would receive, "" for nothing."""
    status = mpi.Status()
    try:
        if mpi.COMM_WORLD.Iprobe(mpi.ANY_SOURCE, mpi.ANY_TAG, status):
            return f"a message of rank {status.Get_source()}, tag {status.Get_tag()}"
    except mpi.Exception:  # its error handler was changed, or it was revoked
        pass
    return ""


def _is_users(name):
    """Report whether a file is neither gormapy's, nor pytest's, nor Python's."""
    return not (
        name.startswith((_PACKAGE, "<frozen", sys.base_prefix + os.sep + "lib", os.path.dirname(os.__file__)))
        or f"{os.sep}_pytest{os.sep}" in name
        or f"{os.sep}pluggy{os.sep}" in name
        or f"{os.sep}site-packages{os.sep}" in name
    )


def _stack(frame, head):
    """Return the stack of a thread, from the first frame that pytest has called."""
    if frame is None:
        return ""
    stack = traceback.extract_stack(frame)
    own = [i for i, f in enumerate(stack) if f"{os.sep}_pytest{os.sep}" in f.filename or "pluggy" in f.filename]
    first = own[-1] + 1 if own else 0
    return head + "".join(traceback.format_list(stack[first:] or stack[-4:]))


def _no_breakpoint(*args, **kwargs):
    raise RuntimeError("breakpoint() can't ask on a rank: there is one keyboard and several ranks")


def main():
    """Connect to the controller that started this process, and serve it."""
    global current
    worker.ignore_signals()
    current = worker.open_worker(TestRank)
    current.start()
    current.serve()


if __name__ == "__main__":
    # Under the name by which the plugin imports it.
    from gormapy.testing.rank import main as run

    run()
