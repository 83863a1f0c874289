"""A JupyterLab server and a person at its keyboard: what the tests in this folder are made of.

The server listens on the loopback interface, with a token, in folders of its own, and is ended by `timeout` if
nothing else does it. A `Notebook` types cells and presses buttons, and reads what is on the page.
"""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.request
import uuid
from pathlib import Path

import nbformat
from support import leftovers
from support.mpirun import environment

SCREENSHOTS = Path(__file__).resolve().parents[2] / ".cache" / "screenshots"
LIVES = 400  # seconds until the server is ended, whatever happens to the test
START = 90.0
PATIENCE = 60.0

# No news from the internet, no cells taken off the page when they are scrolled away, no question at the start.
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    "@jupyterlab/codemirror-extension:plugin": {"defaultConfig": {"autoClosingBrackets": False}},
}


class Server:
    """A JupyterLab server; leaving the context ends it and looks for leftovers."""

    def __init__(self, folder):
        self.folder = folder
        self.mark = f"GORMAPYTEST_JOB={uuid.uuid4().hex}"
        self.token = secrets.token_hex(16)

    def __enter__(self):
        self.before = leftovers.names()
        for name in ("settings", "files", "runtime"):
            (self.folder / name).mkdir()
        (self.folder / "settings" / "overrides.json").write_text(json.dumps(SETTINGS))
        name, _, value = self.mark.partition("=")
        env = environment(
            {
                name: value,
                "HOME": self.folder,
                "JUPYTER_TOKEN": self.token,
                "JUPYTER_CONFIG_DIR": self.folder / "config",
                "JUPYTER_DATA_DIR": self.folder / "data",
                "JUPYTER_RUNTIME_DIR": self.folder / "runtime",
                "JUPYTERLAB_SETTINGS_DIR": self.folder / "user",
                "JUPYTERLAB_WORKSPACES_DIR": self.folder / "workspaces",
                "IPYTHONDIR": self.folder / "ipython",
            }
        )
        command = [
            "timeout", "--kill-after=5", str(LIVES),
            sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
            "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0",
            "--LabApp.extension_manager=readonly", "--LabApp.expose_app_in_browser=True",
            f"--LabApp.app_settings_dir={self.folder / 'settings'}",
        ]  # fmt: skip
        with open(self.folder / "server.log", "wb") as log:
            self.process = subprocess.Popen(
                command, cwd=self.folder / "files", env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        try:
            self.url = self._url()
        except BaseException:
            self._end()
            raise
        return self

    def _url(self):
        end = time.monotonic() + START
        while time.monotonic() < end and self.process.poll() is None:
            for path in (self.folder / "runtime").glob("jpserver-*.json"):
                with contextlib.suppress(ValueError, KeyError):
                    told = json.loads(path.read_text())
                    if told["port"]:
                        return f"http://127.0.0.1:{told['port']}/"
            time.sleep(0.1)
        raise RuntimeError(f"JupyterLab did not start:\n{self.log()}")

    def log(self):
        """Return the end of what the server wrote."""
        return (self.folder / "server.log").read_text(errors="replace")[-5000:]

    def _end(self):
        self.process.terminate()  # timeout hands it on
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(15)
        left = self.left(5.0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(5)
        for line in left:
            with contextlib.suppress(ValueError, ProcessLookupError):
                os.kill(int(line.partition(":")[0]), signal.SIGKILL)
        return left

    def __exit__(self, *exc):
        left = self._end()
        if exc[0] is None:
            assert not left, "JupyterLab left behind:\n" + "\n".join(left)

    def left(self, patience):
        """Return what there is of the server, its kernels and their ranks."""
        return leftovers.after(self.mark, self.before, patience)

    def ranks(self):
        """Return the processes of ranks and launchers, as "pid: command" texts."""
        return [line for line in leftovers.processes(self.mark) if "gormapy" in line]

    def no_ranks(self, patience=10.0):
        """Assert that ranks, launchers and what they had are gone."""
        end = time.monotonic() + patience
        while True:
            left = self.ranks() + sorted(leftovers.names() - self.before)
            if not left:
                return
            assert time.monotonic() < end, "left behind:\n" + "\n".join(left)
            time.sleep(0.1)

    def kernels(self):
        """Return the processes of kernels."""
        return [line for line in leftovers.processes(self.mark) if "ipykernel" in line and "gormapy.magic" not in line]

    def shut_down(self):
        """End all kernels."""
        for kernel in self._ask("GET", "api/kernels"):
            self._ask("DELETE", f"api/kernels/{kernel['id']}")

    def _ask(self, method, path):
        headers = {"Authorization": f"token {self.token}"}
        request = urllib.request.Request(self.url + path, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or "null")

    def new(self, name):
        """Write an empty notebook, and return its path."""
        path = self.folder / "files" / name
        book = nbformat.v4.new_notebook()
        book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(book, path)
        return path


class Notebook:
    """A notebook in a tab of the browser, used by keyboard and mouse."""

    def __init__(self, server, context, name):
        self.server, self.name = server, name
        self.path = self.server.folder / "files" / name
        if not self.path.exists():
            server.new(name)
        self.page = context.new_page()
        self.page.set_default_timeout(PATIENCE * 1000)
        self.open()

    def open(self):
        """Go to the notebook and wait until its kernel is ready."""
        workspace = f"w{uuid.uuid4().hex[:8]}"
        self.page.goto(f"{self.server.url}lab/workspaces/{workspace}/tree/{self.name}?token={self.server.token}")
        self.page.wait_for_selector(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell")
        if self.page.locator(".jp-SideBar .lm-mod-current").count():
            self.page.keyboard.press("Control+b")  # the file browser takes room
        self.ready()

    def ready(self):
        """Wait until the notebook has a kernel, and it is idle."""
        # A cell that is run before that makes JupyterLab ask for a kernel.
        self.page.wait_for_function("window.jupyterapp?.shell.currentWidget?.sessionContext?.isReady")
        self.page.wait_for_selector('.jp-Notebook-ExecutionIndicator[data-status="idle"]')

    @property
    def cells(self):
        """The notebook's cells on the page."""
        return self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook .jp-Cell")

    def begin(self, code):
        """Type a cell at the end of the notebook and press Shift+Enter; return its number on the page."""
        number = self.cells.count() - 1
        editor = self.cells.nth(number).locator(".cm-content")
        editor.click()
        self.page.keyboard.insert_text(code)
        self.page.keyboard.press("Shift+Enter")
        self.cells.nth(number + 1).wait_for()
        return number

    def finish(self, number, patience=PATIENCE):
        """Wait for a cell's end; return the text that it shows."""
        prompt = self.cells.nth(number).locator(".jp-InputPrompt")
        end = time.monotonic() + patience
        while not any(c.isdigit() for c in prompt.inner_text()):
            assert time.monotonic() < end, f"the cell did not end within {patience} s:\n{self.text(number)}"
            self.page.wait_for_timeout(100)
        self.page.wait_for_timeout(150)  # what came last is drawn
        return self.text(number)

    def run(self, code, patience=PATIENCE):
        """Type and run a cell; return its number and the text that it shows."""
        number = self.begin(code)
        return number, self.finish(number, patience)

    def text(self, number):
        """Return what a cell shows, as a person would read it."""
        area = self.cells.nth(number).locator(".jp-OutputArea")
        return area.first.inner_text() if area.count() else ""

    def see(self, number, text, patience=PATIENCE):
        """Wait until a cell shows a text."""
        end = time.monotonic() + patience
        while text not in self.text(number):
            assert time.monotonic() < end, f"{text!r} was not shown within {patience} s, but:\n{self.text(number)}"
            self.page.wait_for_timeout(100)

    def of(self, number, rank):
        """Return what a cell shows of one rank."""
        blocks = self.cells.nth(number).locator(f'.gormapy-rank[data-ranks="{rank}"] .gormapy-body')
        return "\n".join(blocks.all_inner_texts())

    def stop(self):
        """Press the stop button."""
        self.page.locator(
            '.jp-NotebookPanel:not(.lm-mod-hidden) .jp-Toolbar [data-jp-item-name="interrupt"] jp-button'
        ).click()

    def menu(self, *path):
        """Choose from the menus: the menu's name and the beginnings of its entries."""
        self.page.locator(".lm-MenuBar-itemLabel", has_text=path[0]).first.click()
        for entry in path[1:]:
            self.page.locator(".lm-Menu-itemLabel", has_text=entry).first.click()

    def theme(self, name):
        """Choose the theme Light or Dark."""
        self.menu("Settings", "Theme", f"JupyterLab {name}")
        self.page.wait_for_selector(f'body[data-jp-theme-name="JupyterLab {name}"]', state="attached")
        self.page.wait_for_timeout(300)

    def agree(self, text):
        """Press a button of a question."""
        self.page.locator(".jp-Dialog-button", has_text=text).last.click()
        self.page.locator(".jp-Dialog").wait_for(state="detached")

    def restart(self):
        """Restart the kernel by the menu."""
        self.menu("Kernel", "Restart Kernel…")
        self.agree("Restart")
        self.page.wait_for_timeout(500)
        self.ready()

    def save(self):
        """Save, and return the notebook as it is on the disk."""
        before = self.path.stat().st_mtime_ns
        self.page.keyboard.press("Control+s")
        end = time.monotonic() + PATIENCE
        while True:
            if self.path.stat().st_mtime_ns != before:
                try:
                    return nbformat.read(self.path, as_version=4)
                except nbformat.reader.NotJSONError:
                    pass  # it is being written
            assert time.monotonic() < end, "the notebook was not saved"
            self.page.wait_for_timeout(100)

    def picture(self, name, number=None):
        """Take a screenshot, with a cell in sight."""
        if number is not None:
            self.cells.nth(number).scroll_into_view_if_needed()
            self.cells.nth(number).evaluate("cell => cell.scrollIntoView({block: 'end'})")
            self.page.wait_for_timeout(200)
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")
