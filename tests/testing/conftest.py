"""Runs pytest on small suites, in processes of its own."""

import os
import shutil
import signal
import subprocess
import sys
import uuid
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support import leftovers
from support.mpirun import environment

SUITES = Path(__file__).parent / "suites"
WITHIN = 150.0


@dataclass(repr=False)
class Done:
    """How a run of pytest ended."""

    status: int
    out: str
    cases: dict = field(default_factory=dict)  # by the name of the test: "passed", or the kind and text of what failed

    def __repr__(self):
        return f"status {self.status}\n{self.out}"

    def check(self, status=0, **counts):
        """Expect a status, and in the last line of pytest numbers such as passed=3, and no others."""
        assert self.status == status, str(self)
        last = self.out.strip().splitlines()[-1].strip("= ")
        found = {word: int(number) for number, word in (p.split()[:2] for p in last.rpartition(" in ")[0].split(", "))}
        found.pop("deselected", None)
        found = {word.rstrip("s") if word.startswith(("error", "warning")) else word: n for word, n in found.items()}
        assert found == counts, str(self)
        return self

    def kind(self, name):
        """Return "passed", "failure", "error" or "skipped"."""
        return self.cases[name][0]

    def text(self, name):
        """Return what pytest says of a test that has not passed."""
        return self.cases[name][1]


class Suite:
    """A folder with a suite, and runs of pytest in it."""

    def __init__(self, folder):
        self.folder = folder
        self.marks = []

    def take(self, name):
        """Copy a suite here."""
        shutil.copy(SUITES / f"{name}.py", self.folder / f"test_{name}.py")
        return self

    def write(self, name, text):
        """Write a file here."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return self

    def start(self, *args, env=None, python=("-m", "pytest")):
        """Start pytest."""
        mark = f"GORMAPYTEST_JOB={uuid.uuid4().hex}"
        self.marks.append(mark)
        name, _, value = mark.partition("=")
        mine = {key: None for key in os.environ if key.startswith(("PYTEST_", "COV_", "COVERAGE_"))}
        given = environment({**mine, name: value, "COLUMNS": "200", **(env or {})})
        command = [sys.executable, *python, "-p", "no:cacheprovider", *map(str, args)]
        if "--lf" in args or "--keep-cache" in args:
            command = [part for part in command if part not in ("-p", "no:cacheprovider", "--keep-cache")]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=given,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )

    def __call__(self, *args, **options):
        """Run pytest; whatever it says of each test is in ``cases``."""
        xml = self.folder / "junit.xml"
        process = self.start(*args, "--junitxml", xml, **options)
        return self.finish(process, xml)

    def finish(self, process, xml=None):
        """Wait for the end, and look after what is left."""
        try:
            out, _ = process.communicate(timeout=WITHIN)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
            raise AssertionError(f"pytest did not end within {WITHIN} s\n{out}") from None
        left = leftovers.after(self.marks[-1], leftovers.names())
        assert not left, f"left behind: {left}\n{out}"
        return Done(process.returncode, out, _cases(xml) if xml is not None and xml.exists() else {})

    def close(self):
        """End what a failed test has left."""
        for mark in self.marks:
            for line in leftovers.processes(mark):
                os.kill(int(line.partition(":")[0]), signal.SIGKILL)


def _cases(xml):
    cases = {}
    for case in ElementTree.parse(xml).iter("testcase"):
        found = [e for e in case if e.tag in ("failure", "error", "skipped")]
        text = "\n".join(f"{e.get('message')}\n{e.text or ''}" for e in found)
        out = "".join(e.text or "" for e in case if e.tag in ("system-out", "system-err"))
        kind = found[0].tag if found else "passed"
        if case.get("name") in cases:
            kind, text = cases[case.get("name")][0], f"{cases[case.get('name')][1]}\n{kind}: {text}"
        cases[case.get("name")] = kind, text, out
    return cases


@pytest.fixture
def suite(tmp_path):
    """A folder for a suite."""
    made = Suite(tmp_path)
    yield made
    made.close()
