"""Findings as text; records of findings are those of `gormapy.check.findings`."""

import re

_LONGEST = 300  # characters of a line of the program
_CELL = re.compile(r"<ipython-input-(\d+)-")  # a file's name, of a cell on ranks


def where(access):
    """Return the place of an access: in a cell, or in a file."""
    cell = _CELL.match(access["file"])
    if cell:
        return f"In [{cell[1]}], line {access['line']}"
    return f"{access['file']}:{access['line']}"


def line(access):
    """Return the line of the program that makes an access."""
    text = access["text"].strip()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} […]"


def who(access):
    """Return the rank and the call of an access, and the variable."""
    rank = f"rank {access['rank']}: " if access["rank"] >= 0 else ""
    return f"{rank}{access['call']}" + (f" of {access['variable']}" if access["variable"] else "")


def about(record):
    """Return which bytes a finding is about, as a sentence, or ""."""
    window, found = record["window"], record["bytes"]
    if not window:
        return ""
    name = f"window {window['name']}" if window["name"] else "a window"
    text = f"{name} (Win.{window['flavor']})"
    if found:
        of = "" if found.get("of") else " of the buffer"
        text += f", bytes {found['start']} to {found['stop']}{of} of rank {found['rank']}"
    if record["epoch"]:
        text += f", in the epoch of {record['epoch']['kind']}"
    return text


def title(record):
    """Return the class of a finding."""
    return record["class"] + (" (contested)" if record.get("contested") else "")


def text(record):
    """Return a finding as text."""
    lines = [f"{title(record)}: {record['message']}"]
    for access in record["accesses"]:
        lines += [f"    {who(access)}, {where(access)}", f"        {line(access)}"]
    lines += [f"    {about(record)}"] if record["window"] else []
    lines.append(f"    {record['fix']} (MPI 4.1, section {record['section']})")
    return "\n".join(lines)
