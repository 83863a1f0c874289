"""%%mpi: cells run on ranks that stay alive, and what they show arrives by rank."""

import json
import os
import re

import pytest

SETUP = """
%%mpi -n {n}
from gormapy import MPI
import numpy as np
comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
"""


@pytest.fixture
def four(shared):
    """The module's kernel with 4 ranks that have what every script has."""
    shared.run(SETUP.format(n=4)).check()
    return shared


def test_state_persists_on_any_number_of_ranks(kernel, n):
    out = kernel.run(SETUP.format(n=n) + "total = comm.allreduce(rank)\nprint('rank', rank, 'of', size)").check()
    for r in range(n):
        assert out.of(r) == [f"rank {r} of {n}"]
    out = kernel.run("%%mpi\ntotal * 10 + rank").check()  # -n of the last cell
    for r in range(n):
        assert out.of(r) == [str(n * (n - 1) // 2 * 10 + r)]
    kernel.run("%mpi stop").check()
    assert not kernel.processes()


def test_the_default_is_4_and_another_number_says_that_state_is_lost(kernel):
    kernel.run("%%mpi\nx = 1\n").check()
    assert "Starting 2 ranks in place of 4" in kernel.run("%%mpi -n 2\nprint('x' in globals())").check().text
    out = kernel.run("%%mpi --fresh\nx = 2\nfrom gormapy import MPI\nMPI.COMM_WORLD.Get_size()").check()
    assert "what the old ones had is gone" in out.text and out.of(0) == out.of(1) == ["2"]


def test_output_is_grouped_by_rank(four):
    out = four.run("%%mpi\nfor i in range(3):\n    print(rank, i, flush=True)\n    comm.Barrier()").check()
    assert [line[:3] for line in out.lines] == [f"[{r}]" for r in range(4) for _ in range(3)]
    assert out.html.count('class="gormapy-rank"') == 4


def test_the_same_output_is_shown_once(four):
    out = four.run("%%mpi\nprint('all the same')").check()
    assert out.lines == ["[0-3] all the same"] and "ranks 0-3" in out.html


def test_output_comes_while_the_cell_runs(four, tmp_path):
    seen = tmp_path / "seen"

    def during(out, passed):
        if "early" in out.text:
            assert "late" not in out.text
            seen.touch()
            return True

    code = f"""
        %%mpi
        import os, time
        print("early")
        while not os.path.exists({str(seen)!r}): time.sleep(0.05)
        print("late")
        """
    out = four.run(code, during=during).check()
    assert seen.exists() and "late" in out.text and out.updates


def test_values_tables_pictures_and_html(four):
    out = four.run("""
        %%mpi
        from IPython.display import display, HTML, SVG
        class Table:
            def _repr_html_(self): return f"<table><tr><td>cell of {rank}</td></tr></table>"
            def __repr__(self): return f"Table {rank}"
        display(HTML("<b>bold</b>"))
        display(SVG('<svg xmlns="http://www.w3.org/2000/svg"><circle r="5"/></svg>'))
        Table()
        """).check()
    for r in range(4):
        assert f"<td>cell of {r}</td>" in out.html
        assert out.of(r)[-1] == f"Table {r}"
    assert out.html.count("<b>bold</b>") == 4 and out.html.count("<circle") == 4


def test_figures_become_pictures_in_their_place(four):
    out = four.run(
        """
        %%mpi --ranks 1,2
        import matplotlib.pyplot as plt
        print("before")
        plt.plot([rank, 2])
        plt.show()
        print("after")
        """,
        timeout=120,
    ).check()
    for r in (1, 2):
        assert [line for line in out.of(r) if "Line2D" not in line] == [
            "before",
            "<Figure size 640x480 with 1 Axes>",
            "after",
        ]
    assert out.html.count("data:image/png;base64,iVBOR") == 2
    assert out.html.index("before") < out.html.index("data:image") < out.html.index("after")


def test_pictures_of_several_ranks_are_columns(four):
    code = """%%mpi
from IPython.display import SVG, display
print('text of', rank)
if rank != 2: display(SVG('<svg xmlns="http://www.w3.org/2000/svg" width="900" height="9"><circle r="5"/></svg>'))"""
    out = four.run(code).check()
    first, rest = out.html.split('<div class="gormapy-columns"')
    assert first.count('"gormapy-rank"') == 0 and "grid-template-columns:repeat(auto-fit" in rest
    assert (
        rest.count("flex-direction:column") == 2
    )  # ranks 0 and 1; those after a rank without a picture have no neighbour
    assert rest.index('data-ranks="1"') < rest.index("</div></div></div></div>") < rest.index('data-ranks="2"')
    assert [out.of(r)[0] for r in range(4)] == [f"text of {r}" for r in range(4)]  # the plain form is as ever
    assert "gormapy-columns" not in four.run(code.replace("%%mpi", "%%mpi --ranks 1")).check().html
    assert "gormapy-columns" not in four.run("%%mpi\nprint(rank)").check().html


def test_figures_of_a_cell_without_show(four):
    out = four.run("%%mpi --ranks 0\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]);", timeout=120).check()
    assert out.html.count("data:image/png") == 1 and out.of(0) == ["<Figure size 640x480 with 1 Axes>"]


def test_displays_are_updated(four):
    out = four.run("""
        %%mpi --ranks 3
        from IPython.display import display
        handle = display("first", display_id=True)
        print("between")
        handle.update("second")
        """).check()
    assert out.of(3) == ["'second'", "between"]


def test_clear_output(four):
    out = four.run(
        "%%mpi\nfrom IPython.display import clear_output\nprint('gone')\nclear_output()\nprint('kept', rank)"
    )
    assert out.check().lines == [f"[{r}] kept {r}" for r in range(4)]


def test_output_of_c_code_and_of_child_processes(four):
    out = four.run("""
        %%mpi --ranks 0
        import ctypes, os, subprocess, sys
        libc = ctypes.CDLL(None)
        libc.puts(b"from C")
        print("from Python")
        libc.printf(b"no end of line")
        sys.stdout.flush()
        libc.fflush(None)
        print()
        subprocess.run(["echo", "from a child"])
        os.write(2, b"to descriptor 2\\n")
        print("to stderr", file=sys.stderr)
        """).check()
    assert out.of(0)[:4] == ["from C", "from Python", "no end of line", "from a child"] or sorted(out.of(0)) == sorted(
        ["from C", "from Python", "no end of line", "from a child", "to descriptor 2", "to stderr"]
    )
    assert 'class="gormapy-stderr"' in out.html


def test_long_output_is_cut_and_says_so(four):
    out = four.run(
        "%%mpi\nfor i in range(30_000): print(rank, 'line', i)\nprint('the end of', rank)", timeout=120
    ).check()
    assert len(out.text) < 4 * 90_000 and "lines) are not shown" in out.text
    for r in range(4):
        lines = out.of(r)
        assert lines[0] == f"{r} line 0" and lines[-1] == f"the end of {r}"


def test_progress_bars_stay_one_line(four):
    out = four.run(
        "%%mpi --ranks 0\nimport time\nfor i in range(50): print(f'\\r{i} of 50', end='', flush=True)"
    ).check()
    assert out.of(0) == ["49 of 50"]


BARS = {
    "one": "for _ in tqdm(range(30), desc='one'): pass",
    "beside output": "for i in tqdm(range(30), desc='one'):\n    if i % 10 == 5: print('step', i, flush=True)",
    "written by tqdm": "for i in tqdm(range(30), desc='one'):\n    if i % 10 == 5: tqdm.write(f'step {i}')",
    "nested": "for _ in tqdm(range(3), desc='one'):\n    for _ in tqdm(range(9), desc='in', leave=False): pass",
    "three": "bars = [tqdm(total=9, desc=d, position=p) for p, d in enumerate(('one', 'two', 'three'))]\n"
    "for _ in range(9):\n    for bar in bars: bar.update()\nfor bar in bars: bar.close()",
    "gone": "for _ in tqdm(range(30), leave=False): pass",
}


@pytest.mark.parametrize("name", BARS)
def test_bars_of_tqdm(four, name):
    pytest.importorskip("tqdm")
    start = "%%mpi --ranks 1\nimport functools, tqdm\ntqdm = functools.wraps(tqdm.tqdm)(functools.partial(tqdm.tqdm, mininterval=0))\n"
    start += "tqdm.write = __import__('tqdm').tqdm.write\n" + "MORE"
    out = four.run(start.replace("MORE", BARS[name])).check()
    bars = [line.partition(":")[0] for line in out.of(1) if "%|" in line]
    steps = [line for line in out.of(1) if "%|" not in line]
    assert all("100%|##########|" in line or "100%|██████████|" in line for line in out.of(1) if "%|" in line), out
    assert bars == {"three": ["one", "two", "three"], "gone": []}.get(name, ["one"]), out
    assert steps == (["step 5", "step 15", "step 25"] if name in ("beside output", "written by tqdm") else []), out
    assert "\r" not in out.text and (out.text or name == "gone")


def test_a_line_is_overwritten_as_on_a_terminal(four):
    out = four.run("%%mpi --ranks 0\nprint('abcdef', end='\\rX')\nprint('\\b\\bYZ\\x1b[K\\nnext\\r\\nlast')").check()
    assert out.of(0) == ["YZ", "next", "last"]


def test_colours_become_html(four):
    out = four.run("%%mpi --ranks 0\nprint('\\x1b[31mred\\x1b[0m <&>')").check()
    assert out.of(0) == ["red <&>"] and ">red</span> &lt;&amp;&gt;" in out.html


def test_errors_have_the_lines_of_the_cell_and_fail_it(four):
    out = four.run("%%mpi\na = 1\nb = a / 0\n").check("MPICellError")
    assert out.value == "ZeroDivisionError on ranks 0-3"
    assert "cellrun" not in out.traceback and out.traceback.count("\n") == 0  # nothing of the kernel's own stack
    assert out.of(0).count("ZeroDivisionError: division by zero") == 1
    assert any("----> 3 b = a / 0" in line for line in out.of(2)), out  # as the notebook counts lines
    assert out.html.count('class="gormapy-traceback"') == 1  # the same on all: once
    four.run("%%mpi\ncomm.Barrier()").check()


def test_errors_of_mpi_end_in_the_users_line(four):
    out = four.run("%%mpi --allow-errors\ncomm.Send(np.zeros(1), dest=99)").check()
    assert "MPI_ERR_RANK" in out.text and "MPICellError: " in out.text
    assert "p2p.py" not in out.text and "comm.Send(np.zeros(1), dest=99)" in out.text


def test_syntax_errors(four):
    out = four.run("%%mpi\nif True\n  pass").check("MPICellError")
    assert "SyntaxError" in out.value and "if True" in out.text


def test_one_rank_fails_while_others_wait_for_it(four):
    out = four.run("%%mpi\nif rank == 2: raise ValueError('mine')\ncomm.Barrier()").check("MPICellError")
    assert out.value == "ValueError on rank 2" and out.seconds < 10
    assert "Ranks 0, 1, 3 wait in Barrier for rank 2, which has failed" in out.text and out.of(0) == []
    assert four.run("%%mpi\ncomm.allreduce(1)").check().of(3) == ["4"]


def test_one_rank_fails_and_leaves_a_collective_half_done(four):
    out = four.run("%%mpi\nif rank == 3: raise ValueError\nif rank == 0: comm.isend('old', 1, 7)").check("MPICellError")
    assert "Communication was put back" in out.text
    assert four.run("%%mpi\ncomm.iprobe(tag=7), comm.allreduce(1)").check().of(1) == ["(False, 4)"]


def test_cells_on_some_ranks(four):
    out = four.run("%%mpi --ranks 0,2-3\nonly = rank\nrank").check()
    assert [out.of(r) for r in range(4)] == [["0"], [], ["2"], ["3"]]
    out = four.run("%%mpi --ranks 9\n1").check("UsageError")
    assert "there is no rank 9 among 4" in out.text


def test_cells_in_the_kernel_too(four):
    four.run("%%mpi --local\nwho = 'everybody'").check()
    assert four.run("who").check().text == "'everybody'"
    out = four.run("%%mpi --local\nraise KeyError('here')").check("MPICellError")
    assert "not run on the ranks" in out.value


def test_pull_and_push(four):
    four.run("%%mpi\nx = np.arange(3) + rank\ny = {'rank': rank}").check()
    four.run("%mpi pull x y").check()
    out = four.run("import json\nx[2] += 1\njson.dumps([type(x).__name__, [a.tolist() for a in x], y])").check()
    assert json.loads(out.text.strip("'")) == [
        "list",
        [[0, 1, 2], [1, 2, 3], [3, 4, 5], [3, 4, 5]],
        [{"rank": r} for r in range(4)],
    ]
    four.run("%mpi pull x --ranks 1,3").check()
    assert four.run("sorted(x)").check().text == "[1, 3]"
    four.run("import numpy as np\nz = np.ones((3, 100_000))\nword = 'hello'").check()
    four.run("%mpi push z word").check()
    assert four.run("%%mpi\nz[0, 0] = rank\nfloat(z.sum()), word").check().of(2) == ["(300001.0, 'hello')"]
    four.run("%mpi push word --ranks 1").check()


def test_pull_and_push_of_what_is_not_there(four):
    four.run("%%mpi\nif rank == 1: alone = 1\nbad = lambda: 0").check()
    out = four.run("%mpi pull alone").check("MPICellError")
    assert out.value == "alone is not defined on ranks 0, 2, 3"
    assert four.run("alone").error == "NameError"
    assert "not defined in the notebook" in four.run("%mpi push nothing").check("UsageError").text
    assert "pull failed on rank 0" in four.run("%mpi pull bad").check("MPICellError").value
    four.run("%%mpi\n1").check()


def test_status(four):
    out = four.run("%mpi status").check()
    assert out.lines[0].split() == ["rank", "pid", "state", "memory"] and len(out.lines) == 5
    assert all("idle" in line and "MiB" in line for line in out.lines[1:])


def test_input_says_that_it_cant_ask(four):
    out = four.run("%%mpi\nname = input('name? ')").check("MPICellError")
    assert "input() can't ask on a rank" in out.text


def test_exit_ends_the_cell_only(four):
    out = four.run("%%mpi\nimport sys\nprint('before')\nif rank == 0: sys.exit()\nprint('after')").check()
    assert out.of(0) == ["before"] and "Rank 0 left the cell by sys.exit()" in out.text
    four.run("%%mpi\nexit()\nprint('after')").check()
    out = four.run("%%mpi\nsys.exit(3)").check("MPICellError")
    assert out.value == "SystemExit on ranks 0-3"
    assert four.run("%%mpi\nrank").check().of(3) == ["3"]


def test_await_and_magics_within_a_cell(four):
    out = four.run("%%mpi --ranks 0\nimport asyncio\nawait asyncio.sleep(0.01)\n'awaited'").check()
    assert out.of(0) == ["'awaited'"]
    assert "Wall time" in four.run("%%mpi --ranks 1\n%%time\nx = 5").check().text
    assert four.run("%%mpi --ranks 1\n%env HOME\nx").check().of(1) == ["5"]


def test_main_is_the_users_and_pickles(four):
    out = four.run("""
        %%mpi
        class Point:
            def __init__(self, x): self.x = x
        got = comm.bcast(Point(rank), root=1)
        __name__, got.x
        """).check()
    assert out.of(3) == ["('__main__', 1)"]


def test_wrong_options(four):
    assert "'0' is not a number of ranks" in four.run("%%mpi -n 0\n1").check("UsageError").text
    assert "unrecognized arguments: --bogus" in four.run("%%mpi --bogus\n1").check("UsageError").text
    assert "--timeout" in four.run("%%mpi --help\n1").check().text
    assert four.run("%%mpi\nsize").check().of(0) == ["4"]  # the ranks are the same


def test_finalize_says_that_the_next_cell_is_fresh(kernel):
    out = kernel.run("%%mpi -n 2\nfrom gormapy import MPI\nMPI.Finalize()").check()
    assert "MPI was finalized in this cell" in out.text
    out = kernel.run("%%mpi\nfrom gormapy import MPI\nMPI.COMM_WORLD.allreduce(1)").check()
    assert out.of(1) == ["2"]


SHARED = """%%mpi --shared-arrays
import asyncio
inside = np.zeros(100_000)
async def task():
    return np.zeros(100_000)
awaited = await asyncio.create_task(task())
win = MPI.Win.Create(inside, 8, comm=comm)
"""


def test_shared_arrays_of_a_cell(four):
    four.run(SHARED).check()
    look = """%%mpi
    from gormapy._ext import core
    from numpy._core.multiarray import get_handler_name
    print([get_handler_name(a) for a in (inside, awaited, np.zeros(100_000))], core.WinPath(win._h, (rank + 1) % size))
    win.Free()"""
    out = four.run("\n".join(line.strip() for line in look.splitlines())).check()
    assert out.lines == ["[0-3] ['gormapy', 'gormapy', 'default_allocator'] direct"]


def test_a_traced_cell(four, tmp_path):
    path = tmp_path / "trace.json"
    out = four.run(f"%%mpi --trace {path}\nfor _ in range(3): comm.Barrier()", timeout=120).check()
    assert json.loads(path.read_text())
    assert str(path) in out.text and ("gormapy[plot]" in out.text or out.mime("image/png"))
    assert "Barrier" in four.run("print(mpi_trace.summary())").check().text
    four.run("%%mpi --ranks 1,2 --trace\nrank").check()
    out = four.run("mpi_trace.duration, len(mpi_trace.calls)").check()
    assert out.text == "(0.0, 0)"  # no events
    four.run("%%mpi --trace --allow-errors\n1/0").check()
    assert four.run("%%mpi\nfrom gormapy import trace\ntrace.is_on()").check().of(0) == ["False"]


def test_the_time_of_a_traced_cell_begins_with_the_first_rank(four):
    four.run("""
        %%mpi --trace
        import time
        begun = time.monotonic()
        time.sleep(0.4 if rank == 1 else 0.8)
        comm.Barrier()
        """).check()
    four.run("%mpi pull begun").check()
    out = four.run("""
        first = mpi_trace.calls["begin"].min()
        print(0.4 <= first < 5 and mpi_trace.duration >= 0.8, mpi_trace.start <= min(begun) < mpi_trace.start + first)
        """).check()
    assert out.lines == ["True True"], out


def test_output_of_threads_between_cells_comes_with_the_next(four, tmp_path):
    go, done = str(tmp_path / "go"), str(tmp_path / "done")
    four.run(f"""
        %%mpi --ranks 1
        import os, threading, time
        def late():
            while not os.path.exists({go!r}): time.sleep(0.01)
            print("late", flush=True)
            open({done!r}, "w").close()
        threading.Thread(target=late).start()
        """).check()
    four.run(f"""
        import os, time
        open({go!r}, "w").close()
        while not os.path.exists({done!r}): time.sleep(0.01)
        """).check()
    four.run("%mpi status").check()
    out = four.run("%%mpi --ranks 2\nprint('next')").check()
    assert re.fullmatch(r"\[1, after In \[\d+\]\] late\n\[2\] next", out.text), out
    assert out.html.count("gormapy-earlier") == out.html.count("after In [") == 1
    assert four.run("%%mpi --ranks 1\nprint('once')").check().lines == ["[1] once"]


# Prints, displays and prints when the file is there: a thread of rank 1.
LATER = """%%mpi --ranks 1
import os, threading, time
from IPython.display import display
def later(go):
    while not os.path.exists(go): time.sleep(0.01)
    print("before")
    display({{"text/html": "<b>of a thread</b>", "text/plain": "of a thread"}}, raw=True)
    print("after", flush=True)
threading.Thread(target=later, args=({go!r},)).start()"""


@pytest.mark.parametrize("then", ["%mpi stop", "%%mpi -n 2\n1", "%%mpi --fresh\n1", "%%mpi\nprint('here')"])
def test_displays_of_threads_between_cells_come_before_the_ranks_end(kernel, tmp_path, then):
    kernel.run("%%mpi -n 4\nfrom gormapy import MPI").check()
    number = kernel.run("len(In)").check().text  # of the next cell
    go = tmp_path / "go"
    kernel.run(LATER.format(go=str(go))).check()
    kernel.run(f"import time\nopen({str(go)!r}, 'w').close()\ntime.sleep(0.5)").check()  # nobody reads meanwhile
    seen = kernel.run("%mpi status").check()  # takes the display, and the thread goes on
    assert "thread" not in seen.text
    kernel.run("time.sleep(0.5)").check()
    out = kernel.run(then).check()
    mark = f"[1, after In [{number}]]"
    assert out.lines[:3] == [f"{mark} {text}" for text in ("before", "of a thread", "after")], out
    assert out.html.count("<b>of a thread</b>") == 1
    assert not any(mark in line for line in out.lines[3:])


def test_very_much_output_between_cells_is_cut_and_says_so(four, tmp_path):
    go, done = str(tmp_path / "go"), str(tmp_path / "done")
    four.run(f"""
        %%mpi --ranks 0
        import os, threading, time
        def flood():
            while not os.path.exists({go!r}): time.sleep(0.01)
            for i in range(40): print(str(i).zfill(100_000), flush=True)
            open({done!r}, "w").close()
        threading.Thread(target=flood).start()
        """).check()
    open(go, "w").close()
    for _ in range(200):
        four.run("%mpi status").check()
        if os.path.exists(done):
            break
    out = four.run("%%mpi --ranks 0\nprint('next')").check()
    assert out.lines[-1] == "[0] next" and len(out.text) < 4 * 60_000
    assert "came meanwhile: the rest is not shown" in out.text and "are not shown ...]" in out.text
