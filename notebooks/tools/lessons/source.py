"""A lesson's source: Markdown in which fenced blocks are cells."""

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

# What the line that stands for the first cell looks like; Markdown viewers hide it.
FIRST_CELL = "<!-- first cell -->"

# Fences of these kinds are cells; others (console, text, py, ...) stay in the Markdown around them.
KINDS = ("python", "error", "exercise", "hint", "solution", "output")

FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<info>[^`]*)$")
HEADING = re.compile(r"^#{1,3} ")
TITLE = re.compile(r"^# (?P<number>\d+) · (?P<name>.+)$")


class SourceError(Exception):
    """A source that breaks the format, with the file and line."""


@dataclass
class Cell:
    """One cell of a lesson.

    `kind` is "text", "first" or one of KINDS but "output". `expected` has, for a cell that is meant to fail, the
    text that its failure has to show, and `lines` what the output of a cell has to have.
    """

    kind: str
    text: str
    line: int
    expected: str = ""
    lines: list = field(default_factory=list)


@dataclass
class Lesson:
    """A lesson as its source has it."""

    path: Path
    title: str
    summary: str
    cells: list

    @property
    def name(self):
        """The name of its files without suffix: "01-messages-and-deadlocks"."""
        return self.path.stem


def read(path):
    """Read a lesson's source, or raise SourceError."""
    path = Path(path)
    cells = list(_cells(path))
    lesson = Lesson(path, *_title(path, cells), cells)
    _check_order(lesson)
    _check_code(lesson)
    _check_solutions_stay_inside(lesson)
    return lesson


def _cells(path):
    """Yield the cells of a source."""
    text, start = [], 1  # the Markdown cell under way and its first line
    ticks, info, body, opened = "", "", [], 0  # the fence under way
    before = None  # the cell before, which an output block belongs to

    def finish():
        nonlocal text
        kept, text = "\n".join(text).strip(), []
        return [Cell("text", kept, start)] if kept else []

    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if ticks:
            if fence and not fence["info"].strip() and len(fence["ticks"]) >= len(ticks):
                kind, _, rest = info.partition(" ")
                if kind == "output":
                    if before is None:
                        raise SourceError(f"{path}:{opened}: an output block belongs below a cell with code")
                    before.lines += [expected for expected in body if expected.strip()]
                elif kind in KINDS:
                    before = Cell(kind, "\n".join(body).strip("\n"), opened, expected=rest.strip())
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
                "error TEXT' names what the failure shows" if cell.kind == "error" else f"{cell.kind}' takes no words"
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
    """Raise SourceError where a cell is no Python."""
    for cell in lesson.cells:
        if cell.kind not in ("text", "first", "hint"):
            _tree(lesson, cell)


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
