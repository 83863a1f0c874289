"""The IPython shell in which a rank runs cells: it shows nothing itself, but sends all output to the kernel."""

import io
import linecache
import os
import sys
import tokenize
import types
import warnings

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Any, Type
from traitlets.config import Config

from .ansi import without_colors

_NOTHING = (tokenize.ENDMARKER, tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.DEDENT, tokenize.INDENT)
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class RankPublisher(DisplayPublisher):
    """Sends display(...) to the kernel."""

    def publish(self, data, metadata=None, *args, transient=None, update=False, **kwargs):
        """Send a MIME bundle to the kernel."""
        self.shell.outlet.display(data, metadata or {}, (transient or {}).get("display_id"), update)

    def clear_output(self, wait=False):
        """Clear the output of this rank in this cell."""
        self.shell.outlet.clear(wait)


class RankDisplayHook(DisplayHook):
    """Sends the value of a cell's last expression to the kernel."""

    def quiet(self):
        """Return whether the cell ends with a semicolon."""
        last = ""
        try:
            for token in tokenize.generate_tokens(io.StringIO(self.shell.cell_text).readline):
                if token.type not in _NOTHING:
                    last = token.string
        except (tokenize.TokenError, SyntaxError):  # such as magics
            pass
        return last == ";"

    def write_output_prompt(self):
        """Write no prompt."""

    def write_format_data(self, format_dict, md_dict=None):
        """Send the value's MIME bundle to the kernel."""
        self.shell.outlet.display(format_dict, md_dict or {}, None, False)

    def log_output(self, format_dict):
        """Keep no history."""

    def finish_displayhook(self):
        """Write nothing after the value."""
        self._is_active = False


class RankShell(InteractiveShell):
    """The shell of a rank; `outlet` takes its output."""

    display_pub_class = Type(RankPublisher)
    displayhook_class = Type(RankDisplayHook)
    outlet = Any()
    cell_text = ""

    def __init__(self, **kwargs):
        self.cells = {}  # number of the cell by the name of its code
        self.failure = None  # the error of the running cell, for the kernel
        super().__init__(**kwargs)
        cache = self.compile.cache

        def remember(*args, **kwargs):
            name = cache(*args, **kwargs)
            self.cells[name] = self.execution_count
            return name

        self.compile.cache = remember

    def init_io(self):
        """Keep the streams of the worker."""

    def init_virtualenv(self):
        """Keep the sys.path of the kernel."""

    def enable_gui(self, gui=None):
        """Run no event loop of a toolkit."""

    def ask_exit(self):
        """End the cell, as sys.exit() does."""
        raise SystemExit

    def showtraceback(self, exc_tuple=None, *args, **kwargs):
        """Show an exception, without the frames of gormapy in which it was raised."""
        try:
            kind, value, tb = self._get_exc_info(exc_tuple)
        except ValueError:
            return super().showtraceback(exc_tuple, *args, **kwargs)
        if issubclass(kind, SystemExit):
            self.failure = {"ename": "SystemExit", "evalue": str(value), "code": value.code, "text": ""}
            return None
        if issubclass(kind, KeyboardInterrupt):
            # After a press of the stop button no stack is needed, and to format one takes seconds on a busy machine.
            self.failure = {"ename": kind.__name__, "evalue": str(value), "text": kind.__name__}
            return None
        return super().showtraceback((kind, value, _shorten(tb)), *args, **kwargs)

    def _showtraceback(self, etype, evalue, stb):
        text = self.InteractiveTB.stb2text(stb)
        first, _, rest = text.partition("\n")
        if not without_colors(first).strip("-"):
            text = rest  # a line of dashes, which a narrow window would wrap
        self.failure = {"ename": etype.__name__, "evalue": str(evalue), "text": text}

    def show_usage_error(self, exc):
        """Show a wrong use of a magic."""
        self.failure = {"ename": "UsageError", "evalue": str(exc), "text": f"UsageError: {exc}"}

    def place(self, frame):
        """Return the cell and line of a frame, or of its nearest caller in a cell; None if there is none."""
        while frame is not None:
            name = frame.f_code.co_filename
            if name in self.cells:
                text = linecache.getline(name, frame.f_lineno).strip()
                return {"cell": self.cells[name], "line": frame.f_lineno, "text": text}
            frame = frame.f_back
        return None


def _shorten(tb):
    """Return a traceback without the frames of this package at its end: the user's line is what matters."""
    frames, here = [], tb
    while here is not None:
        frames.append(here)
        here = here.tb_next
    keep = len(frames)
    while keep > 1 and frames[keep - 1].tb_frame.f_code.co_filename.startswith(_PACKAGE):
        keep -= 1
    if keep == len(frames) or keep <= 1:
        return tb
    short = None
    for f in reversed(frames[:keep]):
        short = types.TracebackType(short, f.tb_frame, f.tb_lasti, f.tb_lineno)
    return short


def make(outlet):
    """Make the shell of this process."""
    config = Config()
    config.HistoryManager.enabled = False
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.autocall = 0
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    shell = RankShell.instance(config=config, user_module=module, outlet=outlet)
    try:
        shell.colors = "Linux"
    except Exception:
        shell.colors = "linux"  # as it is called since IPython 9
    shell.run_line_magic("colors", "linux")
    warnings.filterwarnings("ignore", message="To exit: use")  # the kernel reports sys.exit()
    shell.user_ns["exit"] = shell.user_ns["quit"] = sys.exit
    return shell
