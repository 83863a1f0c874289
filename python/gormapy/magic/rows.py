"""Lines that are rewritten: carriage returns, backspaces and movements of the cursor, as progress bars use them."""

import re

from .ansi import ESCAPE

_ROWS = 50  # how far up the cursor can go, as on a terminal
_COLUMNS = 1000  # how far right a movement can go
_STYLE = 200  # characters of codes that one character can have
_CONTROL = re.compile(r"[\r\b]|\x1b\[[0-9]{0,4}[A-DGK]")
_INCOMPLETE = re.compile(r"\x1b(?:\[[0-9;]{0,40})?\Z")
_TOKEN = re.compile(r"([\r\b\n])|\x1b\[([0-9]{0,4})([A-DGK])")


class Cursor:
    """Where the next character goes: `up` lines above the last one, in a column; None: at the line's end."""

    def __init__(self):
        self.up, self.column = 0, None
        self.style = ""  # codes of the colour, of a rewritten line
        self._cut = ""  # the first part of a code, of which the rest comes with the next text

    @property
    def at_end(self):
        """Whether text is appended."""
        return not self.up and self.column is None

    def add(self, text, new):
        """Return the text with the new text in it, where the cursor is, and move the cursor."""
        new = self._cut + new
        cut = _INCOMPLETE.search(new)
        self._cut = cut[0] if cut else ""
        new = new[: len(new) - len(self._cut)]
        if self.at_end:
            new = new.replace("\r\n", "\n")
            if not _CONTROL.search(new):
                style, self.style = self.style, ""
                return text + style + new
        start = len(text)
        for _ in range(_ROWS):
            start = text.rfind("\n", 0, start)
            if start < 0:
                break
        screen = _Screen(text[start + 1 :], self)
        at = 0
        new = _thin(new)
        for token in _TOKEN.finditer(new):
            screen.write(new[at : token.start()])
            screen.move(token[1] or token[3], token[2])
            at = token.end()
        screen.write(new[at:])
        return text[: start + 1] + screen.text(self)


class _Screen:
    """The last lines of a text, as rows of cells: (codes of the colour, character)."""

    def __init__(self, text, cursor):
        self.rows = text.split("\n")
        self.row = max(0, len(self.rows) - 1 - cursor.up)
        self.column, self.style = cursor.column, cursor.style
        self.cells = {}  # of the rows that were rewritten

    def _cells(self):
        if self.row not in self.cells:
            self.cells[self.row], style = _cells(self.rows[self.row])
            if self.column is None:
                self.style = style or self.style
        cells = self.cells[self.row]
        if self.column is None:
            self.column = len(cells)
        return cells

    def write(self, piece):
        """Write text without movements."""
        if not piece:
            return
        if self.column is None and self.row not in self.cells:
            self.rows[self.row] += self.style + piece
            self.style = ""
            return
        cells = self._cells()
        new, self.style = _cells(piece, self.style)
        cells.extend([("", " ")] * (self.column - len(cells)))
        cells[self.column : self.column + len(new)] = new
        self.column += len(new)

    def move(self, how, count):
        """Move the cursor, or erase a part of the line."""
        if how == "\n":
            self.row += 1
            if self.row == len(self.rows):
                self.rows.append("")
            self.column = 0 if self.rows[self.row] or self.row in self.cells else None
            return
        cells = self._cells()
        n = min(int(count or 1), _COLUMNS) or 1
        if how == "\r":
            self.column = 0
        elif how in "\bD":
            self.column = max(0, self.column - n)
        elif how == "C":
            self.column += n if self.column < _COLUMNS else 0
        elif how == "G":
            self.column = n - 1
        elif how == "K":
            if count == "2":
                cells.clear()
            elif count == "1":
                cells[: self.column + 1] = [("", " ")] * min(len(cells), self.column + 1)
            else:
                del cells[self.column :]
        else:
            self.row = max(0, self.row - n) if how == "A" else min(len(self.rows) - 1, self.row + n)
            self._cells()

    def text(self, cursor):
        """Return the text, and set the cursor."""
        for row, cells in self.cells.items():
            self.rows[row] = _text(cells)
        cursor.up = len(self.rows) - 1 - self.row
        cursor.column, cursor.style = self.column, self.style
        if not self.column and not self.rows[self.row]:
            cursor.column = None  # the start of an empty line is its end
        return "\n".join(self.rows)


def _thin(text):
    """Leave out what later text on the same line covers: loops may rewrite a line very often."""
    if text.count("\r") < 3 or "\b" in text or "\x1b" in text:
        return text
    lines = []
    for line in text.split("\n"):
        first, *parts = line.split("\r")
        kept, longest = [], 0
        for part in reversed(parts):
            if len(part) > longest or not kept:
                kept.append(part)
                longest = len(part)
        lines.append("\r".join([first, *reversed(kept)]))
    return "\n".join(lines)


def _cells(text, style=""):
    """Return the cells of a line, and the codes at its end."""
    cells, at = [], 0
    for match in ESCAPE.finditer(text):
        cells += [(style, c) for c in text[at : match.start()]]
        at = match.end()
        if match[2] == "m":
            style = "" if not match[1].strip("0") else (style if len(style) < _STYLE else "") + match[0]
    return cells + [(style, c) for c in text[at:]], style


def _text(cells):
    """Return the line of cells, without blanks at its end."""
    end = len(cells)
    while end and cells[end - 1] == ("", " "):
        end -= 1
    out, style = [], ""
    for wanted, character in cells[:end]:
        if wanted != style:
            out.append("\x1b[0m" * bool(style) + wanted)
            style = wanted
        out.append(character)
    return "".join(out) + "\x1b[0m" * bool(style)
