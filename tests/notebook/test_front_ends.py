"""Front ends other than JupyterLab: the messages they get, notebooks that are saved, IPython on a terminal."""

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
import uuid

import nbformat
import pytest
from kernels import Kernel
from support import leftovers
from support.mpirun import environment

SETUP = """%%mpi -n 4
from gormapy import MPI
import time
comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
print("rank", rank)"""

# Cells that show all there is to show: text, pictures, values, remarks, failures, deadlocks.
CELLS = {
    "start": SETUP,
    "text": "%%mpi\nfor i in range(3):\n    print(i, flush=True); time.sleep(0.3)",
    "value": "%%mpi\n{'rank': rank}",
    "rich": "%%mpi\nfrom IPython.display import HTML, SVG, Markdown, display\ndisplay(HTML('<b>x</b>'), Markdown('*y*'))\n"
    "display({'application/x-own': {'a': [1]}, 'text/plain': 'own'}, raw=True)",
    "figure": "%%mpi --ranks 0\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]);",
    "failure": "%%mpi\nif rank == 1: 1 / 0\ncomm.Barrier()",
    "deadlock": "%%mpi\ncomm.recv(source=(rank + 1) % size)",
    "death": "%%mpi\nimport os\nif rank == 2: os._exit(3)\ncomm.Barrier()",
    "status": "%mpi status",
}


def messages(kernel, code):
    """Run a cell; return what the kernel published for it."""
    asked, found = kernel.client.execute(code, allow_stdin=False), []
    end = time.monotonic() + 60
    while time.monotonic() < end:
        message = kernel.client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") != asked:
            continue
        found.append(message)
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            return found
    raise AssertionError("the cell did not end")


def saved(found):
    """Return the outputs that a front end without updates of displays keeps, and one with them."""
    plain, updated, ids = [], [], {}
    for message in found:
        kind, content = message["msg_type"], message["content"]
        if kind in ("stream", "display_data", "execute_result", "error"):
            for outputs in (plain, updated):
                outputs.append(nbformat.v4.output_from_msg(message))
            ids.setdefault(content.get("transient", {}).get("display_id"), []).append(updated[-1])
        elif kind == "clear_output":
            plain.clear(), updated.clear(), ids.clear()
        elif kind == "update_display_data":
            for output in ids[content["transient"]["display_id"]]:
                output["data"], output["metadata"] = content["data"], content["metadata"]
    return plain, updated


def test_messages_are_legal_and_notebooks_valid(kernel):
    book = nbformat.v4.new_notebook()
    for name, code in CELLS.items():
        found = messages(kernel, code)
        kinds = {m["msg_type"] for m in found}
        assert kinds <= {
            "status", "execute_input", "stream", "display_data", "update_display_data", "execute_result", "error",
            "clear_output",
        }, f"{name}: {kinds}"  # fmt: skip
        for message in found:
            content = message["content"]
            json.dumps(content)
            if "data" not in content:
                continue
            assert isinstance(content["data"]["text/plain"], str) and isinstance(content["metadata"], dict), name
            for mime, value in content["data"].items():
                assert isinstance(value, str) or mime.endswith("json") or "x-own" in mime, (name, mime)
        plain, updated = saved(found)
        cell = nbformat.v4.new_code_cell(code, execution_count=len(book.cells) + 1)
        cell.outputs = updated
        book.cells.append(cell)
        if name in ("failure", "deadlock", "death", "status"):  # others may take longer than a moment
            assert plain == updated, f"{name}: a front end without updates would show something else"
        words = "\n".join(o.get("text") or o.get("evalue") or o["data"]["text/plain"] for o in updated)
        assert words.strip(), name
        if name == "deadlock":
            assert "Deadlock: ranks 0-3 wait for each other" in words and re.search(r"^rank +call", words, re.MULTILINE)
        if name == "failure":
            assert re.search(r"^\[1\] ZeroDivisionError", words, re.MULTILINE)
    nbformat.validate(book)
    again = nbformat.reads(nbformat.writes(book), as_version=4)
    assert again.cells == book.cells


LONG = "%%mpi\nfor i in range(3):\n    print(i, flush=True); time.sleep(0.5)\nif rank == 1: 1 / 0"


@pytest.mark.parametrize("why", ["setting", "old messages"])
def test_front_ends_without_updates_show_all_output_at_the_end(kernel, why):
    kernel.run(SETUP).check()
    kernel.run("%config MPIMagics.progress_after = 0.5").check()
    if why == "setting":
        kernel.run("%config MPIMagics.live_output = False").check()
    else:
        new = kernel.client.session.msg_header
        kernel.client.session.msg_header = lambda kind: {**new(kind), "version": "5.0"}
    for code in (LONG, CELLS["death"], SETUP, CELLS["deadlock"], "%%mpi --timeout 2\nprint(1)\ntime.sleep(50)"):
        found = messages(kernel, code)
        assert not {m["msg_type"] for m in found} & {"update_display_data", "clear_output"}
        plain, updated = saved(found)
        assert plain == updated
        if code == LONG:
            words = plain[0]["data"]["text/plain"]
            assert words.startswith("[0, 2-3] 0\n") or words.startswith("[0-3] 0\n[0-3] 1\n[0-3] 2\n"), words
            assert "\n[1] ZeroDivisionError" in words and plain[0]["data"]["text/html"].count(">0\n1\n2<") >= 1
        if "print(1)" in code:
            assert any(o.get("data", {}).get("text/plain", "").startswith("[0-3] 1") for o in plain)


def test_captured_cells_keep_the_output_once(kernel):
    kernel.run(SETUP).check()
    kernel.run("%%capture kept\n" + LONG.replace("1 / 0", "print('one')")).check()
    assert kernel.run("len(kept.outputs)").check().text == "1"
    out = kernel.run("kept()").check()
    assert out.of(1) == ["0", "1", "2", "one"] and out.of(3) == ["0", "1", "2"]


def test_two_notebooks_at_once(tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    with Kernel(folders[0]) as one, Kernel(folders[1]) as two:
        one.before = two.before  # each has names of its own
        for number, kernel in enumerate((one, two)):
            kernel.run(f"{SETUP}\nmine = {10**number}").check()
        code = "%%mpi\nfor _ in range(300): total = comm.allreduce(mine)\ntotal"
        asked = [kernel.begin(code) for kernel in (one, two)]
        for number, kernel in enumerate((one, two)):
            out = kernel.finish(asked[number]).check()
            assert [out.of(r) for r in range(4)] == [[str(4 * 10**number)]] * 4
        one.run("%mpi stop").check()
        assert two.run("%%mpi\ncomm.allreduce(mine)").check().of(3) == ["40"]


# Ctrl-C is for the processes of whom the terminal is.
START_IPYTHON = """
import fcntl, termios
from IPython import start_ipython
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
start_ipython(["--no-banner", "--simple-prompt", "--colors=nocolor", "--no-confirm-exit"])
"""


class Terminal:
    """IPython on a terminal of its own."""

    def __init__(self, folder):
        self.mark = f"GORMAPYTEST_JOB={uuid.uuid4().hex}"
        self.before = leftovers.names()
        name, _, value = self.mark.partition("=")
        env = environment({name: value, "IPYTHONDIR": folder, "TERM": "dumb"})
        ours, theirs = pty.openpty()
        self.fd, self.text = ours, ""
        self.process = subprocess.Popen(
            [sys.executable, "-c", START_IPYTHON],
            stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=folder, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)

    def see(self, pattern, patience=60.0):
        """Read until the pattern has come; return what came up to its end."""
        end = time.monotonic() + patience
        while not (match := re.search(pattern, self.text, re.MULTILINE)):
            assert time.monotonic() < end, f"{pattern!r} did not come within {patience} s, but:\n{self.text}"
            if select.select([self.fd], [], [], 0.1)[0]:
                self.text += os.read(self.fd, 65536).decode(errors="replace").replace("\r\n", "\n")
        seen, self.text = self.text[: match.end()], self.text[match.end() :]
        return seen

    def type(self, text):
        """Type text."""
        os.write(self.fd, text.encode())

    def enter(self, code):
        """Type a cell, each line when it is asked for: what is typed ahead may be lost while readline sets the terminal up."""
        *lines, last = [*code.split("\n"), "", ""] if "\n" in code else [code]
        for line in lines:
            self.type(line + "\n")
            self.see(r"\.\.\.: $")
        self.type(last + "\n")

    def run(self, code):
        """Type a cell, wait for the next prompt, and return what came before it."""
        self.enter(code)
        return self.see(r"^In \[\d+\]: $")


@pytest.fixture
def terminal(tmp_path):
    """IPython, which leaves nothing behind whatever the test does."""
    terminal = Terminal(tmp_path)
    try:
        yield terminal
    finally:
        terminal.process.kill()
        terminal.process.wait(10)
        os.close(terminal.fd)
    assert not leftovers.after(terminal.mark, terminal.before, 8.0)


def test_a_terminal(terminal):
    terminal.see(r"^In \[1\]: $")
    terminal.run("%load_ext gormapy")
    out = terminal.run(SETUP)
    assert all(f"[{r}] rank {r}\n" in out for r in range(4))
    out = terminal.run("%%mpi\nif rank == 1: 1 / 0")
    assert re.search(r"^\[1\] ZeroDivisionError: division by zero$", out, re.MULTILINE)
    assert "MPICellError: ZeroDivisionError on rank 1" in out and "<div" not in out

    terminal.enter("%%mpi\nprint('here', rank)\ntime.sleep(50)")
    terminal.see(r"\[3\] here 3$")
    begun = time.monotonic()
    terminal.type("\x03")
    out = terminal.see(r"^In \[\d+\]: $")
    assert "CellInterrupted" in out and time.monotonic() - begun < 20
    out = terminal.run("%%mpi\nrank + comm.allreduce(1)")
    assert all(f"[{r}] {r + 4}\n" in out for r in range(4))

    out = terminal.run("%%mpi\ncomm.recv(source=(rank + 1) % size)")
    assert "Deadlock: ranks 0-3 wait for each other" in out
    assert re.search(r"^rank +call +waits for +on +line *$", out, re.MULTILINE) and "<svg" not in out

    # without %mpi stop
    terminal.type("exit\n")
    assert terminal.process.wait(20) == 0
    assert not leftovers.after(terminal.mark, terminal.before, 8.0)
