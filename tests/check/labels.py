"""Labels of the programs: comments, so that they are read without running anything.

    # from: RMARaceBench sync-003
    def put_then_store():  # check: origin-reuse n=2
        ...
            win.Put(mine, 1)  # 1: Put
            mine[0] = 5.0  # 2: store

A label is ``clean``, a class, or ``contested`` and a class; ``n=`` ranks; flags. Where two classes are right the better one
comes first: ``accumulate-mix|same-origin-order``. ``1`` and ``2`` are the two accesses of a race, in either order, or the
wrong call of a misuse and the place that it contradicts. Lines with equal marks are equally right, and ``Send|load`` leaves
the name open. One line may have both marks: ``# 1: Put, 2: Put``.
"""

import ast
import io
import re
import tokenize
from pathlib import Path
from typing import NamedTuple

PROGRAMS = Path(__file__).parent / "programs"

RACES = (
    *("origin-reuse", "result-early", "accumulate-mix", "same-origin-order", "flush-missing", "target-conflict"),
    *("winsync-missing", "shared-access", "local-access"),
)
MISUSES = (
    *("epoch-missing", "epoch-open", "epoch-nested", "epoch-unopened", "wrong-assert", "bad-argument"),
    *("collective-mismatch", "request-lost", "memory-gone"),
)
CLASSES = RACES + MISUSES

FLAGS = {
    "hangs": "waits for ever, or until another rank has ended",
    "raises": "gets an error of MPI",
    "caught": "goes on after the error, and ends well",
    "crashes": "touches memory that may be gone",
    "foreign": "has memory that is neither NumPy's nor MPI's",
    "near": "has a shared window over all ranks",
    "leaves": "ends inside an epoch, or with a window",
}

_LABEL = re.compile(r"# check: (.+)")
_MARK = re.compile(r"\b([12]): ([A-Za-z_|]+)")
_FROM = re.compile(r"# from: (.+)")


class Mark(NamedTuple):
    """A line of an access: 1 or 2, the calls that may be named, the line."""

    which: int
    calls: tuple
    line: int


class Label(NamedTuple):
    """What is known of a program."""

    file: Path
    name: str
    line: int
    verdict: str  # clean, bad, contested
    classes: tuple  # that are right, the best first
    n: int
    flags: frozenset
    marks: tuple
    origin: str | None  # the pattern of a suite that it translates

    def __str__(self):
        return f"{self.file.stem}:{self.name}"

    def lines(self, which):
        """Return the lines of the accesses 1 or 2."""
        return [mark.line for mark in self.marks if mark.which == which]


def modules():
    """Return the files of the programs."""
    return sorted(PROGRAMS.glob("*.py"))


def every():
    """Return the labels of all programs."""
    return [label for file in modules() for label in of(file)]


def of(file):
    """Return the labels of a module's functions; names that begin with an underscore are no programs."""
    text = file.read_text(encoding="utf-8")
    comments = {
        token.start[0]: token.string
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    }
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return [_label(file, node, comments) for node in functions if not node.name.startswith("_")]


def _label(file, node, comments):
    found = _LABEL.fullmatch(comments.get(node.lineno, ""))
    if not found:
        raise ValueError(f"{file.name}:{node.lineno}: {node.name} has no label '# check: ...'")
    verdict, classes, n, flags = _parsed(found[1].split(), f"{file.name}:{node.lineno}")
    marks = tuple(
        Mark(int(which), tuple(calls.split("|")), line)
        for line in range(node.lineno + 1, node.end_lineno + 1)
        if re.match(r"# [12]: ", comments.get(line, ""))
        for which, calls in _MARK.findall(comments[line])
    )
    origin = _FROM.fullmatch(comments.get(node.lineno - 1, ""))
    return Label(file, node.name, node.lineno, verdict, classes, n, flags, marks, origin and origin[1])


def _parsed(words, where):
    verdict = words.pop(0) if words[0] in ("clean", "contested") else "bad"
    classes = () if verdict == "clean" else tuple(words.pop(0).split("|"))
    n = [word.removeprefix("n=") for word in words if word.startswith("n=")]
    flags = frozenset(word for word in words if not word.startswith("n="))
    if not set(classes) <= set(CLASSES):
        raise ValueError(f"{where}: no such class: {', '.join(sorted(set(classes) - set(CLASSES)))}")
    if len(n) != 1 or not n[0].isdigit():
        raise ValueError(f"{where}: a label has the number of ranks once, as in n=2")
    if not flags <= FLAGS.keys():
        raise ValueError(f"{where}: no such flag: {', '.join(sorted(flags - FLAGS.keys()))}")
    return verdict, classes, int(n[0]), flags
