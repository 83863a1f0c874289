"""What one rank does with the cells of a lesson, under the interpreter of any MPI: rank.py PROGRAM.

PROGRAM is a file of JSON: `mpi` names the module with the MPI, and `cells` has for each cell its Python, the file
and line that it comes from, and the ranks that run it (null: all). As in a notebook, a cell begins when all ranks
have ended the one before. The file at-R has the number of the cell that rank R is in, and of cells when it has ended
all; failed-R has the traceback of its exception. What it prints in cell C is in the file R-C when the cell has ended.

This file is run by its path, under interpreters that have no gormapy: it imports nothing of its package.
"""

import ast
import contextlib
import importlib
import json
import sys
import traceback
import types
from pathlib import Path


def main(program):
    """Run the cells; the first exception ends all ranks."""
    program = Path(program)
    work = json.loads(program.read_text(encoding="utf-8"))
    mpi = importlib.import_module(work["mpi"])
    # The cells say `from gormapy import MPI`.
    sys.modules["gormapy"] = types.SimpleNamespace(MPI=mpi)
    between = mpi.COMM_WORLD.Dup()
    rank = between.Get_rank()
    names = {"__name__": "__main__"}
    at = program.with_name(f"at-{rank}")
    for number, cell in enumerate(work["cells"]):
        at.write_text(str(number), encoding="utf-8")
        if cell["ranks"] is None or rank in cell["ranks"]:
            out = program.with_name(f"{rank}-{number}")
            with out.open("w", encoding="utf-8") as file, contextlib.redirect_stdout(file):
                try:
                    run(cell, names)
                except BaseException:
                    why = f"rank {rank}: {cell['where']}:\n{traceback.format_exc()}"
                    program.with_name(f"failed-{rank}").write_text(why, encoding="utf-8")
                    mpi.COMM_WORLD.Abort(1)  # launchers lose what was printed just before
        between.Barrier()
    at.write_text(str(len(work["cells"])), encoding="utf-8")


def run(cell, names):
    """Run the Python of a cell, and show the value of an expression at its end as a notebook does."""
    tree = ast.parse(cell["python"], cell["where"])
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, cell["where"], "exec"), names)
    if last is not None and (value := eval(compile(last, cell["where"], "eval"), names)) is not None:
        print(repr(value))


if __name__ == "__main__":
    main(sys.argv[1])
