"""python -m gormapy names what there is."""

import importlib.util
import re
import subprocess
import sys

from support.mpirun import environment

import gormapy


def command(*args):
    """Run python -m gormapy."""
    return subprocess.run(
        [sys.executable, "-m", "gormapy", *args], env=environment(), capture_output=True, text=True, timeout=30
    )


def test_version():
    assert command("--version").stdout == f"gormapy {gormapy.__version__}\n"


def test_help_names_commands_that_exist():
    usage = command("--help").stdout
    names = set(re.findall(r"gormapy\.(?:run|launch|bench)\b", usage))
    examples = re.search(r"run an example: (.*)", usage)[1].split(", ")
    names |= {f"gormapy.examples.{name}" for name in examples}
    assert len(names) == 3 + len(examples)
    for name in names:
        assert importlib.util.find_spec(name) is not None, name


def test_unknown_command_is_refused():
    done = command("inof")
    assert done.returncode == 2
    assert "there is no command 'inof'" in done.stderr
