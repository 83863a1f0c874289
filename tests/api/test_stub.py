"""The stub of gormapy.MPI says what the module has."""

import ast
import inspect
import re
import sys
from inspect import Parameter as Kind
from pathlib import Path

import pytest


def parameters(function):
    """Return (name, kind, whether it has a default) of what a call of a declared function gives."""
    args = function.args
    plain = [*args.posonlyargs, *args.args]
    without = len(plain) - len(args.defaults)
    found = [
        (a.arg, Kind.POSITIONAL_ONLY if i < len(args.posonlyargs) else Kind.POSITIONAL_OR_KEYWORD, i >= without)
        for i, a in enumerate(plain)
    ]
    found += [(args.vararg.arg, Kind.VAR_POSITIONAL, False)] if args.vararg else []
    found += [(a.arg, Kind.KEYWORD_ONLY, d is not None) for a, d in zip(args.kwonlyargs, args.kw_defaults)]
    found += [(args.kwarg.arg, Kind.VAR_KEYWORD, False)] if args.kwarg else []
    return [parameter for parameter in found if parameter[0] not in ("self", "cls")]


def declared(stub):
    """Return what the stub declares: {name: parameters, None for what is no function}, methods as Class.name."""
    found = {}

    def declare(node, prefix=""):
        if isinstance(node, ast.ClassDef):
            found[node.name] = None
            for member in node.body:
                declare(member, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            is_property = any(getattr(d, "id", "") == "property" for d in node.decorator_list)
            found[prefix + node.name] = None if is_property else parameters(node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            found[prefix + target.id] = None

    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        declare(node)
    return found


@pytest.fixture(scope="module")
def mpi():
    from gormapy import MPI

    return MPI


@pytest.fixture(scope="module")
def names(mpi):
    return declared(Path(mpi.__file__).with_suffix(".pyi"))


def test_the_package_says_that_it_has_types(mpi):
    assert Path(mpi.__file__).parents[1].joinpath("py.typed").is_file()


def test_everything_declared_is_there(mpi, names):
    assert len(names) > 1000
    for name, expected in names.items():
        if name.endswith(".__buffer__"):
            assert sys.version_info < (3, 12) or hasattr(getattr(mpi, name.partition(".")[0]), "__buffer__")
            continue
        obj = mpi
        for part in name.split("."):
            obj = getattr(obj, part)
        if expected is None:
            continue
        if inspect.isbuiltin(obj) and obj.__name__ == "__new__":  # the class has its signature
            obj = obj.__self__
        real = inspect.signature(obj).parameters.values()
        real = [(p.name, p.kind, p.default is not p.empty) for p in real if p.name not in ("self", "cls")]
        assert real == expected, name


def test_everything_there_is_declared(mpi, names):
    for name in dir(mpi):
        if name.startswith("_"):
            continue
        assert name in names, name
        cls = getattr(mpi, name)
        if inspect.isclass(cls):
            bases = [base.__name__ for base in cls.__mro__ if base.__module__ == mpi.__name__]
            inherited = {*dir(RuntimeError), *dir(int)}
            if name in ("Request", "Grequest"):  # the extension's type for all requests has calls of Prequest
                inherited |= {"Start", "Startall"}
            for member in {m for m in dir(cls) if not m.startswith("_")} - inherited:
                assert any(f"{base}.{member}" in names for base in bases), f"{name}.{member}"


def test_docstrings_are_sentences(mpi):
    for name, member in vars(mpi).items():
        if name.startswith("_") or not (inspect.isclass(member) or inspect.isroutine(member)):
            continue
        calls = dir(member) if inspect.isclass(member) and not issubclass(member, BaseException | int) else []
        for call, owner in ((name, member), *((call, inspect.getattr_static(member, call)) for call in calls)):
            obj = getattr(owner, "__func__", owner)
            if not (inspect.isclass(obj) or inspect.isfunction(obj) or isinstance(obj, property)):
                continue
            label = f"{name}: {call}"
            if call.startswith("_"):
                continue
            assert obj.__doc__, label
            lines = inspect.getdoc(obj).split("\n")
            if not inspect.isclass(obj):
                signature, empty, *lines = lines
                assert re.match(r"\w+(\(.*\) -> .|: .)", signature) and not empty, f"{label}: {signature}"
                assert signature not in lines, f"{label}: {signature} is there twice"
            summary = lines[0]
            assert summary.endswith(".") and summary[0].isupper(), label


def test_the_extension_shows_the_docstrings_of_python(mpi):
    """Calls that it answers itself: their sentences stand in the Python method of the same name only."""
    from gormapy._ext import fast

    folder, seen = Path(mpi.__file__).parent, 0
    files = {
        "Win": ["win.py"],
        "Comm": ["comm.py", "p2p.py", "coll.py", "objcomm.py"],
        "Datatype": ["datatype.py"],
        "Request": ["request.py"],
    }
    for call in fast.HOT:
        owner, name = call.split(".")
        method = getattr(getattr(mpi, owner, None), name, None)
        if method is None or owner not in files:
            continue
        written = [
            ast.get_docstring(node)
            for file in files[owner]
            for node in ast.walk(ast.parse((folder / file).read_text(encoding="utf-8")))
            if isinstance(node, ast.FunctionDef) and node.name == name
        ]
        signature, sentence, *_ = inspect.getdoc(method).split("\n\n")
        assert signature.startswith(f"{name}(") and sentence in written, call
        assert str(inspect.signature(method)).startswith("("), call
        seen += 1
    assert seen > 20
