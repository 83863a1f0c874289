"""The workflows of .github call what there is here: nobody runs them before they are needed."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(
    re.findall(r"[\w-]+", " ".join(re.findall(r"^([\w -]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE)))
)


def parsed(path):
    """Return what a file in YAML says."""
    return pytest.importorskip("yaml").safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_what_there_is(path):
    for name, job in parsed(path)["jobs"].items():
        assert job["timeout-minutes"] <= 360, name  # after which the service ends a job by itself
        commands = [step["run"] for step in job["steps"] if "run" in step]
        called = [target for command in commands for target in re.findall(r"(?:^|&& )make ([\w-]+)", command)]
        scripts = [script for command in commands for script in re.findall(r"\bbash (\S+)", command)]
        assert called or scripts, name
        assert set(called) <= TARGETS, name
        assert all((ROOT / script).exists() for script in scripts), name
        for step in job["steps"]:
            assert "run" in step or re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step["uses"]), name


def test_what_makes_roots_and_guests_runs_in_a_debian():
    """tests/packaging/wheels has them made by Debian's apt-get and by root: a runner's own system is neither."""
    for path in WORKFLOWS:
        for name, job in parsed(path)["jobs"].items():
            assert job["container"]["image"].startswith("debian:"), f"{path.name}: {name}"
            assert "--privileged" in job["container"]["options"], f"{path.name}: {name}"
            assert not any("sudo" in step.get("run", "") for step in job["steps"]), f"{path.name}: {name}"


def test_forms_ask_for_info():
    for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")):
        form = parsed(path)
        assert {"name", "description", "body"} <= set(form), path.name
        assert any(item["attributes"]["label"] == "python -m gormapy info" for item in form["body"]), path.name
