"""The course as a whole: what notebooks/README.md says of it, and what every lesson has."""

import re
from pathlib import Path

from lessons import source

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
TEXT = (FOLDER / "README.md").read_text(encoding="utf-8")


def lessons():
    return {int(path.name[:2]): source.read(path) for path in (FOLDER / "source").glob("*.md")}


def test_the_ways_take_the_minutes_that_their_lessons_say():
    rows = re.findall(r"^\| [\w ]+ \| ([\d, ]+) \| (\d+) \|$", TEXT, re.MULTILINE)
    course = lessons()
    assert len(rows) == 2 + 14
    for numbers, minutes in rows:
        assert sum(course[int(number)].minutes for number in numbers.split(",")) == int(minutes), numbers
    weeks = [int(number) for numbers, _ in rows[2:] for number in numbers.split(",")]
    assert weeks == sorted(course)


def test_every_lesson_has_exercises_with_hints_that_end_in_asserts():
    for lesson in lessons().values():
        kinds = [cell.kind for cell in lesson.cells]
        assert 2 <= lesson.exercises <= (12 if lesson.name == "18-find-the-race" else 4), lesson.path
        for at, kind in enumerate(kinds):
            if kind == "exercise":
                after = kinds[at + 1 :]
                inside = after[: next((i for i, k in enumerate(after) if k not in ("hint", "solution")), None)]
                assert "hint" in inside, f"{lesson.path}:{lesson.cells[at].line}: an exercise without a hint"
                solutions = [cell.text for cell in lesson.cells[at + 1 :][: len(inside)] if cell.kind == "solution"]
                assert "assert " in "".join(solutions), f"{lesson.path}:{lesson.cells[at].line}: nothing is checked"


def test_every_lesson_says_what_is_different_elsewhere_and_where_to_read_on():
    for lesson in lessons().values():
        text = lesson.path.read_text(encoding="utf-8")
        assert lesson.minutes, lesson.path
        assert 15 <= lesson.size <= 25, lesson.path
        assert "> **Moving on.**" in text, lesson.path
        assert "https://www.mpi-forum.org/docs/" in text, lesson.path


def test_links_lead_to_lessons():
    names = {lesson.name for lesson in lessons().values()}
    for lesson in lessons().values():
        text = lesson.path.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)]+)\.ipynb", text):
            assert target in names, f"{lesson.path}: there is no lesson {target}"
        for label, number in re.findall(r"\[lesson\s+(\d+)\]\((\d\d)-", text, re.IGNORECASE):
            assert int(label) == int(number), f"{lesson.path}: 'lesson {label}' leads to {number}"
