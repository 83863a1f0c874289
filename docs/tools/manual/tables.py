"""Pages of what the code has in tables: settings, error classes, hints, the launcher's options."""

import ast
import json
import re
import subprocess
from html import escape

from . import ROOT


def _sentence(text):
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "…")) else ".")


# Settings

_SETTING = re.compile(r"^\| (`GORMAPY_.*?) \|(.*?)\| (.*) \|$", re.MULTILINE)


def settings(text):
    """Return docs/settings.md with what the core says of each setting in place of the table.

    The page explains them; names, defaults, choices and readers are the core's.
    """
    from gormapy._ext import core

    table = {row["name"]: row for row in json.loads(core.Settings())["table"]}
    rows = _SETTING.findall(text)
    shown = [name for names, *_ in rows for name in re.findall(r"`(\w+)`", names)]
    if sorted(shown) != sorted(table):
        raise SystemExit(f"docs/settings.md does not have the core's settings: {set(shown) ^ set(table)}")
    out = []
    for cell, _, meaning in rows:
        names = re.findall(r"`(\w+)`", cell)
        for name in names[:-1]:
            out += [*_setting(table[name]), "", "See below.", "````", ""]
        out += [*_setting(table[names[-1]]), "", f"{_sentence(meaning)}", "````", ""]
    before = text.index("| variable |")
    last = list(_SETTING.finditer(text))[-1].end()
    return text[:before] + "\n".join(out) + text[last:]


def _setting(row):
    default = row["default"]
    facts = [f"Default: `{default}`" if default else "No default"]
    if row["choices"]:
        facts.append("Values: " + " ".join(f"`{choice}`" for choice in row["choices"]))
    facts.append(f"Read by: {row['reader']}")
    return [f"````{{envvar}} {row['name']}", "", " · ".join(facts)]


# Error classes


def errors(mpi):
    """Return a page of MPI's error classes with the text that belongs to each."""
    names = [name for name in dir(mpi) if name.startswith("ERR_") and isinstance(getattr(mpi, name), int)]
    names.remove("ERR_LASTCODE")
    rows = sorted((getattr(mpi, name), name) for name in names)
    lines = [
        "# Error classes",
        "",
        "The class of an `MPI.Exception`, which `Get_error_class` returns, and the text of `Get_error_string`. An",
        "error's own text, which `str(error)` shows, begins with the class and says what was asked and what there is:",
        "see [messages](../errors.md#messages). `MPI.ERR_LASTCODE` is the largest number that an error class has.",
        "",
        "| name | value | text |",
        "|---|---|---|",
    ]
    lines += [f"| `MPI.{name}` | {value} | {mpi.Get_error_string(value)} |" for value, name in rows]
    return "\n".join([*lines, ""])


# Hints


def _choices(mpi, read, key):
    """Return what a hint may be, as the error of a wrong value says it."""
    try:
        read(key, "\N{BULLET}")
    except mpi.Exception as error:
        return str(error).partition("must be ")[2]
    raise SystemExit(f"the hint {key} takes any value: the reference has nothing to say of it")


def hints(mpi):
    """Return a page of the hints of windows and files."""
    from gormapy.MPI import fileinfo, wininfo

    windows = {key: (default, _choices(mpi, read, key)) for key, (read, default) in wininfo._KEYS.items()}
    windows["alloc_shared_noncontig"] = ("false", _choices(mpi, wininfo._truth, "alloc_shared_noncontig"))

    def aligned(key, value):
        wininfo.alignment({key: value})

    windows[wininfo._ALIGNMENT] = (str(wininfo._PAGE), _choices(mpi, aligned, wininfo._ALIGNMENT))
    only = {
        "alloc_shared_noncontig": "`Win.Allocate_shared`",
        wininfo._ALIGNMENT: "`Win.Allocate`, `Win.Allocate_shared`, `Alloc_mem`",
    }
    files = dict(fileinfo.info(fileinfo._DEFAULTS))
    lines = [
        "# Hints",
        "",
        "Calls that make windows, files and memory take an `info`. An unknown key is ignored, as the MPI standard",
        "wants it; a wrong value of a known key is an `ERR_INFO_VALUE`. `Get_info` returns the values that hold.",
        "[Windows and speed](../windows-and-speed.md#hints) says what the hints of windows do.",
        "",
        "## Windows",
        "",
    ]
    for key, (default, values) in windows.items():
        later = "`Set_info` can change it" if key in wininfo._CHANGING else "stays as the window was made"
        lines += _hint(key, default, values, only.get(key, "all windows"), later)
    lines += ["## Files", ""]
    for key in fileinfo._KEYS:
        lines += _hint(key, files.get(key), _choices(mpi, fileinfo._READERS.get(key, fileinfo._switch), key))
    return "\n".join(lines)


def _hint(key, default, values, *more):
    facts = [f"Default: `{default}`"] if default else []
    return [f"`{key}`", f": {' · '.join([*facts, f'Values: {values}', *more])}", ""]


# The launcher

_OPTION = re.compile(r"^  (-\S.*?)(?:  +(\S.*))?$")
_FOREIGN = re.compile(r'"([\w-]+)":\s*(ignored|refused)\((\d), ((?:"(?:[^"\\]|\\.)*")|\w+)\)')
_DASHES = "One dash or two make no difference."
_WHY = re.compile(r'^\t(\w+)\s*=\s*("(?:[^"\\]|\\.)*")$', re.MULTILINE)


def launcher():
    """Return a page of mpiexec's options: those of --help, and those of other launchers."""
    from gormapy.launch import launcher as program

    text = subprocess.run([program(), "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    # The tables below have these.
    text = re.sub(r"^Options of other launchers: .*?\n\n", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = ["# Options of mpiexec", ""]
    inside = False  # of an option's text
    for line in text.splitlines():
        option = _OPTION.match(line)
        if line.startswith("usage: "):
            lines += ["```text", line.removeprefix("usage: "), "```"]
        elif option:
            lines += ["", f"`{option[1]}`"] + ([f": {escape(option[2], quote=False)}"] if option[2] else [])
            inside = True
        elif inside and line.startswith("   "):
            begins = lines[-1].startswith("`")  # a long option has its text in the next line
            lines.append(f"{':' if begins else ' '} {escape(line.strip(), quote=False)}")
        elif line.endswith(":") and not line.startswith(" ") and len(line) < 60:
            lines += ["", f"## {line[:-1].split(':')[0]}", ""]
            inside = False
        else:
            lines += ["" if inside else None, escape(line.strip(), quote=False)]
            inside = False
    source = (ROOT / "gocore" / "launch" / "optiontable.go").read_text(encoding="utf-8")
    why = {name: ast.literal_eval(string) for name, string in _WHY.findall(source)}
    foreign = _FOREIGN.findall(source)
    if len(foreign) != len(re.findall(r": *(?:ignored|refused)\(", source)):
        raise SystemExit("gocore/launch/optiontable.go has an option of other launchers that can't be read")
    for kind, title in (("ignored", "why"), ("refused", "what to do")):
        lines += ["", f"## Options of other launchers that are {kind}", "", _DASHES, ""]
        lines += [f"| option | {title} |", "|---|---|"]
        reasons = {}
        for name, what, _, word in foreign:
            if what == kind:
                reason = why[word] if word in why else ast.literal_eval(word)
                reasons.setdefault(reason, []).append(f"`--{name}`")
        lines += [f"| {' '.join(names)} | {escape(reason, quote=False)} |" for reason, names in reasons.items()]
    return "\n".join([line for line in lines if line is not None] + [""])
