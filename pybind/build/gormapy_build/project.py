"""What pyproject.toml and the version file say about the project."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

ROOT = Path(__file__).resolve().parents[3]


def pyproject() -> Any:
    with open(ROOT / "pyproject.toml", "rb") as file:
        return tomllib.load(file)


def version() -> str:
    """The one place of the version is a Python file: the package needs it
    when it is used from the tree, where no metadata is installed."""
    path = ROOT / "python/gormapy/_version.py"
    found = re.search(r'^__version__ = "([^"]+)"$', path.read_text(), re.M)
    if not found:
        raise SystemExit(f'{path} has no line of the form __version__ = "X.Y.Z".')
    return str(found[1])


def entry_points() -> str:
    """The text of entry_points.txt: what other programs find of the package by its metadata."""
    groups = pyproject()["project"]["entry-points"]
    return "\n".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in groups.items()
    )


def metadata() -> str:
    """The core metadata (version 2.4) of PKG-INFO and METADATA."""
    project = pyproject()["project"]
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {version()}",
        f"Summary: {project['description']}",
        f"Keywords: {','.join(project['keywords'])}",
        f"License-Expression: {project['license']}",
        *(f"License-File: {name}" for name in project["license-files"]),
        *(f"Classifier: {name}" for name in project["classifiers"]),
        *(f"Project-URL: {label}, {url}" for label, url in project.get("urls", {}).items()),
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {requirement}" for requirement in project["dependencies"]),
    ]
    for extra, requirements in project.get("optional-dependencies", {}).items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {requirement}; extra == "{extra}"' for requirement in requirements]
    lines.append("Description-Content-Type: text/markdown")
    readme: str = (ROOT / project["readme"]).read_text()
    return "\n".join(lines) + "\n\n" + readme
