"""The two binaries: the extension (gopy's binding and the C shim as one shared
object) and the launcher.

Each step is skipped when the digest of what it reads is the one recorded with
what it made, so that a build in the tree takes a moment when nothing changed,
and gopy, the slow step, runs only when pybind/core did.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from . import project
from .toolchain import Toolchain

# gopy puts an underscore before the name it is given: PyInit__gormapy.
BINDING = "gormapy"
FILE_NAME = "_gormapy" + (sysconfig.get_config_var("EXT_SUFFIX") or ".so")

# Relative to the cgo package, so that Go's build cache holds for copies of the tree.
_MULTIARCH = "multiarch"

# The Go variables that hold the version of the package.
_VERSIONS = ("gormapy/gocore/launch.Version", "gormapy/pybind/core.version")

_LINK = ["-trimpath", "-tags=netgo,osusergo"]

# Go's own defaults, and what distributions build their C with: a frame that was
# written over and a copy past the end of an object end the process, and the table
# of functions can't be written once the object is loaded.
_HARDENED = {
    "CGO_CFLAGS": "-O2 -g -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2",
    "CGO_LDFLAGS": "-O2 -g -Wl,-z,relro -Wl,-z,now",
}


class Build:
    """Builds the module at root (the tree, or a copy of it) into out."""

    def __init__(self, root: Path, work: Path, toolchain: Toolchain) -> None:
        self.root = root
        self.work = work
        self.toolchain = toolchain
        # A Go package has to lie inside the module to import its internals and
        # use its vendor folder; the underscore hides it from "./...".
        # The generator's output lies there too: goimports, which completes it,
        # resolves imports by the module that a file is in.
        soabi = sysconfig.get_config_var("SOABI")
        self.package = root / "build" / f"_ext-{soabi}"
        self.generated = root / "build" / f"_gopy-{soabi}"
        self._multiarch = _multiarch_headers()
        self._state_file = work / "state.json"
        try:
            self._state = json.loads(self._state_file.read_text())
        except (OSError, ValueError):
            self._state = {}

    def extension(self, target: Path) -> None:
        """Makes the shared object at target."""
        core = self._digest(self._sources("pybind/core", {".go"}), self._generator_ident())
        if not self._done("binding", core, self.generated / f"{BINDING}.c"):
            _say("generating the Python binding of pybind/core")
            self._generate()
            self._record("binding", core)
        everything = [*self._sources("gocore"), *self._sources("pybind/core"), *self._sources("pybind/shim")]
        linked = self._digest(everything, core, self.toolchain.ident, self._python_flags())
        if not self._done("extension", linked, target):
            _say(f"building {target.name}")
            self._assemble()
            self._go_build(target, f"./build/{self.package.name}", "-buildmode=c-shared", cgo=True)
            self._load(target)
            self._record("extension", linked)

    def launcher(self, target: Path) -> None:
        """Makes the static mpiexec at target."""
        digest = self._digest(self._sources("gocore"), self.toolchain.ident)
        if not self._done("launcher", digest, target):
            _say("building mpiexec")
            self._go_build(target, "./gocore/cmd/mpiexec", cgo=False)
            self._record("launcher", digest)

    def _generate(self) -> None:
        run, tools = self.toolchain.run, self.work / "tools"
        packages = ["github.com/go-python/gopy", "golang.org/x/tools/cmd/goimports"]
        tools.mkdir(parents=True, exist_ok=True)
        run([self.toolchain.go, "build", "-trimpath", "-o", f"{tools}/", *packages], self.root, CGO_ENABLED="0")
        # gopy goes on where a package does not compile, and leaves out what it can't resolve.
        run([self.toolchain.go, "build", *_LINK, "./pybind/core"], self.root, CGO_ENABLED="0")
        _empty(self.generated)
        path = f"{tools}{os.pathsep}{self.toolchain.env['PATH']}"
        options = [f"-output={self.generated}", f"-vm={sys.executable}", f"-name={BINDING}"]
        run([tools / "gopy", "gen", *options, "./pybind/core"], self.root, PATH=path)
        # goimports takes GOWORK=off for the name of a workspace and then finds no vendor folder.
        run([tools / "goimports", "-w", f"{BINDING}.go"], self.generated, GOWORK="")
        # Bytecode beside pybindgen's sources was not looked at.
        run([sys.executable, "build.py"], self.generated, PYTHONPYCACHEPREFIX=str(self.work / "bytecode"))
        # The generated C includes a header that only gopy's own build makes; in
        # one cgo package, cgo's header declares the same functions.
        _rewrite(self.generated / f"{BINDING}.c", rf'#include "{BINDING}_go\.h"', '#include "_cgo_export.h"')
        source = self.generated / f"{BINDING}.go"
        # A comment with this build's folders would make each build different.
        _rewrite(source, r"^gopy gen .*", "gopy gen ./pybind/core")
        _rewrite(source, r"^#cgo CFLAGS:.*", f"#cgo CFLAGS: {self._python_flags()}")
        # Python's symbols come from the interpreter that loads the extension:
        # naming libpython would tie the wheel to one way of building Python.
        _rewrite(source, r"^#cgo LDFLAGS:.*", "#cgo LDFLAGS: -ldl -lm")

    def _assemble(self) -> None:
        """Puts the generated files and the shim together as one package."""
        wanted = {path.name: path for path in self._sources("pybind/shim")}
        for name in (f"{BINDING}.go", f"{BINDING}.c"):
            if name in wanted:
                raise SystemExit(f"pybind/shim/{name} has the name of a file that gopy generates; rename it.")
            wanted[name] = self.generated / name
        _empty(self.package)
        for name, path in wanted.items():
            (self.package / name).write_bytes(path.read_bytes())
        if self._multiarch:
            link = self.package / _MULTIARCH / self._multiarch.parent.name / self._multiarch.name
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.exists():
                link.symlink_to(self._multiarch)

    def _load(self, target: Path) -> None:
        """Imports both modules: the linker leaves it to the loader to find what is undefined."""
        program = (
            "import importlib.machinery as m, importlib.util as u\n"
            "for name in ('_gormapy', '_fast'):\n"
            f"    loader = m.ExtensionFileLoader(name, {os.fspath(target)!r})\n"
            "    loader.exec_module(u.module_from_spec(u.spec_from_loader(name, loader)))\n"
        )
        self.toolchain.run([sys.executable, "-c", program], self.work)

    def _go_build(self, target: Path, package: str, *flags: str, cgo: bool) -> None:
        versions = [f"-X {variable}={project.version()}" for variable in _VERSIONS]
        ldflags = " ".join(["-s", "-w", "-buildid=", *versions])
        # Built beside the target and moved: a process that has the old file
        # mapped or runs it keeps it, and no reader sees half of a new one.
        fresh = target.with_name(f".{target.name}.{os.getpid()}")
        target.parent.mkdir(parents=True, exist_ok=True)
        options = [*_LINK, f"-ldflags={ldflags}", *flags, "-o", str(fresh)]
        try:
            env = {"CGO_ENABLED": "1", **_HARDENED} if cgo else {"CGO_ENABLED": "0"}
            self.toolchain.run([self.toolchain.go, "build", *options, package], self.root, **env)
            os.replace(fresh, target)
        finally:
            fresh.unlink(missing_ok=True)
            # Go writes a C header beside a shared object; nothing includes it.
            fresh.with_suffix(".h").unlink(missing_ok=True)

    def _sources(self, folder: str, suffixes: Iterable[str] = (".go", ".c", ".h", ".s")) -> list[Path]:
        wanted = set(suffixes)
        found = (self.root / folder).rglob("*")
        return sorted(path for path in found if path.suffix in wanted and not path.name.endswith("_test.go"))

    def _python_flags(self) -> str:
        paths = {sysconfig.get_path("include"), sysconfig.get_path("platinclude")}
        if self._multiarch:
            paths.add(_MULTIARCH)
        return " ".join(f'"-I{path}"' for path in sorted(paths))

    def _generator_ident(self) -> str:
        return f"{sys.version} {sys.executable} {self._python_flags()} {self.toolchain.ident}"

    def _digest(self, paths: Iterable[Path], *facts: str) -> str:
        digest = hashlib.sha256("\0".join([project.version(), *facts]).encode())
        for path in [self.root / "go.mod", self.root / "go.sum", Path(__file__), *paths]:
            digest.update(f"\0{path.name}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
        return digest.hexdigest()

    def _done(self, step: str, digest: str, product: Path) -> bool:
        return self._state.get(step) == digest and product.exists()

    def _record(self, step: str, digest: str) -> None:
        self._state[step] = digest
        self.work.mkdir(parents=True, exist_ok=True)
        self._state_file.write_text(json.dumps(self._state))


def _multiarch_headers() -> Path | None:
    """Debian's pyconfig.h includes <x86_64-linux-gnu/python3.N/pyconfig.h>.

    That lies in /usr/include, which a compiler for another glibc must not
    search: only the one folder is made visible to it.
    """
    include = Path(sysconfig.get_path("include"))
    folder = include.parent / (sysconfig.get_config_var("MULTIARCH") or "none") / include.name
    return folder if (folder / "pyconfig.h").is_file() else None


def _say(what: str) -> None:
    print(f"gormapy: {what}", flush=True)


def _empty(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()


def _rewrite(path: Path, pattern: str, text: str) -> None:
    old = path.read_text()
    new, count = re.subn(pattern, lambda _: text, old, flags=re.M)
    if count != 1:
        raise SystemExit(f"{path.name}, which gopy generated, has {count} lines like {pattern!r} where 1 was expected.")
    path.write_text(new)
