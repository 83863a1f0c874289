"""A lesson's source: Markdown in which fenced blocks are cells."""

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

from . import buffers

# What the line that stands for the first cell looks like; Markdown viewers hide it.
FIRST_CELL = "<!-- first cell -->"

# Below it: no cell of the lesson runs on another MPI.
GORMAPY_ONLY = "<!-- gormapy only -->"

# Fences of these kinds are cells; others (console, text, py, ...) stay in the Markdown around them.
KINDS = ("python", "error", "exercise", "hint", "solution", "output", "findings")

# How long a student needs for the lesson, with its exercises; below the first cell.
MINUTES = re.compile(r"^<!-- (?P<minutes>\d+) minutes -->$")

# The word behind the kind of a fence that says so of one cell, or of the lines of one output.
ONLY = "gormapy"

FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<info>[^`]*)$")
HEADING = re.compile(r"^#{1,3} ")
TITLE = re.compile(r"^# (?P<number>\d+) · (?P<name>.+)$")


class SourceError(Exception):
    """A source that breaks the format, with the file and line."""


@dataclass
class Cell:
    """One cell of a lesson.

    `kind` is "text", "first" or one of KINDS but "output" and "findings". `expected` has, for a cell that is meant to
    fail, the text that its failure has to show. `lines` is what the output of a cell has to have, and `portable` the
    part of it that holds on every MPI. `findings` are the classes of what is found in it on ranks that are checked.
    `only` says that the cell runs with gormapy only.
    """

    kind: str
    text: str
    line: int
    expected: str = ""
    only: bool = False
    lines: list = field(default_factory=list)
    portable: list = field(default_factory=list)
    findings: list = field(default_factory=list)


@dataclass
class Lesson:
    """A lesson as its source has it."""

    path: Path
    title: str
    summary: str
    minutes: int
    cells: list

    @property
    def name(self):
        """The name of its files without suffix: "01-messages-and-deadlocks"."""
        return self.path.stem

    @property
    def exercises(self):
        """How many exercises it has."""
        return sum(cell.kind == "exercise" for cell in self.cells)

    @property
    def size(self):
        """How many cells it has, without exercises."""
        inside = sum(cell.kind in ("hint", "solution") for cell in self.cells)
        return len(self.cells) - inside - 2 * self.exercises  # the task, and the cell below it


def read(path):
    """Read a lesson's source, or raise SourceError."""
    path = Path(path)
    cells = list(_cells(path))
    lesson = Lesson(path, *_title(path, cells), _minutes(path), cells)
    _check_order(lesson)
    _check_code(lesson)
    _check_solutions_stay_inside(lesson)
    return lesson


def _cells(path):
    """Yield the cells of a source."""
    text, start = [], 1  # the Markdown cell under way and its first line
    ticks, info, body, opened = "", "", [], 0  # the fence under way
    before = None  # the cell before, which an output block belongs to
    everywhere = False  # all cells run with gormapy only

    def finish():
        nonlocal text
        kept, text = "\n".join(text).strip(), []
        return [Cell("text", kept, start)] if kept else []

    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if ticks:
            if fence and not fence["info"].strip() and len(fence["ticks"]) >= len(ticks):
                kind, _, rest = info.partition(" ")
                if kind == "findings":
                    if before is None or rest.strip():
                        raise SourceError(f"{path}:{opened}: '```findings' stands alone, below a cell with code")
                    before.findings += [line.partition(":")[0] for line in body if line.strip()]
                elif kind == "output":
                    if before is None:
                        raise SourceError(f"{path}:{opened}: an output block belongs below a cell with code")
                    if rest.strip() not in ("", ONLY):
                        raise SourceError(f"{path}:{opened}: '```output' takes no word but '{ONLY}'")
                    promised = [expected for expected in body if expected.strip()]
                    before.lines += promised
                    before.portable += [] if rest.strip() == ONLY else promised
                elif kind in KINDS:
                    only = kind != "error" and rest.strip() == ONLY
                    expected = "" if only else rest.strip()
                    before = Cell(kind, "\n".join(body).strip("\n"), opened, expected, only or everywhere)
                    yield before
                else:
                    start = start if text else opened
                    text += ["`" * len(ticks) + info, *body, line]
                ticks = ""
            else:
                body.append(line)
        elif fence:
            ticks, info, body, opened = fence["ticks"], fence["info"].strip(), [], number
            if info.partition(" ")[0] in KINDS:
                yield from finish()
        elif line == FIRST_CELL:
            yield from finish()
            before = Cell("first", "", number)
            yield before
        elif line == GORMAPY_ONLY:
            everywhere = True
        elif MINUTES.match(line):
            continue
        elif line == "---" or HEADING.match(line):
            yield from finish()
            text, start = ([] if line == "---" else [line]), number
        elif text or line.strip():
            start = start if text else number
            text.append(line)
    if ticks:
        raise SourceError(f"{path}:{opened}: the block that begins here has no end")
    yield from finish()


def _title(path, cells):
    """Return the title of a lesson and the sentence that says what it is about."""
    first = cells[0].text.split("\n\n") if cells else [""]
    title = TITLE.match(first[0])
    if not title or int(title["number"]) != int(path.name[:2]):
        raise SourceError(f"{path}:1: a lesson begins with its number and name: '# {int(path.name[:2])} · Name'")
    if len(first) < 2:
        raise SourceError(f"{path}:1: below the title goes a paragraph that says what the lesson is about")
    return first[0][2:], re.split(r"(?<=[.!?]) ", " ".join(first[1].split()))[0]


def _minutes(path):
    """Return how long a lesson takes, 0 if it does not say."""
    found = map(MINUTES.match, path.read_text(encoding="utf-8").splitlines())
    return sum(int(match["minutes"]) for match in found if match)


def _check_order(lesson):
    """Raise SourceError unless the cells are in an order that makes sense."""
    if [cell.kind for cell in lesson.cells].count("first") != 1:
        raise SourceError(f"{lesson.path}: the line '{FIRST_CELL}' has to be there once")
    exercise = None  # the exercise that has no solution yet
    inside = False  # below an exercise, where hints and solutions go
    for above, cell in zip([None, *lesson.cells], lesson.cells):
        where = f"{lesson.path}:{cell.line}"
        if cell.kind == "exercise":
            if above is None or above.kind != "text":
                raise SourceError(f"{where}: above an exercise goes text that says what to do")
            if exercise:
                raise SourceError(f"{lesson.path}:{exercise.line}: this exercise has no solution")
            exercise, inside = cell, True
        elif cell.kind in ("hint", "solution"):
            if not inside:
                raise SourceError(f"{where}: a {cell.kind} goes below an exercise")
            exercise = None if cell.kind == "solution" else exercise
        elif cell.kind != "text" or HEADING.match(cell.text):
            inside = False
        if (cell.kind == "error") != bool(cell.expected):
            rule = (
                "error TEXT' names what the failure shows"
                if cell.kind == "error"
                else f"{cell.kind}' takes no word but '{ONLY}'"
            )
            raise SourceError(f"{where}: '```{rule}")
    if exercise:
        raise SourceError(f"{lesson.path}:{exercise.line}: this exercise has no solution")


def python_of(text):
    """Return the Python of a cell: without magics and shell commands."""
    kept = []
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        kept.append(f"{indent}pass" if line.lstrip().startswith(("%", "!")) else line)
    return "\n".join(kept)


def _tree(lesson, cell):
    """Return the syntax tree of a cell; None where another language is in it."""
    if re.match(r"%%(?!mpi\b|time\b)", cell.text):
        return None
    try:
        return ast.parse(python_of(cell.text))
    except SyntaxError as wrong:
        raise SourceError(f"{lesson.path}:{cell.line + (wrong.lineno or 0)}: {wrong.msg}") from None


def _check_code(lesson):
    """Raise SourceError where a cell is no Python, or gives a call memory that nobody keeps."""
    for cell in lesson.cells:
        if cell.kind in ("text", "first", "hint"):
            continue
        tree = _tree(lesson, cell)
        if tree is None or cell.kind == "error":
            continue
        for line, call in buffers.temporary(tree):
            raise SourceError(
                f"{lesson.path}:{cell.line + line}: {call} is given a buffer that nobody keeps: with other MPIs its "
                "memory may be gone before it is used. Name the array, and keep it until the call that completes"
            )


def _check_solutions_stay_inside(lesson):
    """Raise SourceError where a later cell needs what only a solution defines: students have no solutions."""
    defined, only_solved = set(), {}
    for cell in lesson.cells:
        tree = _tree(lesson, cell) if cell.kind not in ("text", "first", "hint") else None
        if tree is None:
            continue
        used, stored = _names(tree)
        if cell.kind == "solution":
            for name in stored - defined:
                only_solved.setdefault(name, cell.line)
            continue
        missing = sorted(used & (set(only_solved) - defined - stored))
        if missing:
            raise SourceError(
                f"{lesson.path}:{cell.line}: '{missing[0]}' comes from the solution of line {only_solved[missing[0]]}, "
                "which students don't have"
            )
        defined |= stored


def _names(tree):
    """Return the names that a tree uses and those that it defines."""
    used, stored = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else stored).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            stored.add(node.name)
        elif isinstance(node, ast.arg):
            stored.add(node.arg)
        elif isinstance(node, ast.alias):
            stored.add((node.asname or node.name).partition(".")[0])
    return used, stored
