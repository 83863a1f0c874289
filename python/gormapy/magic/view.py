"""The output of a cell in the front end: one display that is updated, or lines on a terminal."""

import sys
import time
import uuid
from html import escape

from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.display import clear_output, publish_display_data

from gormapy.check import reports

from .._resident.errors import ranges
from . import findings
from .ansi import without_colors
from .transcript import Text, Transcript

# Jupyter's server drops output at more than 1 MB/s; every update sends all of it again.
_BYTES_PER_SECOND = 250_000
_UPDATE_EVERY = 0.15
# Most cells end sooner: they are shown by one message, which front ends without updates understand too.
_FIRST_AFTER = 0.25
# With more output than this an update each second is too much.
_WITH_PROGRESS = 100_000
_UPDATES_SINCE = (5, 1)  # the version of Jupyter's messages that have update_display_data
_SMALL = "font-size:12px;opacity:.75;margin:2px 0"
_REST = 1 << 20  # characters of lines that are not complete


class NotebookView:
    """Output in a notebook: a display that groups all output by rank, updated when output arrives.

    live: without it output is shown once, by `finish`, for front ends that can't update it.
    clears: nothing but this view shows anything in the cell, so it may clear the cell's output and show its own again.
    """

    def __init__(self, limit, clears=False, live=True):
        self.transcript = Transcript(limit)
        self._id = None
        self._due = None  # time of the next update
        self._shown = ""
        self._clears, self._live = clears, live
        self._line = ""  # about the progress
        self._alone = False  # the display has never had anything but such lines
        self._said = []  # what was shown beside the display

    def refresh(self, final=False):
        """Show new output; final: all of it, at once, and no progress any more."""
        if self._live:
            self._refresh(final)

    def finish(self):
        """Show the output when there will be no more."""
        self._refresh(final=True)

    def _refresh(self, final):
        t = self.transcript
        now = time.monotonic()
        if final:
            self._line = ""
        if not t and not self._line and (self._alone or self._id is None):
            self._retract()
            return
        if self._due is None:
            self._due = now + _FIRST_AFTER
        if not (final or (t.changed and now >= self._due)):
            return
        t.changed = False
        html, text = t.html(merge=final), t.text(merge=final)
        if self._line:
            html += f'<div class="gormapy-progress" style="{_SMALL}">{escape(self._line)}</div>'
            text = f"{text}\n{self._line}" if text else self._line
        if html == self._shown:
            return
        self._alone = not t and (self._alone or self._id is None)
        self._shown = html
        update, self._id = self._id is not None, self._id or f"gormapy-{uuid.uuid4().hex}"
        publish_display_data({"text/html": html, "text/plain": text}, transient={"display_id": self._id}, update=update)
        self._due = now + max(_UPDATE_EVERY, (len(html) + len(text)) / _BYTES_PER_SECOND)

    def progress(self, line):
        """Show a line about the running cell, below its output, until there is a remark or the last refresh."""
        # Without output the line can't be taken away again unless all that the cell shows is this view's.
        if self._live and (self.transcript or self._clears) and len(self._shown) < _WITH_PROGRESS:
            self._line = line
            self.transcript.changed = True

    def _retract(self):
        """Remove a display that has nothing but the progress."""
        self._line = ""
        if self._alone:
            clear_output()
            self._id, self._due, self._shown, self._alone = None, None, "", False
            for data in self._said:
                publish_display_data(data)

    def _beside(self, data):
        """Show something else than the output of the ranks."""
        if not self.transcript:
            self._retract()
        self._said.append(data)
        publish_display_data(data)

    def say(self, text):
        """Show a remark of gormapy."""
        html = f'<div class="gormapy-note" style="font-style:italic;opacity:.85;margin:3px 0">{escape(text)}</div>'
        self._beside({"text/html": html, "text/plain": text})

    def finding(self, record):
        """Show a finding of mpiexec --check."""
        self._beside({"text/html": findings.html(record), "text/plain": reports.text(record)})

    def report(self, report, title, kind):
        """Show which rank waits for which, as a picture and a table."""
        self._beside({"image/svg+xml": report.svg(title.partition(":")[0]), "text/plain": f"<{title}>"})
        html = f'<div class="gormapy-{kind}">{report.html(title)}</div>'
        self._beside({"text/html": html, "text/plain": f"{title}\n{report.text()}"})


class TerminalView:
    """Output on a terminal: lines, each with its rank, in the order of arrival."""

    def __init__(self, limit):
        self.transcript = _Lines(limit)

    def refresh(self, final=False):
        """Show incomplete lines, too, if this is the last call."""
        if self.transcript.before is not None:
            self.transcript.before.finish()
        if final:
            self.transcript.finish()

    def finish(self):
        """Show what is left."""
        self.refresh(final=True)

    def progress(self, line):
        """Show nothing: lines stay on a terminal."""

    def say(self, text):
        """Show a remark of gormapy."""
        print(text, file=sys.stderr, flush=True)

    def finding(self, record):
        """Show a finding of mpiexec --check."""
        print(reports.text(record), flush=True)

    def report(self, report, title, kind):
        """Show which rank waits for which."""
        print(f"{title}\n{report.text()}", flush=True)


class _Lines(Transcript):
    """A Transcript that prints."""

    def __init__(self, limit, mark=""):
        super().__init__(limit)
        self.mark = mark  # follows the number of the rank
        self._rest = {}
        self._written = {}

    def earlier(self, since):
        """Return one that says in each line after which cell it came."""
        self.before = _Lines(self.limit, f", after {since}")
        return self.before

    def write(self, rank, stream, text):
        """Print the lines of the text; those that are rewritten, when they are complete."""
        rest = self._rest.pop((rank, stream), None) or Text(stream, _REST)
        rest.add(text)
        if rest.open:
            self._rest[rank, stream] = rest
            return
        *lines, last = rest.text().split("\n")
        if last:
            self._rest[rank, stream] = Text(stream, _REST)
            self._rest[rank, stream].add(last[-4000:])
        for line in lines:
            self._print(rank, stream, line)

    def _print(self, rank, stream, line):
        written = self._written[rank] = self._written.get(rank, 0) + len(line) + 1
        if written <= self.limit:
            print(f"[{rank}{self.mark}] {line}", file=sys.stderr if stream == "stderr" else sys.stdout, flush=True)
        elif written - len(line) - 1 <= self.limit:
            print(
                f"[{rank}{self.mark}] [... more than {self.limit:,} characters: the rest is not shown ...]", flush=True
            )

    def display(self, rank, data, display_id, update):
        """Print the plain form."""
        for line in str(data.get("text/plain", f"<{', '.join(data)}>")).split("\n"):
            self._print(rank, "stdout", line)

    def clear(self, rank, wait):
        """Do nothing: a terminal keeps its lines."""

    def finish(self):
        """Print incomplete lines, and failures."""
        for (rank, stream), rest in list(self._rest.items()):
            for line in rest.text().rstrip("\n").split("\n"):
                self._print(rank, stream, line)
        self._rest.clear()
        for ranks, text in self._failures():
            for line in without_colors(text).rstrip("\n").split("\n"):
                print(f"[{ranges(ranks)}] {line}", file=sys.stderr, flush=True)
        self.errors.clear()


def _updates(shell):
    """Return whether the front end may know updates of displays; no front end says so."""
    if isinstance(shell.display_pub, CapturingDisplayPublisher):  # %%capture keeps each update as one more output
        return False
    try:
        version = shell.kernel.get_parent()["header"]["version"]
        return tuple(int(part) for part in version.split(".")[:2]) >= _UPDATES_SINCE
    except (AttributeError, KeyError, TypeError, ValueError):
        return True


def view_for(shell, limit, clears=False, live="auto"):
    """Return the view that suits the front end of an IPython shell."""
    if getattr(shell, "kernel", None) is None:
        return TerminalView(limit)
    return NotebookView(limit, clears, _updates(shell) if live == "auto" else live)
