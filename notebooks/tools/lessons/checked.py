"""What %%mpi --check has found in the cells of a notebook, and whether the lesson says so.

A lesson names, below a cell, the classes of what is found in it on purpose; nothing else may be found.
"""

_MAGIC = "%%mpi"
_OPTION = f"{_MAGIC} --check"


def everywhere(notebook):
    """Return a notebook all of whose ranks are checked."""
    cells = [
        {**cell, "source": _on(cell["source"])} if cell["cell_type"] == "code" else cell for cell in notebook["cells"]
    ]
    return {**notebook, "cells": cells}


def _on(source):
    first, *rest = source or [""]
    if not first.startswith(_MAGIC) or "--check" in first.split():
        return source
    return [_OPTION + first.removeprefix(_MAGIC), *rest]


def found(cell):
    """Return the findings under a cell as texts, which begin with the class, and " (contested)" if it is that."""
    shown = [output.get("data", {}) for output in cell["outputs"]]
    return [
        "".join(data["text/plain"]) for data in shown if 'class="gormapy-finding"' in "".join(data.get("text/html", ""))
    ]


def surprise(cell, everywhere):
    """Say how what was found in a cell differs from what its lesson says; "" if it doesn't.

    everywhere: all ranks of the notebook are checked.
    """
    findings, promised = found(cell), set(cell["metadata"].get("gormapy", {}).get("findings", []))
    there = {finding.partition(":")[0] for finding in findings}
    if not findings and not everywhere and "--check" not in cell["source"][0].split():
        return ""  # its ranks are not checked
    for missing in sorted(promised - there):
        return f"%%mpi --check should find {missing!r}, and finds {sorted(there) or 'nothing'}"
    for finding in findings:
        if finding.partition(":")[0] not in promised:
            return f"%%mpi --check should find {sorted(promised) or 'nothing'}, and finds\n{finding}"
    return ""
