"""MPI in notebooks: ``%load_ext gormapy``, then cells that begin with ``%%mpi -n 4`` run on 4 ranks.

"The kernel" is the Jupyter kernel here, the process of the notebook; Linux's is called Linux.

Parts: `magics` (what users type), `CellRun` (one cell), `transcript`, `rows`, `progress` and `view` (the output),
`worker` and `shell` (in a rank), `transfer` (objects that move). The ranks, their states, interrupts and ends:
`gormapy._resident`.

Order of output. A rank flushes its streams before it sends display output (a figure of the program) or the end of a
cell, and the kernel empties the rank's pipes before it takes a message; after display output the rank waits until the
kernel has taken it. Output of a rank between two cells is shown with the next one, which says
after which cell it came.
"""

from .magics import load_ipython_extension, unload_ipython_extension

__all__ = ["load_ipython_extension", "unload_ipython_extension"]
