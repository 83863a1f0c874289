"""%%mpi in a real JupyterLab, used as a person does: by keyboard, buttons and menus.

Screenshots of every step lie in .cache/screenshots, to be looked at.
"""

import os
import re
import signal
import time

import nbformat
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

SETUP = """%%mpi -n 4
from gormapy import MPI
import numpy as np, time
comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
print("rank", rank, "of", size)"""

RING = """%%mpi
# everybody receives first
got = comm.recv(source=(rank + 1) % size, tag=7)
comm.send(rank, dest=(rank - 1) % size, tag=7)"""

PLOT = """%%mpi
import matplotlib.pyplot as plt
x = np.linspace(0, 2 * np.pi, 100)
plt.figure(figsize=(3.2, 1.8))
plt.plot(x, np.sin((rank + 1) * x))
plt.title(f"rank {rank}")
plt.show()"""


def ready(notebook, setup=SETUP):
    """Load the extension and start the ranks."""
    notebook.run("%load_ext gormapy")
    number, text = notebook.run(setup)
    assert "rank 3 of 4" in text
    return number


def test_first_steps(notebook, server):
    book = notebook()
    first = ready(book)
    for r in range(4):
        assert book.of(first, r) == f"rank {r} of 4"
    book.picture("01-output-by-rank", first)

    number, text = book.run("%%mpi\nfor step in range(3):\n    print('step', step); time.sleep(0.1)\nsum(range(rank))")
    assert [book.of(number, r).splitlines()[-1] for r in range(4)] == ["0", "0", "1", "3"]
    number, text = book.run("%%mpi\nprint('all the same')")
    assert book.of(number, "0-3") == "all the same"
    book.picture("02-steps-and-merged", number)

    plot, text = book.run(PLOT)
    for r in range(4):
        image = book.cells.nth(plot).locator(f'.gormapy-rank[data-ranks="{r}"] img')
        assert image.count() == 1 and image.evaluate("image => image.naturalWidth") > 100
    book.picture("03-plots", plot)

    failed, text = book.run("%%mpi\nnumbers = [1, 2, 3]\nprint(numbers[rank])")
    assert "IndexError: list index out of range" in text and "print(numbers[rank])" in text
    assert book.of(failed, 2).startswith("3") and "IndexError on rank 3" in text
    book.picture("04-traceback", failed)

    # other themes and widths
    book.theme("Dark")
    book.picture("05-dark-traceback", failed)
    book.picture("06-dark-plots", plot)
    book.page.set_viewport_size({"width": 520, "height": 860})
    book.picture("07-narrow-dark", failed)
    inside = book.cells.nth(failed).locator(".gormapy-output").evaluate("o => o.scrollWidth <= o.clientWidth + 1")
    assert inside, "output is wider than a narrow window"
    book.page.set_viewport_size({"width": 1200, "height": 860})
    book.theme("Light")

    # what is saved is a valid notebook and shows the same when it is opened again
    shown = {n: book.text(n) for n in (first, plot, failed)}
    saved = book.save()
    nbformat.validate(saved)
    book.open()
    assert {n: book.text(n) for n in shown} == shown
    book.picture("08-opened-again", failed)

    # somebody else's copy, which the browser does not trust
    for cell in saved.cells:
        cell.source += " "
    nbformat.write(saved, server.folder / "files" / "copy.ipynb")
    copy = notebook("copy")
    for r in range(4):
        assert f"rank {r} of 4" in copy.text(first)
    copy.picture("09-somebody-elses-copy", failed)


def test_stop_and_deadlock(notebook, server):
    book = notebook()
    ready(book)
    book.run("%%mpi\nkept = 100 + rank")

    begun = time.monotonic()
    # It is no deadlock, which would end it if the stop came late.
    stuck = book.begin("%%mpi\nprint('waiting')\nif rank == 0: time.sleep(100)\nelse: comm.recv(source=0)")
    book.see(stuck, "waiting")
    book.stop()
    text = book.finish(stuck)
    assert "CellInterrupted" in text and "Communication was put back" in text and time.monotonic() - begun < 30
    book.picture("10-stopped-deadlock", stuck)
    number, text = book.run("%%mpi\nkept, comm.allreduce(1)")
    assert [book.of(number, r) for r in range(4)] == [f"({100 + r}, 4)" for r in range(4)]

    dead, text = book.run(RING)
    assert "Deadlock: ranks 0-3 wait for each other" in text
    cell = book.cells.nth(dead)
    picture = cell.locator(".jp-RenderedSVG img, .jp-RenderedSVG svg").first
    box = picture.bounding_box()
    assert box["width"] > 200 and box["height"] > 200
    rows = cell.locator("table.gormapy-waits tbody tr")
    assert rows.count() == 4
    for r, row in enumerate(rows.all_inner_texts()):
        assert re.search(
            rf"{r}\s+recv, [0-9.]+ s\s+rank {(r + 1) % 4}\s+COMM_WORLD, tag 7\s+In \[\d+\], line 3: got", row
        )
    book.picture("11-deadlock", dead)
    book.theme("Dark")
    book.picture("12-deadlock-dark", dead)
    book.page.set_viewport_size({"width": 520, "height": 860})
    book.picture("13-deadlock-narrow", dead)
    book.page.set_viewport_size({"width": 1200, "height": 860})
    book.theme("Light")

    busy = book.begin("%%mpi\nprint('computing', flush=True)\nwhile True: kept += 1000")
    book.see(busy, "computing")
    book.stop()
    assert "CellInterrupted" in book.finish(busy)
    number, text = book.run("%%mpi\nkept % 1000, comm.allreduce(1)")
    assert [book.of(number, r) for r in range(4)] == [f"({100 + r}, 4)" for r in range(4)]
    book.picture("14-stopped-computation", number)

    number, text = book.run(
        "%%mpi\nimport os, signal\nif rank == 2: os.kill(os.getpid(), signal.SIGKILL)\ncomm.Barrier()"
    )
    assert "RankDied" in text and "rank 2 was killed by signal 9" in text
    book.picture("15-killed-rank", number)
    server.no_ranks()
    number, text = book.run(SETUP)
    assert "rank 3 of 4" in text
    assert "'kept' is not defined" in book.run("%%mpi\nkept")[1]


def test_restart_and_shut_down(notebook, server):
    book = notebook()
    ready(book)
    assert len(server.ranks()) >= 5
    book.restart()  # while nothing runs
    server.no_ranks()
    book.picture("16-restarted")

    ready(book)
    stuck = book.begin("%%mpi --timeout 60\nprint('here')\nimport time; time.sleep(50)")
    book.see(stuck, "here")
    book.restart()  # in the middle of a cell
    server.no_ranks()

    ready(book)
    (kernel,) = server.kernels()
    os.kill(int(kernel.partition(":")[0]), signal.SIGKILL)  # as when memory runs out
    server.no_ranks()
    book.page.locator(".jp-Dialog", has_text="appears to have died").wait_for()
    book.picture("17-kernel-killed")
    book.agree("Ok")

    ready(book)
    book.menu("Kernel", "Shut Down Kernel")
    server.no_ranks()
    end = time.monotonic() + 10
    while server.kernels() and time.monotonic() < end:
        time.sleep(0.1)
    assert not server.kernels()
    book.picture("18-shut-down")


def test_two_notebooks(notebook, server):
    books = [notebook("one"), notebook("two")]
    for number, book in enumerate(books):
        book.run("%load_ext gormapy")
        book.run(SETUP)
        book.run(f"%%mpi\nmine = {number + 1}")
    cells = [book.begin("%%mpi\nfor _ in range(200): total = comm.allreduce(mine)\ntotal") for book in books]
    for number, (book, cell) in enumerate(zip(books, cells)):
        book.finish(cell)
        assert [book.of(cell, r) for r in range(4)] == [str(4 * (number + 1))] * 4
    books[0].menu("Kernel", "Shut Down Kernel")
    cell, text = books[1].run("%%mpi\ncomm.allreduce(mine), 'still here'")
    assert text.count("(8, 'still here')") == 4
    books[1].menu("Kernel", "Shut Down Kernel")
    server.no_ranks()
