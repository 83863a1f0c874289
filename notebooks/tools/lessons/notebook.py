"""What Jupyter opens, made of a lesson's cells: dictionaries as they stand in an .ipynb file."""

import hashlib
import itertools
import json
import re
from pathlib import Path

FIRST_CELL = (Path(__file__).parent / "first_cell.ipy").read_text(encoding="utf-8").strip()

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def make(lesson, *, teacher):
    """Return the notebook of a lesson, not executed: the teacher's has the solutions."""
    cells, taken, solved = [], {}, False
    for number, cell in enumerate(lesson.cells):
        if cell.kind == "solution":
            if not teacher:
                continue
            if not solved:
                cells.append(_cell("markdown", "**Solution**", taken, ["solution"]))
            cells.append(_cell("code", _marked(lesson, cell), taken, ["solution"], cell))
        elif cell.kind == "text":
            cells.append(_cell("markdown", "\n\n".join([cell.text, *_hints(lesson.cells[number + 1 :])]), taken))
        elif cell.kind == "hint":
            continue  # stands with the task
        elif cell.kind == "first":
            cells.append(_cell("code", FIRST_CELL, taken, ["first-cell"], cell))
        else:
            # Jupyter's "run all" goes on below a cell with this tag.
            tags = {"error": ["raises-exception"], "exercise": ["exercise"]}.get(cell.kind, [])
            cells.append(_cell("code", _marked(lesson, cell), taken, tags, cell))
        solved = cell.kind == "solution"
    return {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}


def _marked(lesson, cell):
    """Return the text of a cell, with a comment if it runs with gormapy only and other cells of the lesson do not."""
    if not cell.only or not any(other.kind == "python" and not other.only for other in lesson.cells):
        return cell.text
    magic, newline, rest = cell.text.partition("\n")
    note = "# Runs with gormapy only."
    return f"{magic}\n{note}\n{rest}" if newline and magic.startswith("%%") else f"{note}\n{cell.text}"


def _hints(below):
    """Return the hints, folded up, of the exercise whose task stands above these cells."""
    if not below or below[0].kind != "exercise":
        return []
    hints = itertools.takewhile(lambda cell: cell.kind in ("hint", "solution"), below[1:])
    return [f"<details><summary>Hint</summary>\n\n{h.text}\n\n</details>" for h in hints if h.kind == "hint"]


def _cell(kind, text, taken, tags=(), made_of=None):
    """Return a cell; its id follows from its text, so that it stays when cells above it change."""
    ident = hashlib.sha256(f"{kind}\n{text}".encode()).hexdigest()[:8]
    taken[ident] = taken.get(ident, 0) + 1
    if taken[ident] > 1:
        ident += f"-{taken[ident]}"
    cell = {"cell_type": kind, "id": ident, "metadata": {"tags": list(tags)} if tags else {}}
    cell["source"] = text.splitlines(keepends=True)
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
        promised = {}
        if made_of is not None:
            promised = {"error": made_of.expected, "output": made_of.lines, "findings": made_of.findings}
        if promised := {key: value for key, value in promised.items() if value}:
            cell["metadata"]["gormapy"] = promised
    return cell


def with_outputs(notebook, executed, *, teacher):
    """Fill in the outputs that the cells of the same id had, and count the cells anew.

    A student is to find first what %%mpi --check finds in an exercise: the student's notebook doesn't show it.
    """
    outputs = {cell["id"]: cell for cell in executed["cells"] if cell["cell_type"] == "code"}
    counts = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            counts[outputs[cell["id"]]["execution_count"]] = len(counts) + 1

    def anew(match):
        return f"{match[1]}{counts.get(int(match[2]), int(match[2]))}]"

    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        ran = outputs[cell["id"]]
        cell["execution_count"] = counts[ran["execution_count"]]
        text = re.sub(r"(In ?\[)(\d+)\]", anew, json.dumps(ran["outputs"]))
        cell["outputs"] = json.loads(text)
        for output in cell["outputs"]:
            if "execution_count" in output:
                output["execution_count"] = cell["execution_count"]
        if not teacher and _tells(cell):
            cell["outputs"] = []
    return notebook


def _tells(cell):
    """Return whether the output of a cell tells what is to be found as an exercise."""
    magic = "".join(cell["source"][:1]).split()
    exercise = "exercise" in cell["metadata"].get("tags", [])
    return exercise and "--check" in magic and "findings" in cell["metadata"].get("gormapy", {})


def without_outputs(notebook):
    """Return what a source determines of a notebook: everything but the outputs."""
    cells = [
        {key: value for key, value in cell.items() if key not in ("outputs", "execution_count")}
        for cell in notebook["cells"]
    ]
    return {**notebook, "cells": cells}


def write(notebook, path):
    """Write a notebook as Jupyter does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")


def load(path):
    """Return the notebook in a file."""
    return json.loads(path.read_text(encoding="utf-8"))


def texts(outputs):
    """Return all text in the outputs of a cell, without the codes that colour it."""
    found = []
    for output in outputs:
        found.append(output.get("text", ""))
        found += output.get("traceback", [])
        found += [f"{output.get('ename', '')}: {output.get('evalue', '')}"] if "ename" in output else []
        for kind, data in output.get("data", {}).items():
            if kind.startswith("text/") or kind.endswith(("svg+xml", "json")):
                found.append(data if isinstance(data, (str, list)) else json.dumps(data))
    joined = "\n".join("".join(text) if isinstance(text, list) else text for text in found)
    return re.sub(r"\x1b\[[0-9;]*m", "", joined)
