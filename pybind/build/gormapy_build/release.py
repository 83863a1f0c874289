"""What a release needs beside passing tests: one version everywhere, notes, and a tree that git has."""

from __future__ import annotations

import re
import subprocess

from . import project


def notes() -> str:
    """The part of CHANGELOG.md about this version. Ends the program with what is in the way of releasing it."""
    version = project.version()
    text = (project.ROOT / "CHANGELOG.md").read_text()
    found = re.search(rf"^## {re.escape(version)} \(([^)]*)\)\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    reasons = []
    if not found:
        reasons.append(f"CHANGELOG.md has no heading '## {version} (DATE)'")
    elif not re.fullmatch(r"\d{4}-\d\d-\d\d", found[1]):
        reasons.append(f"CHANGELOG.md says '{found[1]}' where the date of {version} is to be, as in 2026-01-31")
    elif f"date-released: {found[1]}\n" not in _citation():
        reasons.append(f"CITATION.cff has another date-released than CHANGELOG.md, {found[1]}")
    if f"\nversion: {version}\n" not in _citation():
        reasons.append(f"CITATION.cff has another version than python/gormapy/_version.py, {version}")
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=project.ROOT, capture_output=True, text=True)
    if changed.returncode or changed.stdout:
        reasons.append(f"the tree is not what git has:\n{changed.stdout or changed.stderr}")
    if reasons:
        raise SystemExit("\n".join(f"not releasable: {reason}" for reason in reasons))
    assert found
    # Notes are read where there are no files beside them: links into the tree become text.
    return re.sub(r"\[([^\]]+)\]\((?!https?:)[^)\s]+\)", r"\1", found[2].strip()) + "\n"


def _citation() -> str:
    return (project.ROOT / "CITATION.cff").read_text()
