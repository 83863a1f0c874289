"""reStructuredText of docstrings, which are plain text.

Docstrings are written for people who read them with help(): paragraphs, indented programs, names in backticks,
headings that are underlined or begin with "#". Sphinx would take an asterisk or a trailing underscore for markup, and
an indented program for a quotation.
"""

import ast
import re
from itertools import groupby

# Names in one or two backticks, and words in italics; what lies between them is text.
_LITERAL = re.compile(r"(``.+?``|`[^`\n]+`|(?<![\w*])\*\w(?:[^*\n]*\w)?\*(?![\w*]))")
_SIGNATURE = re.compile(r"^[\w.]+(\(.*\)( -> .+)?|: [\w.\[\], |'\"]*[\w\]'\"])$")
_ITEM = re.compile(r"^([-*•]|\d+[.)]) +\S")
_NAMED = re.compile(r"^[\w`*][^:]{0,40}[^: ]: \S")  # name: its text
_RULE = re.compile(r"^([-=~])\1{2,}$")
_ROLE = re.compile(r":[\w:]+:$")  # what stands before a role's text
_CONSOLE = re.compile(r"^(\$ |mpiexec |pip |python -|python3? \S+\.py)")


def converted(lines):
    """Return the lines of a docstring as reStructuredText."""
    blocks = [list(block) for full, block in groupby(_dedented(lines), key=lambda line: bool(line.strip())) if full]
    out, number = [], 0
    while number < len(blocks):
        block = blocks[number]
        if block[0].startswith(">>> "):
            out += _program(block)
        elif number and _indent(block) > 0 and not _ITEM.match(blocks[number - 1][0]):
            program = list(block)
            while number + 1 < len(blocks) and _indent(blocks[number + 1]) > 0:
                number += 1
                program += ["", *blocks[number]]
            out += _program(program)
        else:
            out += _text(block)
        out.append("")
        number += 1
    return out


def _dedented(lines):
    """Return the lines without the signature that the first of them may repeat."""
    lines = [line.expandtabs().rstrip() for line in lines]
    if len(lines) > 1 and _SIGNATURE.match(lines[0]) and not lines[1]:
        lines = lines[2:]
    return lines


def _indent(block):
    return min(len(line) - len(line.lstrip()) for line in block)


def _program(lines):
    margin = min(len(line) - len(line.lstrip()) for line in lines if line)
    lines = [line[margin:] for line in lines]
    kind = language("\n".join(lines))
    return [f".. code-block:: {kind}", "", *(f"   {line}" if line else "" for line in lines)]


def language(code):
    """Return the language of an indented block."""
    if _CONSOLE.match(code):
        return "console" if code.startswith("$ ") else "shell"
    if code.startswith(">>> "):
        return "pycon"
    try:
        ast.parse(re.sub(r"^( *)(async with|async for|await) ", r"\1\2 ", code))
    except SyntaxError:
        return "text"
    return "python"


def _text(block):
    block = _unbroken(block)
    first = block[0]
    if len(block) == 1 and first.startswith("# "):
        return [f".. rubric:: {_plain(first[2:])}"]
    if len(block) > 1 and _RULE.match(block[1]):
        rest = block[2:]
        return [f".. rubric:: {_plain(first)}", "", *(_text(rest) if rest else [])]
    items = _items(block)
    if len(items) > 1 or len(items[0]) > 1:
        if all(_ITEM.match(item[0]) for item in items):
            return [_plain(line) for item in items for line in item]
        if all(_NAMED.match(item[0]) for item in items):
            return [line for item in items for line in _definition(item)]
        if all(len(item) > 1 for item in items):
            return [_plain(line) for item in items for line in item]
    out = []
    for number, line in enumerate(block):
        if _ITEM.match(line) and number and not _ITEM.match(block[number - 1]):
            out.append("")  # a list begins
        out.append(_plain(line if _in_item(block, number) else line.lstrip()))
    if out[-1].endswith("::"):
        out[-1] = out[-1][:-1]
    return out


def _unbroken(block):
    """Join lines between which a name in backticks is broken."""
    lines = []
    for line in block:
        if lines and lines[-1].count("`") % 2:
            lines[-1] += " " + line.lstrip()
        else:
            lines.append(line)
    return lines


def _items(block):
    """Return the lines of a block, each with the indented ones that follow it."""
    items = []
    for line in block:
        if line.startswith(" ") and items:
            items[-1].append(line)
        else:
            items.append([line])
    return items


def _in_item(block, number):
    """Say whether an indented line continues an item of a list."""
    while number and block[number].startswith(" "):
        number -= 1
    return bool(_ITEM.match(block[number]))


def _definition(item):
    term, _, text = item[0].partition(": ")
    return [_plain(term), *(f"    {_plain(line.strip())}" for line in [text, *item[1:]])]


def _plain(line):
    """Escape what would be markup outside of backticks."""
    parts = _LITERAL.split(line)
    for i in range(0, len(parts), 2):
        role = _ROLE.search(parts[i]) if i + 1 < len(parts) else None
        item = re.match(r"^ *[*] +", parts[i]) if i == 0 else None
        kept = item[0] if item else ""
        text = re.sub(r"([\\*|`])", r"\\\1", parts[i][len(kept) :])
        text = re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", text)
        parts[i] = kept + text
        if i + 1 < len(parts) and not role and re.search(r"[\w]$", parts[i]):
            parts[i] += "\\ "
        if i and re.match(r"\w", parts[i]):
            parts[i] = "\\ " + parts[i]
    return "".join(parts)


def summary(doc):
    """Return the first sentence of a docstring as text."""
    lines = _dedented((doc or "").strip().splitlines())
    paragraph = []
    for line in lines:
        if not line.strip():
            break
        paragraph.append(line.strip())
    text = " ".join(paragraph)
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`])", text, maxsplit=1)[0].removesuffix("::").strip()
