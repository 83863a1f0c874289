"""The corpus of the checker has what it is to have, and its labels can be trusted as far as that shows in the text."""

import ast
from collections import Counter

import labels
import pytest

EVERY = labels.every()
ONE_CALL = {"load", "store"}


def counts():
    """Return how many programs there are of each verdict and class."""
    return Counter((label.verdict, *label.classes[:1]) for label in EVERY)


def test_there_are_enough_programs():
    verdicts = Counter(label.verdict for label in EVERY)
    assert len(EVERY) >= 200
    assert 0.4 <= verdicts["clean"] / len(EVERY) <= 0.6
    assert verdicts["contested"] >= 3


@pytest.mark.parametrize("name", labels.CLASSES)
def test_every_class_has_programs(name):
    assert counts()["bad", name] >= 5
    # A module is about classes that are alike, so its clean programs are the twins of its bad ones.
    near = {label.file for label in EVERY if name in label.classes}
    assert sum(label.verdict == "clean" for label in EVERY if label.file in near) >= 3


def test_names_are_of_one_program():
    twice = [name for name, times in Counter(map(str, EVERY)).items() if times > 1]
    assert not twice


@pytest.mark.parametrize("label", EVERY, ids=str)
def test_marks_fit(label):
    marked = {which for which in (1, 2) if label.lines(which)}
    if label.verdict == "clean":
        assert not marked
    elif set(label.classes) & set(labels.RACES):
        assert marked == {1, 2}
    else:
        assert 1 in marked
    lines = label.file.read_text().splitlines()
    for mark in label.marks:
        code = lines[mark.line - 1].partition("  # ")[0]
        for call in set(mark.calls) - ONE_CALL:
            assert f"{call}(" in code, f"line {mark.line} does not call {call}: {code.strip()}"


@pytest.mark.parametrize("file", labels.modules(), ids=lambda file: file.stem)
def test_modules_are_readable(file):
    text = file.read_text()
    assert len(text.splitlines()) <= 430
    assert ast.get_docstring(ast.parse(text))


@pytest.mark.parametrize(
    "label, says",
    [
        ("", "has no label"),
        ("  # check: no-such-class n=2", "no such class: no-such-class"),
        ("  # check: clean", "the number of ranks once"),
        ("  # check: clean n=2 n=3", "the number of ranks once"),
        ("  # check: clean n=2 fast", "no such flag: fast"),
    ],
)
def test_what_is_no_label(tmp_path, label, says):
    file = tmp_path / "wrong.py"
    file.write_text(f"def program():{label}\n    pass\n")
    with pytest.raises(ValueError, match=says):
        labels.of(file)


def test_a_label_is_read(tmp_path):
    file = tmp_path / "right.py"
    file.write_text(
        "def _helper():\n    pass\n\n\n# from: RMARaceBench sync-001\n"
        "def program():  # check: contested flush-missing|local-access n=3 near caught\n"
        "    put()  # 1: Put, 2: Put\n    load()  # 2: Send|load\n    other()  # see 1: no mark\n"
    )
    (label,) = labels.of(file)
    assert str(label) == "right:program" and label.verdict == "contested" and label.n == 3
    assert label.classes == ("flush-missing", "local-access") and label.flags == {"near", "caught"}
    assert label.origin == "RMARaceBench sync-001"
    assert label.marks == ((1, ("Put",), 7), (2, ("Put",), 7), (2, ("Send", "load"), 8))
    assert label.lines(2) == [7, 8]
