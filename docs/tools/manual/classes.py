"""The programs and reports of docs/checking-classes.md, which ``python -m manual.classes`` runs and writes.

The page has a heading for each class of findings, text, and three blocks: the program with the mistake, what
``mpiexec --check`` prints for it, and the lines by which the mended program differs. The programs are
docs/programs/checking/CLASS.py and CLASS_mended.py, with underscores.
"""

import difflib
import re
import subprocess
import sys

from . import DOCS

PAGE = DOCS / "checking-classes.md"
PROGRAMS = DOCS / "programs" / "checking"

_SECTION = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TOTAL = "mpiexec --check: 1 finding"


def program(name):
    """Return the file of the program with the mistake that gives a class its name."""
    return PROGRAMS / f"{name.replace('-', '_')}.py"


def mended(name):
    """Return the file of the same program without the mistake."""
    return PROGRAMS / f"{name.replace('-', '_')}_mended.py"


def repaired(name):
    """Return the lines that differ between the two programs, with a line before and after."""
    files = (file.read_text(encoding="utf-8").splitlines() for file in (program(name), mended(name)))
    lines = difflib.unified_diff(*files, lineterm="", n=1)
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@"))) + "\n"


def report(name, said):
    """Return the finding in what mpiexec --check has written about a program; it has to be the only one."""
    text, _, total = said.strip().rpartition("\n")
    if not text.startswith(f"mpiexec --check found {name}: ") or total != _TOTAL:
        raise ValueError(f"{program(name).name} has to have one finding, {name}:\n{said}")
    return text.replace(f"{PROGRAMS}/", "") + "\n"


def blocks(text):
    """Return the blocks of the page, {class: {kind: text}}."""
    return {name: dict(_BLOCK.findall(body)) for name, body in _SECTION.findall(text)}


def written(text, reports):
    """Return the page with the programs, and the reports {class: text}, in its blocks."""

    def section(found):
        name, body = found.groups()
        new = {"python": program(name).read_text(encoding="utf-8"), "text": reports[name], "diff": repaired(name)}
        if list(dict(_BLOCK.findall(body))) != list(new):
            raise ValueError(f"{PAGE.name}: {name} needs the blocks {', '.join(new)}, in this order")
        return f"## {name}\n" + _BLOCK.sub(lambda block: f"```{block[1]}\n{new[block[1]]}```", body)

    return _SECTION.sub(section, text)


def main():
    """Run the programs, and write the page."""
    from gormapy.launch import launcher

    text = PAGE.read_text(encoding="utf-8")
    reports = {}
    for name in blocks(text):
        command = [launcher(), "--check", "--timeout", "60", "-n", "2", sys.executable, str(program(name))]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        reports[name] = report(name, done.stderr)
    PAGE.write_text(written(text, reports), encoding="utf-8")


if __name__ == "__main__":
    main()
