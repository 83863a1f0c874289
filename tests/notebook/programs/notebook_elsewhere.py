"""The program of test_notebook_elsewhere.py."""

from IPython.terminal.interactiveshell import TerminalInteractiveShell


def a_terminal_gets_lines():
    shell = TerminalInteractiveShell.instance()
    for cell in (
        "%load_ext gormapy",
        "%%mpi -n 2\nfrom gormapy import MPI\nprint('hello from', MPI.COMM_WORLD.rank)\nMPI.COMM_WORLD.rank + 0.5",
        "%%mpi\nMPI.COMM_WORLD.recv(source=1 - MPI.COMM_WORLD.rank)",
        "%%mpi\n1 / 0",
        "%mpi stop",
    ):
        shell.run_cell(cell)
