"""What is in the way of a release, and the notes of one."""

import subprocess

import pytest

from gormapy_build import project, release

CHANGELOG = """# Changes

## 1.2.3 ({date})

- A [page](docs/page.md), and [another site](https://example.org/a).

## 1.2.2 (2025-12-31)

- Older.
"""
CITATION = "cff-version: 1.2.0\nversion: {version}\ndate-released: {date}\n"


def tree(folder, date="2026-01-31", version="1.2.3", released="2026-01-31"):
    """Make a tree that git has."""
    (folder / "python" / "gormapy").mkdir(parents=True)
    (folder / "python" / "gormapy" / "_version.py").write_text('__version__ = "1.2.3"\n')
    (folder / "CHANGELOG.md").write_text(CHANGELOG.format(date=date))
    (folder / "CITATION.cff").write_text(CITATION.format(version=version, date=released))
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "all"]):
        subprocess.run(["git", *words], cwd=folder, check=True)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """The folder that is taken for the project."""
    monkeypatch.setattr(project, "ROOT", tmp_path)
    return tmp_path


def test_notes_are_those_of_the_version(root):
    tree(root)
    assert release.notes() == "- A page, and [another site](https://example.org/a).\n"


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"date": "unreleased"}, "CHANGELOG.md says 'unreleased' where the date of 1.2.3 is to be"),
        ({"version": "1.2.2"}, "CITATION.cff has another version"),
        ({"released": "2026-01-30"}, "CITATION.cff has another date-released"),
    ],
)
def test_what_is_inconsistent_is_said(root, wrong, reason):
    tree(root, **wrong)
    with pytest.raises(SystemExit, match=reason):
        release.notes()


def test_a_tree_that_git_does_not_have_is_refused(root):
    tree(root)
    (root / "new").touch()
    with pytest.raises(SystemExit, match="the tree is not what git has"):
        release.notes()
