"""docs/checking-classes.md: each program gives the report that the page shows, and the mended one gives none."""

import re

import pytest
from manual import classes

pytestmark = [
    pytest.mark.one_node("mpiexec --check needs ranks on one host"),
    pytest.mark.shm("loads and stores are seen where ranks share memory"),
]

TEXT = classes.PAGE.read_text(encoding="utf-8")
BLOCKS = classes.blocks(TEXT)


def test_all_classes_are_there():
    from gormapy.check import kinds

    assert tuple(BLOCKS) == kinds.CLASSES
    there = {file.name for file in classes.PROGRAMS.glob("*.py")}
    assert there == {file.name for name in BLOCKS for file in (classes.program(name), classes.mended(name))}
    table = (classes.DOCS / "checking.md").read_text(encoding="utf-8")
    assert re.findall(r"\[([\w-]+)\]\(checking-classes\.md#\1\)", table) == list(BLOCKS)


def test_the_page_has_the_programs():
    reports = {name: blocks["text"] for name, blocks in BLOCKS.items()}
    assert classes.written(TEXT, reports) == TEXT, "run 'make checking-classes'"


@pytest.mark.parametrize("name", BLOCKS)
def test_class(mpirun, name):
    lines = [line for line in BLOCKS[name]["python"].splitlines() if line]
    assert len(lines) <= 12
    mpirun(2, classes.program(name))  # it ends well
    said = mpirun(2, classes.program(name), launcher=["--check"], expect=1).stderr
    assert classes.report(name, said) == BLOCKS[name]["text"], "run 'make checking-classes'"
    mended = mpirun(2, classes.mended(name), launcher=["--check"])
    assert mended.stderr.strip() == "mpiexec --check: nothing was found in this run"


def test_a_report_is_of_one_finding():
    with pytest.raises(ValueError, match="has to have one finding"):
        classes.report("epoch-open", "mpiexec --check: nothing was found in this run")
    two = "mpiexec --check found epoch-open: a\nmpiexec --check found epoch-open: b\nmpiexec --check: 2 findings"
    with pytest.raises(ValueError, match="has to have one finding"):
        classes.report("epoch-open", two)


def test_blocks_are_replaced_in_their_order():
    name = next(iter(BLOCKS))
    with pytest.raises(ValueError, match="needs the blocks python, text, diff"):
        classes.written(f"## {name}\n\n```text\n```\n\n```python\n```\n\n```diff\n```\n", {name: ""})
