"""Run an mpi4py program with gormapy: ``python -m gormapy.run script.py``.

Imports of `mpi4py` and its modules resolve to gormapy, whether mpi4py is installed or not, also in the Python processes
that the program starts. ``-m mpi4py.futures`` runs gormapy's.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

from gormapy import _linked

_USAGE = """\
usage: python -m gormapy.run (script.py | -m module | -c code | -) [arguments]

Run an mpi4py program with gormapy as its MPI. Start several processes by

    mpiexec -n 4 python -m gormapy.run script.py"""

# The version of mpi4py whose names gormapy.MPI has.
MPI4PY_VERSION = "4.1.2"
# The folder with a package mpi4py, for the path of processes that a program starts.
_ALIAS = __file__.rpartition("/")[0] + "/_alias"
_PROVIDED = ("mpi4py.MPI", "mpi4py.futures", "mpi4py.rc", "mpi4py.run", "mpi4py.typing", "mpi4py.util")
_PACKAGES = ("mpi4py.futures.", "mpi4py.util.")  # whose modules are provided if gormapy has them
_PROGRAMS = ("mpi4py.futures", "mpi4py.run")  # that run with -m
_LINKED = (*_linked.PACKAGES, "h5py")  # or may be: see there


class _Finder:
    """Importer that resolves mpi4py and its modules to gormapy."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in _LINKED:
            return _linked.find(name, path, _Finder)
        if name != "mpi4py" and not name.startswith("mpi4py."):
            return None
        from importlib.machinery import ModuleSpec

        if name == "mpi4py":
            spec = ModuleSpec(name, _Package, origin="gormapy", is_package=True)
            spec.submodule_search_locations = [f"{_ALIAS}/mpi4py"]
            return spec
        if name in _PROVIDED or (name.startswith(_PACKAGES) and _is_module(name)):
            return ModuleSpec(name, _Alias, origin="gormapy")
        return None


def _ours(name):
    """Return the name of the module of gormapy that a module of mpi4py is."""
    return "gormapy" + name.removeprefix("mpi4py")


def _is_module(name):
    from importlib.util import find_spec

    return find_spec(_ours(name)) is not None


class _Package:
    """Loader of the package mpi4py."""

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        import gormapy

        module.__version__ = MPI4PY_VERSION
        module.__doc__ = gormapy.__doc__
        module.__all__ = ["MPI"]
        module.rc = gormapy.rc
        module.get_include = gormapy.get_include
        module.get_config = gormapy.get_config
        module.profile = gormapy.profile
        module.__getattr__ = _lazily
        sys.modules["mpi4py.rc"] = gormapy.rc


class _Alias:
    """Loader of the modules of mpi4py that are modules of gormapy."""

    @staticmethod
    def create_module(spec):
        import importlib

        name = _ours(spec.name)
        if name == "gormapy.run":
            return sys.modules[__name__]
        module = importlib.import_module(name)
        _kept_specs[spec.name] = module.__spec__
        return module

    @staticmethod
    def exec_module(module):
        # the import system has given the module the spec of its alias: restore its own
        spec = _kept_specs.pop(module.__spec__.name, None)
        if spec is not None:
            module.__spec__ = spec
            module.__name__ = spec.name
            if spec.name == "gormapy.MPI":
                module.__getattr__ = _of_mpi

    @staticmethod
    def get_code(name):
        """Return the code that ``python -m name`` runs."""
        from importlib.util import find_spec

        spec = find_spec(_ours(name))
        if spec.submodule_search_locations is not None:
            spec = find_spec(f"{_ours(name)}.__main__")
        return spec.loader.get_code(spec.name)


_kept_specs = {}


def _of_mpi(name):
    """Say that there is no C interface to a library that asks mpi4py's for it; raise AttributeError for other names."""
    # Python code that asks for the name is told that there is none.
    if name == "__pyx_capi__" and sys._getframe(1).f_globals.get("__name__", "").startswith("importlib._bootstrap"):
        raise ImportError(_linked.reason("the library that is imported"))
    raise AttributeError(f"module 'gormapy.MPI' has no attribute {name!r}")


def _lazily(name):
    if f"mpi4py.{name}" in _PROVIDED:
        import importlib

        return importlib.import_module(f"mpi4py.{name}")
    raise AttributeError(f"module 'mpi4py' has no attribute {name!r}")


def provide_mpi4py():
    """Make imports of mpi4py resolve to gormapy from now on."""
    if not any(finder is _Finder for finder in sys.meta_path):
        for name in [n for n in sys.modules if n == "mpi4py" or n.startswith("mpi4py.")]:
            del sys.modules[name]
        sys.meta_path.insert(0, _Finder)
        _linked.watch()


def _provide_to_children():
    """Make imports of mpi4py resolve to gormapy in the Python processes that this one starts, too."""
    import os

    path = os.environ.get("PYTHONPATH", "")
    if _ALIAS not in path.split(os.pathsep):
        os.environ["PYTHONPATH"] = _ALIAS + (os.pathsep + path if path else "")


def set_abort_status(status: Any) -> None:
    """Choose the status with which this process ends the job when Python exits.

    `status` is that of SystemExit: None for success, a number, or a text for failure.
    """
    if isinstance(status, SystemExit):
        status = status.code
    elif isinstance(status, KeyboardInterrupt):
        status = 130
    if not isinstance(status, int):
        status = 0 if status is None else 1
    mpi = sys.modules.get("gormapy.MPI")
    if mpi is not None and status:
        mpi._set_abort_status(status)


# Programs
# --------


def _main_module(filename):
    """Make the module in which a program runs."""
    from types import ModuleType

    module = ModuleType("__main__")
    module.__builtins__ = __builtins__
    if filename is not None:
        module.__file__ = filename
    sys.modules["__main__"] = module
    _kept.append(sys.modules["__main__"])
    return module


_kept = []  # what runs at exit may still use the program's globals


def _run_code(code, filename, argv0):
    sys.argv[0] = argv0
    exec(code, _main_module(filename).__dict__)


def _script(path, command):
    """Return the code of a script for a command that runs it, and let its folder be searched for modules."""
    import os
    from io import open_code

    try:
        with open_code(os.path.abspath(path)) as file:
            source = file.read()
    except OSError as error:
        print(f"{command}: cannot read {path}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
    if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    return compile(source, path, "exec", dont_inherit=True)


def _run_script(path):
    import os

    if os.path.isdir(path) or path.endswith((".zip", ".pyz", ".egg")):
        from runpy import run_path

        run_path(path, run_name="__main__")
        return
    _run_code(_script(path, "gormapy.run"), path, path)


def _run(args):
    first, *rest = args
    sys.argv[:] = [first, *rest]
    if first == "-m":
        if not rest:
            sys.exit("gormapy.run: -m needs the name of a module")
        from runpy import run_module

        del sys.argv[0]
        run_module(_ours(rest[0]) if rest[0] in _PROGRAMS else rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        if not rest:
            sys.exit("gormapy.run: -c needs a program")
        sys.argv[:] = ["-c", *rest[1:]]
        _run_code(compile(rest[0], "<string>", "exec", dont_inherit=True), None, "-c")
    elif first == "-":
        _run_code(compile(sys.stdin.read(), "<stdin>", "exec", dont_inherit=True), None, "-")
    else:
        _run_script(first)


def main(args: Sequence[str] | None = None) -> None:
    """Run the program that the command line names, and end the job if it fails with an exception.

    `args` are ``script.py``, ``-m module`` or ``-c code`` with the program's arguments, by default those of the command
    line.
    """
    args = sys.argv[1:] if args is None else list(args)
    if not args or args[0] in ("-h", "--help"):
        print(_USAGE, file=sys.stderr if not args else sys.stdout)
        sys.exit(0 if args else 2)
    if args[0] == "--version":
        import gormapy

        print(f"gormapy {gormapy.__version__}, with the names of mpi4py {MPI4PY_VERSION}")
        sys.exit(0)
    if args[0].startswith("-") and args[0] not in ("-m", "-c", "-"):
        sys.exit(f"gormapy.run: unknown option {args[0]}\n{_USAGE}")
    provide_mpi4py()
    _provide_to_children()
    _hide_own_frames()
    _run(args)


def _hide_own_frames():
    """Let tracebacks begin in the program."""
    import runpy

    from gormapy import _excepthook  # not of MPI, whose import initializes it

    _excepthook.hide(__file__, _linked.__file__, runpy.__file__, "<frozen runpy>")
    _excepthook.install(False)


run_command_line = main

if __name__ == "__main__":
    main()
