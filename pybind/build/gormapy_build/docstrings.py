"""The docstrings of gormapy.MPI, made of the sentence in the source and of the paragraphs in docs/docstrings.

A call's sentence stands in its definition. What a caller has to know beyond it stands in a text file, below a header
that lists the names it is true of:

    [Win: Put Rput Accumulate -Get*]
    The origin buffer ...

    Errors: ERR_RANK for a rank that is not in the window.

    >>> win.Put(data, 0)

    MPI 4.1, section 12.3.1.

`[: Init]` is for functions of the module, `[class: Win]` for classes, `[Comm: Create_group; File: Open]` for several.
`*` stands for any letters, `-` excludes. An object gets the paragraphs of all headers that name it, in the order of the
files, but errors after the rest, then the examples, and the sections of the standard last, or that MPI has no such
call. Each of the three is joined to one paragraph.

constants.txt has a line for each constant, NAME: sentence, below headers of the sections of the standard.
"""

from __future__ import annotations

import fnmatch
import re
import textwrap
from pathlib import Path
from typing import NamedTuple, NoReturn

from . import project

FOLDER = project.ROOT / "docs" / "docstrings"
CONSTANTS = FOLDER / "constants.txt"
_WIDTH = 88
_ERRORS, _EXAMPLE, _SECTION, _NO_SECTION = "Errors: ", ">>> ", "MPI 4.1, section ", "MPI has no such "


class _Block(NamedTuple):
    place: str  # file and line
    patterns: dict[str, list[str]]  # by class, "" for functions, "class"
    paragraphs: list[str]


def fail(text: str) -> NoReturn:
    raise SystemExit(f"the docstrings of gormapy.MPI can't be generated: {text}")


class Texts:
    """The paragraphs of the text files."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._blocks = [
            block for path in sorted(folder.glob("*.txt")) if path != CONSTANTS for block in _blocks_of(path)
        ]
        self._used: set[tuple[int, str, str]] = set()  # block, class, and the pattern that has named something

    def of(self, owner: str, name: str, sentence: str) -> str:
        """Returns the docstring of an object with this sentence, without its signature."""
        if "\n" in sentence.strip():
            fail(f"{owner}.{name}: the docstring in the source is one line; the rest belongs into {FOLDER.name}")
        paragraphs = [paragraph for block in self._named(owner, name) for paragraph in block.paragraphs]
        return "\n\n".join([*textwrap.wrap(sentence.strip(), _WIDTH * 2), *_arranged(paragraphs)])

    def _named(self, owner: str, name: str) -> list[_Block]:
        found = []
        for number, block in enumerate(self._blocks):
            patterns = block.patterns.get(owner, [])
            if any(pattern[0] == "-" and fnmatch.fnmatchcase(name, pattern[1:]) for pattern in patterns):
                continue
            matching = [pattern for pattern in patterns if fnmatch.fnmatchcase(name, pattern)]
            self._used.update((number, owner, pattern) for pattern in matching)
            if matching:
                found.append(block)
        return found

    def check_names(self) -> None:
        """Ends with the place of a name that no object has."""
        for number, block in enumerate(self._blocks):
            for owner, patterns in block.patterns.items():
                for pattern in patterns:
                    if pattern[0] != "-" and (number, owner, pattern) not in self._used:
                        fail(f"{block.place}: gormapy.MPI has no documented {owner}.{pattern}")


def _blocks_of(path: Path) -> list[_Block]:
    blocks: list[_Block] = []
    lines: list[str] = []
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), "[end:]"], 1):
        header = re.fullmatch(r"\[(\w*:.*)\]", line)
        if header is None:
            lines.append(line)
            continue
        text = "\n".join(lines).strip("\n")
        if blocks:
            blocks[-1].paragraphs.extend(re.split(r"\n\n+", text))
        elif text.strip():
            fail(f"{path.name}: there is text before the first header")
        lines = []
        owners = [part.split(":") for part in header[1].split(";")]
        patterns = {owner.strip(): names.split() for owner, names in owners}
        blocks.append(_Block(f"{path.name}, line {number}", patterns, []))
    return blocks[:-1]


def _arranged(paragraphs: list[str]) -> list[str]:
    """Returns paragraphs in the order of a docstring, each wrapped."""
    plain, errors, examples, sections, others = [], [], [], [], []
    for paragraph in dict.fromkeys(paragraphs):
        if paragraph.startswith(_ERRORS):
            errors.extend(re.sub(r"\s+", " ", paragraph[len(_ERRORS) :]).rstrip(".").split("; "))
        elif paragraph.startswith(_EXAMPLE):
            examples.append(paragraph)
        elif paragraph.startswith(_SECTION):
            sections.append(paragraph[len(_SECTION) :].rstrip("."))
        elif paragraph.startswith(_NO_SECTION):
            others.append(_wrapped(paragraph))
        elif paragraph.startswith("MPI 4.1, "):
            fail(f"{paragraph!r}: expecting one section, as '{_SECTION}12.3.1.'")
        else:
            plain.append(_wrapped(paragraph))
    if errors:
        plain.append(_wrapped(f"{_ERRORS}{'; '.join(dict.fromkeys(errors))}."))
    plain += ["\n".join(examples)] if examples else []
    if sections:
        numbers = list(dict.fromkeys(sections))
        listed = " and ".join([", ".join(numbers[:-1]), numbers[-1]]) if numbers[1:] else numbers[0]
        plain.append(f"MPI 4.1, section{'s' if numbers[1:] else ''} {listed}.")
    return plain + others


def _wrapped(paragraph: str) -> str:
    """Breaks a paragraph into lines; the items of a list begin new ones."""
    items = re.split(r"\n(?=- )", paragraph)
    filled = []
    for item in items:
        text = re.sub(r"\s+", " ", item)
        indent = "  " if text.startswith("- ") else ""
        filled.append(
            textwrap.fill(text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        )
    return "\n".join(filled)


def constants(path: Path = CONSTANTS) -> dict[str, str]:
    """Returns the docstrings of constants by name."""
    found: dict[str, str] = {}
    section = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif line:
            name, colon, sentence = line.partition(": ")
            if not colon or name in found:
                fail(f"{path.name}, line {number}: expecting a new NAME: sentence")
            found[name] = "\n\n".join(filter(None, [_wrapped(sentence), section]))
    return found
