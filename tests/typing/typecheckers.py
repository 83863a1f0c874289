"""Run type checkers on folders of programs: mypy, of the environment, and pyright, which npm installs into .cache."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
NEWEST = (3, 14)  # the newest Python that gormapy says it supports

PYRIGHT = "1.1.414"
# What npm is to find, wherever it looks for packages.
INTEGRITY = "sha512-FPZZb51jepDX4eP7TEYDeNFtmE3WgwkkEcJpvH3/QmUSsj0EAy3LXu+xB4T/FWDejtsXlCfFr/rbWFjwuwuXww=="
UNREACHABLE = re.compile("ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH")


class Mypy:
    """Check programs with mypy; errors in the packages that they import are not those of the programs."""

    name = "mypy"

    def __init__(self):
        pytest.importorskip("mypy", reason="mypy is not installed: run 'make lint'")

    def check(self, folder, path, version=NEWEST, strict=True):
        """Return the errors, by file and line: {(name, number): [text]}. `path` has folders with packages."""
        settings = folder / "mypy.ini"
        how = "strict = true" if strict else "check_untyped_defs = true\nignore_missing_imports = true"
        quiet = "".join(f"[mypy-{package}.*]\nfollow_imports = silent\n" for package in ("gormapy", "mpi4py"))
        settings.write_text(f"[mypy]\nexplicit_package_bases = true\n{how}\n{quiet}")
        number = ".".join(map(str, version))
        # One cache for each kind of run: several may be under way.
        cache = CACHE / "mypy" / f"{folder.name}-{number}-{'strict' if strict else 'all'}"
        options = ["--config-file", settings, "--python-version", number, "--cache-dir", cache, "--no-error-summary"]
        done = subprocess.run(
            [sys.executable, "-m", "mypy", *options, "--hide-error-context", "."],
            cwd=folder,
            env={**os.environ, "MYPYPATH": os.pathsep.join(map(str, path))},
            capture_output=True,
            text=True,
        )
        assert done.returncode in (0, 1), done.stdout[-4000:] + done.stderr[-4000:]
        found = {}
        for line in done.stdout.splitlines():
            match = re.match(r"(\S+?\.py):(\d+): error: (.*)", line)
            if match:
                found.setdefault((match[1], int(match[2])), []).append(match[3])
            else:
                assert ": note: " in line, line
        assert bool(found) == bool(done.returncode), done.stdout
        return found


class Pyright:
    """Check programs with pyright."""

    name = "pyright"

    def __init__(self):
        for program in ("node", "npm"):
            if shutil.which(program) is None:
                pytest.skip(f"{program} is not installed, which pyright needs")
        self._script = CACHE / f"pyright-{PYRIGHT}" / "node_modules" / "pyright" / "index.js"
        folder = self._script.parents[2]
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "made").exists():
                self._install(folder)
                (folder / "made").touch()

    @staticmethod
    def _install(folder):
        wanted = {"name": "checker", "dependencies": {"pyright": PYRIGHT}}
        packages = {"": wanted, "node_modules/pyright": {"version": PYRIGHT, "integrity": INTEGRITY}}
        (folder / "package.json").write_text(json.dumps({**wanted, "private": True}))
        (folder / "package-lock.json").write_text(
            json.dumps({"name": "checker", "lockfileVersion": 3, "requires": True, "packages": packages})
        )
        options = ["--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(["npm", "ci", *options], cwd=folder, capture_output=True, text=True)
        if done.returncode and UNREACHABLE.search(done.stderr):
            pytest.skip(f"npm can't reach its registry for pyright: {done.stderr.strip().splitlines()[0]}")
        assert done.returncode == 0, done.stdout + done.stderr

    def check(self, folder, path, version=NEWEST, strict=True):
        """Return the errors, by file and line: {(name, number): [text]}. `path` has folders with packages."""
        settings = {
            "include": ["."],
            "typeCheckingMode": "strict" if strict else "standard",
            "pythonVersion": ".".join(map(str, version)),
            "pythonPlatform": "Linux",
            "extraPaths": list(map(str, path)),
            "reportMissingImports": strict,
            "reportMissingModuleSource": False,  # of mpi4py, the stubs alone are there
            "reportPrivateUsage": False,
            "reportUnusedImport": False,
        }
        (folder / "pyrightconfig.json").write_text(json.dumps(settings))
        done = subprocess.run(
            ["node", self._script, "--outputjson", "--pythonpath", sys.executable],
            cwd=folder,
            capture_output=True,
            text=True,
        )
        assert done.returncode in (0, 1), done.stdout[-4000:] + done.stderr[-4000:]
        found = {}
        report = json.loads(done.stdout)
        assert report["summary"]["filesAnalyzed"], report
        for one in report["generalDiagnostics"]:
            if one["severity"] == "error":
                place = Path(one["file"]).name, one["range"]["start"]["line"] + 1
                found.setdefault(place, []).append(" ".join(one["message"].split()))
        return found


CHECKERS = {checker.name: checker for checker in (Mypy, Pyright)}


def report(errors):
    """Return errors as text: {(name, number): [text]}."""
    return "\n".join(f"{name}:{number}: {text}" for (name, number), texts in sorted(errors.items()) for text in texts)
