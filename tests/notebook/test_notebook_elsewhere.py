"""Other ways of notebooks: IPython on a terminal, nbclient, ipyparallel with gormapy's launcher."""

import os
import re
from pathlib import Path

import nbclient
import nbformat
import pytest
from support import leftovers
from support.mpirun import environment
from support.programs import beside

program = beside(__file__)


def test_a_terminal_gets_lines(mpirun, tmp_path):
    done = mpirun.alone(program.a_terminal_gets_lines, timeout=120, env={"IPYTHONDIR": str(tmp_path / "ipython")})
    for r in (0, 1):
        assert f"[{r}] hello from {r}\n" in done.stdout and f"[{r}] {r}.5\n" in done.stdout, done
    assert "rank 0 in recv for rank 1" in done.stdout
    assert "[0, 1] ZeroDivisionError: division by zero" in done.stderr
    assert "2 ranks ended." in done.stdout


def test_nbclient_stops_at_a_failure_and_keeps_outputs(tmp_path):
    cells = ["%load_ext gormapy", "%%mpi -n 2\nprint('kept')", "%%mpi\n1 / 0", "%%mpi\nprint('never')"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    mark = f"GORMAPYTEST_NB={os.getpid()}"
    before = leftovers.names()
    client = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3")
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="ZeroDivisionError on ranks 0, 1"):
        client.execute(env={**environment(), "GORMAPYTEST_NB": mark.partition("=")[2]})
    nbformat.validate(notebook)
    (kept,) = notebook.cells[1].outputs
    assert kept.output_type == "display_data" and kept.data["text/plain"] == "[0, 1] kept"
    assert notebook.cells[3].outputs == []
    assert not leftovers.after(mark, before, 8.0)


def shown():
    """Return the cells that docs/notebooks.md shows; README.md has the first two as well."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "notebooks.md").read_text(encoding="utf-8")
    return re.findall(r"^```ipython\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_cells_of_the_documentation(kernel):
    load, cell, *_ = shown()
    kernel.run(load).check()
    out = kernel.run(cell).check()
    assert out.lines == [f"[{r}] rank {r} of 4" for r in range(4)]


def test_ipyparallel_with_our_launcher_as_in_the_documentation(kernel):
    pytest.importorskip("ipyparallel")
    kernel.run(shown()[-1], timeout=120).check()
    out = kernel.run("%%px\nfrom mpi4py import MPI\nprint(MPI.COMM_WORLD.allreduce(1), 'ranks')", timeout=60).check()
    assert out.text.count("4 ranks") == 4, out
    kernel.run("%%px\nfrom gormapy import MPI\nassert MPI.Get_library_version().startswith('gormapy')").check()
    kernel.run("client.cluster.stop_cluster_sync()", timeout=60).check()
