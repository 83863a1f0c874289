"""The main script, run by the manager, and imported by workers so that they find its functions.

A worker runs the script's code under the name ``__worker__``. The module is ``__main__`` and ``__worker__`` to both
sides, so that what one has pickled by either name the other finds.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any, NamedTuple

RUN_NAME = "__worker__"


class Source(NamedTuple):
    """Where the code of a main module comes from: a file, a module's name with the folder of it, or text."""

    kind: str
    text: str
    argv: list[str]
    path: str  # sys.path[0]


_given: list[Source] = []  # of the script that this process runs under "python -m gormapy.futures"
_importing = False


def importing() -> bool:
    """Report whether this process imports the main script as a worker."""
    return _importing


def source() -> Source | None:
    """Return the source of the script that this process runs, if workers need it and can have it."""
    return _given[0] if _given else _running()


def name_as_workers_do() -> None:
    """Let this process find its main module under the name that it has in workers."""
    sys.modules[RUN_NAME] = sys.modules["__main__"]


def _running():
    """Return the source of a main module that Python itself runs; None for what is typed in."""
    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    folder = sys.path[0] if sys.path else ""
    if spec is not None and spec.name != "__main__":
        return Source("module", spec.name.removesuffix(".__main__"), list(sys.argv), folder)
    if file is None or not os.path.exists(file):  # typed in, or from standard input
        return None
    file = os.path.abspath(file)
    if spec is not None:  # of a folder or an archive
        return Source("bundle", os.path.dirname(file), list(sys.argv), folder)
    return Source("file", file, list(sys.argv), folder)


def run(args: list[str]) -> None:
    """Run the script, module, code or standard input that a command line names as the main module."""
    from gormapy import run as commands

    first, *rest = args
    if first == "-m" and rest:
        sys.argv[:] = ["-m", *rest[1:]]
        module = _main(None)
        _keep("module", rest[0])
        _run_module(rest[0])
    elif _is_bundle(first):
        sys.argv[:] = args
        sys.path.insert(0, first)
        module = _main(None)
        _keep("bundle", os.path.abspath(first))
        _run_module("__main__", False)
    else:
        text = None
        if first == "-c" and rest:
            text = rest[0]
        elif first == "-":
            text = sys.stdin.read()
        if text is None:
            code = commands._script(first, "gormapy.futures")
            sys.argv[:] = args
            module = _main(first)
            _keep("file", os.path.abspath(first))
            exec(code, vars(module))
            return
        sys.argv[:] = [first, *rest[first == "-c" :]]
        module = _main(None)
        _keep("text", text)
        exec(compile(text, "<string>" if first == "-c" else "<stdin>", "exec", dont_inherit=True), vars(module))


def _run_module(name, alter_argv=True):
    import runpy

    runpy._run_module_as_main(name, alter_argv)


def _is_bundle(path):
    return os.path.isdir(path) or path.endswith((".zip", ".pyz", ".egg"))


def _keep(kind, text):
    _given[:] = [Source(kind, text, list(sys.argv), sys.path[0] if sys.path else "")]


def _main(filename):
    """Make the module in which the script runs."""
    from gormapy import run as commands

    module = commands._main_module(filename)
    sys.modules[RUN_NAME] = module
    return module


def provide(source: Source, init_globals: dict[str, Any]) -> None:
    """Run the code of the main script as a worker does."""
    global _importing
    sys.argv[:] = source.argv
    if source.kind != "text" and source.path not in sys.path[:1]:
        # With -P and -I there is no item for the program of this process.
        own = not (getattr(sys.flags, "safe_path", False) or sys.flags.isolated)
        sys.path[0:own] = [source.path]
    module = ModuleType(RUN_NAME)
    module.__builtins__ = __builtins__
    vars(module).update(init_globals)
    code = _code(source, module)
    previous = sys.modules.get("__main__")
    _kept.append(previous)
    sys.modules["__main__"] = sys.modules[RUN_NAME] = module
    _importing = True
    try:
        exec(code, vars(module))
    finally:
        _importing = False


_kept: list[Any] = []  # what runs at exit may use its globals


def _code(source, module):
    """Return the code of a main script, and say in its module where it is from."""
    if source.kind == "text":
        return compile(source.text, "<string>", "exec", dont_inherit=True)
    if source.kind == "file":
        from io import open_code

        module.__file__ = source.text
        with open_code(source.text) as file:
            return compile(file.read(), source.text, "exec", dont_inherit=True)
    spec = _spec(source)
    module.__spec__, module.__loader__, module.__package__ = spec, spec.loader, spec.parent
    module.__file__ = spec.origin
    return spec.loader.get_code(spec.name)


def _spec(source):
    from importlib.machinery import PathFinder
    from importlib.util import find_spec

    if source.kind == "bundle":
        found = PathFinder.find_spec("__main__", [source.text])
    else:
        found = find_spec(source.text)
        if found is not None and found.submodule_search_locations is not None:
            found = find_spec(f"{source.text}.__main__")
    if found is None or found.loader is None:
        raise ModuleNotFoundError(f"a worker finds no module {source.text}")
    return found
