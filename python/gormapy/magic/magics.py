"""The magics %%mpi and %mpi."""

import contextlib
import importlib
import io
import os
import shlex
import signal
import threading

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from traitlets import Enum, Float, Int

from .._resident.errors import RanksError, ranks_text
from .._resident.session import Session
from . import transfer
from .cellrun import CellRun
from .errors import CellInterrupted, MPICellError
from .options import cell_parser, line_parser
from .view import view_for

_MOVE_WITHIN = 600.0  # for the objects of push and pull
_MOST_FINDINGS = 50  # in a cell: each line with each other line may be one


class NotebookSession(Session):
    """The ranks of a notebook."""

    worker = ("-m", "gormapy.magic.worker")
    interrupted = CellInterrupted
    since = ""  # the last cell, such as In [3]

    def environment(self):
        """Return the environment of the ranks: figures are shown in the notebook."""
        return {**os.environ, "MPLBACKEND": "module://matplotlib_inline.backend_inline"}


@magics_class
class MPIMagics(Magics):
    """MPI in notebooks; ``%config MPIMagics`` lists the settings."""

    deadlock_after = Float(2.0, help="Seconds for which all ranks have to wait before a deadlock is told.").tag(
        config=True
    )
    output_limit = Int(60_000, help="How many characters of each rank's output are shown.").tag(config=True)
    live_output = Enum(
        ("auto", True, False),
        "auto",
        help="Whether output is shown while a cell runs, and updated; False: all at its end, for front ends that don't "
        "update displays; 'auto': the same in %%capture, and for front ends with messages older than 5.1.",
    ).tag(config=True)
    progress_after = Float(
        2.0, help="Seconds after which a line shows what the ranks of a running cell do; 0: never."
    ).tag(config=True)
    default_ranks = Int(4, help="How many ranks %%mpi starts without -n.").tag(config=True)

    def __init__(self, shell):
        super().__init__(shell)
        self.session = None
        self._size = self._hosts = None
        self._checked = False  # the ranks were checked (True or "exact"), and so will be those that take their place

    # Sessions
    # --------

    def _live(self, view, size=None, fresh=False, hosts=None, check=False):
        """Return a session of ``size`` ranks: the present one, or a new one with a remark if state is lost."""
        old, why = self.session, ""
        if old is not None and old.closed:  # the cell that ended it has reported it
            old = self.session = None
        if old is not None:
            old.pump(0)
            if any(r.gone for r in old.ranks.values()):
                dead = old.dead()
                why = "; ".join(f"rank {r} {text}" if r >= 0 else text for r, text in dead.items())
                why = f"Since the last cell: {why}. The ranks are new, and the state of the old ones is lost."
            elif any(r.state != "idle" for r in old.ranks.values()):
                why = "The last command was cut short. The ranks are new, and the state of the old ones is lost."
            elif fresh:
                why = f"Starting {size or old.size} new ranks; what the old ones had is gone."
            elif hosts is not None and hosts != old.hosts:
                why = f"Starting ranks on {hosts}; what the old ones had is gone."
            elif (check and not old.checked) or (check == "exact" and not old.exact):
                exactly = " exactly" if check == "exact" else ""
                why = f"Starting {size or old.size} ranks that are checked{exactly}; what the old ones had is gone."
            elif size is not None and size != old.size:
                why = f"Starting {size} ranks in place of {old.size}; what the old ones had is gone."
        if old is not None and not why:
            return old
        size = size or (old.size if old else self._size or self.default_ranks)
        # several hosts can't be checked
        check = check or (self._checked and not fresh and (hosts is None or hosts == self._hosts))
        if old is not None:
            self.session = None
            self._show_rest(old)
            old.close()
            self._show_found(old, view)
            view.say(why + (" They are not checked." if old.checked and not check else ""))
        with self._counted() as interrupts:  # before there is a process that a Ctrl-C has to end
            session = NotebookSession(size, hosts or self._hosts, check)
            session.interrupts = interrupts
            session.start()
        session.interrupts = lambda: 0
        self.session, self._size, self._hosts, self._checked = session, size, session.hosts, check
        return session

    def _show_rest(self, session):
        """Show what the ranks have printed since their last cell: there is no next one for it."""
        if session.since:
            view = view_for(self.shell, self.output_limit)
            session.show_in(view.transcript, view.transcript.earlier(session.since))
            session.sink = None
            view.finish()

    @contextlib.contextmanager
    def _counted(self):
        """Count Ctrl-C, in place of an exception that could come anywhere; yield what returns how many came."""
        pressed = []
        if threading.current_thread() is not threading.main_thread():
            yield lambda: 0  # signals are for the main thread
            return
        before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
        try:
            yield lambda: len(pressed)
        finally:
            signal.signal(signal.SIGINT, before)

    @contextlib.contextmanager
    def _watched(self, session):
        """Let a session know how often Ctrl-C was pressed in a command."""
        with self._counted() as interrupts:
            session.interrupts = interrupts
            try:
                yield
            finally:
                session.interrupts = lambda: 0

    def close(self):
        """End the ranks."""
        session, self.session = self.session, None
        if session is not None:
            session.close()

    # Cells
    # -----

    @cell_magic("mpi")
    def cell(self, line, body):
        """Run the cell on ranks that stay alive between cells; ``%%mpi --help`` lists the options.

        ``%%mpi -n 4`` starts 4 ranks, if there are not as many; later cells run on the same ones, and find the
        variables of earlier cells. Output comes with the number of its rank. It waits until all ranks have ended the
        cell; Ctrl-C interrupts them. A cell is a program: it begins with ``from gormapy import MPI``.

        Errors: MPICellError if a rank raises an exception, dies, or does not end within ``--timeout`` seconds.
        """
        parser = cell_parser()
        opt = parser.parse_args(_split(line))
        if opt.help:
            print(parser.format_help())
            return
        if opt.local:
            result = self.shell.run_cell(body, store_history=False)
            if not result.success:
                raise MPICellError("the cell failed in the kernel (--local), and was not run on the ranks")
        clears = not opt.local and _whole_cell(self.shell, body)
        view = view_for(self.shell, self.output_limit, clears, self.live_output)
        error = None
        try:
            error = self._run(opt, line, body, view)
        except RanksError as failure:
            error = failure
        finally:
            view.finish()
        if error is None:
            return
        if opt.allow_errors and isinstance(error, RanksError):
            view.say(f"{type(error).__name__}: {error}")
            return
        raise error from None

    def _run(self, opt, line, body, view):
        session = self._live(view, opt.n, opt.fresh, opt.hosts, opt.check)
        self._check(opt.ranks, session)
        with self._watched(session):
            session.show_in(view.transcript, view.transcript.earlier(session.since) if session.since else None)
            session.since = f"In [{_number(self.shell)}]"
            try:
                run = CellRun(
                    session,
                    view,
                    opt.ranks,
                    self.deadlock_after,
                    timeout=opt.timeout,
                    progress_after=self.progress_after,
                )
                traced = opt.trace is not None
                begun = session.clocks() if traced else None
                code = _numbered(line, body)
                try:
                    run.run(code=code, count=_number(self.shell), trace=traced, shared_arrays=opt.shared_arrays)
                    error = run.conclude()
                finally:
                    self._show_found(session, view, run.results)
                if traced:
                    self._show_trace(run, opt.trace, view, begun)
                return error
            finally:
                session.sink = None

    def _show_found(self, session, view, results=None):
        """Show what mpiexec --check has found since the last call, also in ranks that have ended."""
        found, remarks = session.found()
        for record in found[:_MOST_FINDINGS]:
            view.finding(record)
        if len(found) > _MOST_FINDINGS:
            remarks.insert(0, f"{len(found) - _MOST_FINDINGS:,} more findings are not shown: repair these first.")
        for number, result in sorted((results or {}).items()):
            if result.get("unchecked"):
                remarks.append(f"What rank {number} has done last is not looked at: {result['unchecked']}.")
        for text in remarks:
            view.say(text)

    def _show_trace(self, run, path, view, begun):
        """Join the recordings of the ranks, write them to a file if there is a name, and show them as a timeline."""
        from IPython.display import display

        from .. import trace

        problems = {r: result["trace"] for r, result in sorted(run.results.items()) if result.get("trace")}
        sent = [(r, result.payloads[0]) for r, result in sorted(run.results.items()) if getattr(result, "payloads", ())]
        parts = [part for _, part in sent]
        ended, ranks = run.session.clocks(), run.session.ranks
        clocks = [(h, begun.get(h, 0), ended.get(h, begun.get(h, 0))) for h in (ranks[r].host for r, _ in sent)]
        origin = min((run.results[r].begun + begun.get(ranks[r].host, 0) for r, _ in sent), default=None)
        if problems:
            view.say("; ".join(f"rank {r} was not recorded: {text}" for r, text in problems.items()))
        if not parts:
            return
        try:
            there = any(host for host, _, _ in clocks)
            recorded = trace.join(parts, os.path.expanduser(path) or None, clocks if there else None, origin)
        except (OSError, ValueError) as error:
            view.say(f"The recording is lost: {error}")
            return
        if path:
            view.say(f"The recording is in {path}, for https://ui.perfetto.dev and gormapy.trace.load.")
        self.shell.user_ns["mpi_trace"] = recorded
        try:
            figure = importlib.import_module("gormapy.plot").timeline(recorded)
        except ImportError as error:
            view.say(
                f"No picture of the recording ({error}): pip install 'gormapy[plot]'. It is the variable mpi_trace."
            )
            return
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        FigureCanvasAgg(figure)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", bbox_inches="tight")
        from IPython.display import Image

        display(Image(data=buffer.getvalue(), format="png"))
        with contextlib.suppress(Exception):
            import matplotlib.pyplot as plt

            plt.close(figure)  # otherwise the notebook shows it again

    def _check(self, ranks, session):
        if ranks and ranks[-1] >= session.size:
            raise UsageError(f"--ranks: there is no rank {ranks[-1]} among {session.size} (0 to {session.size - 1})")

    # Commands
    # --------

    @line_magic("mpi")
    def command(self, line):
        """Do something with the ranks: status, start, stop, reset, pull, push; ``%mpi --help`` says more.

        - ``%mpi status`` shows process, state and memory of each rank, ``%mpi start -n N`` starts them, ``%mpi stop``
          ends them.
        - ``%mpi reset`` puts communication back into a defined state, on all ranks.
        - ``%mpi pull NAME`` brings variables of the ranks into the notebook: a list by rank, or a dictionary with
          ``--ranks``.
        - ``%mpi push NAME`` sets variables of the notebook on the ranks.
        """
        parser = line_parser()
        opt = parser.parse_args(_split(line))
        if opt.help:
            print(parser.format_help())
            return
        getattr(self, f"_do_{opt.command or 'status'}")(opt)

    def _do_status(self, opt):
        session = self.session
        if session is not None and not session.closed:
            session.pump(0)
        if session is None or session.closed:
            print("No ranks run. The next %%mpi cell starts some.")
            return
        hosts = any(rank.host for rank in session.ranks.values())
        print(f"{'rank':>4}  {'pid':>7}  {'state':<9}  {'host' if hosts else 'memory'}")
        dead = session.dead()
        for number, rank in sorted(session.ranks.items()):
            memory = rank.host or ("" if rank.gone else _memory(rank.pid))
            state = dead.get(number, "gone") if rank.gone else rank.state
            print(f"{number:>4}  {rank.pid:>7}  {state:<9}  {memory}")

    def _do_start(self, opt):
        session = self._live(view_for(self.shell, self.output_limit), opt.n, hosts=opt.hosts)
        print(f"{session.size} rank{'s' if session.size > 1 else ''} run.")

    def _do_stop(self, opt):
        there = self.session is not None and not self.session.closed
        size = self.session.size if there else 0
        if there:
            self.session.pump(0)
            self._show_rest(self.session)
        session = self.session
        self.close()
        self._checked = False
        if there:
            self._show_found(session, view_for(self.shell, self.output_limit))
        print(f"{size} rank{'s' if size > 1 else ''} ended." if there else "No ranks run.")

    def _needed(self):
        session = self.session
        if session is not None and not session.closed:
            session.pump(0)
            if not session.dead():
                return session
        raise UsageError("no ranks run: an %%mpi cell or %mpi start starts some")

    def _do_reset(self, opt):
        session = self._needed()
        with self._watched(session):
            problem = session.reset()
        if problem:
            session.close(at_once=True)
            raise MPICellError(f"communication could not be put back ({problem}): all ranks were ended")
        print("Communication was put back on all ranks.")

    def _do_pull(self, opt):
        session = self._needed()
        self._check(opt.ranks, session)
        ranks = session.chosen(opt.ranks)
        with self._watched(session):
            answers = session.ask(ranks, "pull", "pulled", _MOVE_WITHIN, names=opt.names)
            interrupted = session.interrupts()
        self._whole(session, ranks, answers, interrupted, "pull")
        missing = {}
        for r, answer in answers.items():
            for name in answer.get("missing", ()):
                missing.setdefault(name, []).append(r)
        if missing:
            text = "; ".join(f"{name} is not defined on {ranks_text(on)}" for name, on in missing.items())
            raise MPICellError(text)
        values = {r: transfer.load(answers[r].payloads) for r in sorted(answers)}
        for name in opt.names:
            by_rank = {r: v[name] for r, v in values.items()}
            self.shell.user_ns[name] = by_rank if opt.ranks is not None else list(by_rank.values())

    def _do_push(self, opt):
        session = self._needed()
        self._check(opt.ranks, session)
        missing = [name for name in opt.names if name not in self.shell.user_ns]
        if missing:
            raise UsageError(f"%mpi push: {', '.join(missing)} is not defined in the notebook")
        try:
            payloads = transfer.dump({name: self.shell.user_ns[name] for name in opt.names})
        except Exception as error:
            raise MPICellError(f"can't be pushed: {type(error).__name__}: {error}") from None
        ranks = session.chosen(opt.ranks)
        with self._watched(session):
            answers = session.ask(ranks, "push", "pushed", _MOVE_WITHIN, payloads)
            interrupted = session.interrupts()
        self._whole(session, ranks, answers, interrupted, "push")

    def _whole(self, session, ranks, answers, interrupted, what):
        """Raise an error unless all ranks have answered without an error."""
        silent = [r.number for r in ranks if r.number not in answers]
        if silent:
            dead = session.dead()
            session.close(at_once=True)  # an answer may come in the middle of the next command
            if interrupted:
                raise CellInterrupted(f"{what} was interrupted: all ranks were ended")
            how = "; ".join(f"rank {r} {text}" for r, text in dead.items())
            raise MPICellError(
                f"{what}: no answer of {ranks_text(silent)}{f' ({how})' if how else ''}; all ranks were ended"
            )
        failed = {r: a.text for r, a in sorted(answers.items()) if a.get("text")}
        if failed:
            r, text = next(iter(failed.items()))
            more = f" (and on {ranks_text(list(failed)[1:])})" if len(failed) > 1 else ""
            raise MPICellError(f"{what} failed on rank {r}: {text}{more}")


def _split(line):
    try:
        return shlex.split(line.partition("#")[0] if "'" not in line and '"' not in line else line)
    except ValueError as error:
        raise UsageError(f"%mpi: {error} in {line!r}") from None


def _number(shell):
    """Return the number of the running cell: some IPythons increase it before they run the cell, others after."""
    inputs = shell.user_ns.get("In") or [""]
    return min(max(len(inputs) - 1, 1), shell.execution_count)


def _numbered(line, body):
    """Return the code of a cell, padded so that its lines have the numbers that the notebook shows."""
    first = next((text for text in body.splitlines() if text.strip()), "")
    if first.startswith("%%") or first[:1].isspace():
        return body  # a magic has to be in the first line, which also determines the indentation
    return f"#%%mpi {line}".rstrip() + "\n" + body


def _whole_cell(shell, body):
    """Return whether the running cell of the notebook is this %%mpi alone."""
    inputs = getattr(getattr(shell, "history_manager", None), "input_hist_raw", None) or [""]
    raw = inputs[-1].strip()
    return raw.startswith("%%mpi") and raw.partition("\n")[2].strip() == body.strip()


def _memory(pid):
    try:
        with open(f"/proc/{pid}/statm") as file:
            pages = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return "?"
    return f"{pages * os.sysconf('SC_PAGE_SIZE') / 2**20:.0f} MiB"


def load_ipython_extension(shell):
    """Give an IPython shell %%mpi and %mpi."""
    if getattr(shell, "gormapy_magics", None) is None:
        shell.gormapy_magics = MPIMagics(shell)
    shell.register_magics(shell.gormapy_magics)


def unload_ipython_extension(shell):
    """Remove %%mpi and %mpi and end the ranks."""
    magics = getattr(shell, "gormapy_magics", None)
    if magics is not None:
        magics.close()
        shell.gormapy_magics = None
        for kind in ("line", "cell"):
            shell.magics_manager.magics[kind].pop("mpi", None)
