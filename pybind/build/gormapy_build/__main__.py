"""What the Makefile asks of the backend: python -m gormapy_build COMMAND."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from . import refusal

USAGE = """\
usage: python -m gormapy_build COMMAND
  venv FOLDER    make a virtual environment
  group NAME     install a dependency group of pyproject.toml
  in-place       build into the tree with the Go and C compiler on PATH, or the pinned ones
  go|gofmt|staticcheck ARGUMENT...
                 run it in the environment of that build
  sdist FOLDER   write the source distribution
  wheels FOLDER [MACHINE...]
                 write the wheels of a release, for all Pythons
  releasable     say what is in the way of a release, or print its notes
  stubs [--check]
                 write the stub of gormapy.MPI, or compare the one there; needs the build"""


def venv(folder: Path) -> None:
    from . import environment

    environment.create(folder)


def group(name: str) -> None:
    """Installs a dependency group; pip itself knows them from version 25.1."""
    from . import environment, project

    environment.install(project.pyproject()["dependency-groups"][name])


def in_place() -> None:
    """Builds with what is on PATH if it will do, as a developer expects, else with the pinned toolchain."""
    from . import environment, project, toolchain, wheel

    environment.install(toolchain.wheel_requirements("auto"))
    launcher = wheel.build_in_place("auto")
    if sys.prefix != sys.base_prefix:
        environment.link(project.ROOT / "python", launcher, wheel.SCRIPTS, project.entry_points())


def run(program: str, arguments: list[str]) -> None:
    """Becomes go, gofmt or staticcheck in the environment that in-place builds in."""
    from . import environment, project, toolchain, wheel

    environment.install(toolchain.wheel_requirements("auto"))
    found = toolchain.find(wheel.in_place_work(), project.ROOT, "auto")
    # Go's own programs lie beside it; PATH finds the others.
    path = shutil.which(program, path=found.env["PATH"])
    if path is None:
        raise SystemExit(f"{program} is neither beside {found.go} nor on PATH.")
    # The build pins these; here a check may ask for another machine or no C.
    asked = {name: os.environ[name] for name in ("CGO_ENABLED", "GOARCH") if name in os.environ}
    os.execve(path, [program, *arguments], {**found.env, **asked})


def sdist(folder: Path) -> None:
    from . import environment, toolchain
    from . import sdist as distribution

    environment.install(toolchain.sdist_requirements("auto"))
    folder.mkdir(parents=True, exist_ok=True)
    print(folder / distribution.build(str(folder), "auto"))


def wheels(folder: Path, machines: list[str]) -> None:
    from . import environment, toolchain, wheel

    environment.install(toolchain.wheel_requirements())
    for path in wheel.build_all(folder, machines or toolchain.GOARCH):
        print(f"{path.stat().st_size / 2**20:5.1f} MiB  {path}")


def releasable() -> None:
    from . import release

    print(release.notes(), end="")


def stubs(check: bool) -> None:
    from . import stubs as stub

    stub.check() if check else stub.write()


def main(arguments: list[str]) -> None:
    refusal.check()
    match arguments:
        case ["venv", folder]:
            venv(Path(folder))
        case ["group", name]:
            group(name)
        case ["in-place"]:
            in_place()
        case ["go" | "gofmt" | "staticcheck" as program, *rest]:
            run(program, rest)
        case ["sdist", folder]:
            sdist(Path(folder))
        case ["wheels", folder, *machines]:
            wheels(Path(folder), machines)
        case ["releasable"]:
            releasable()
        case ["stubs"]:
            stubs(check=False)
        case ["stubs", "--check"]:
            stubs(check=True)
        case _:
            raise SystemExit(USAGE)


main(sys.argv[1:])
