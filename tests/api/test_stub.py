"""The stub of gormapy.MPI says what the module has."""

import ast
import inspect
from pathlib import Path

import pytest


def declared(folder):
    """Return what the stubs declare: {name: arguments, None for what is no function}, methods as Class.name."""
    found = {}

    def arguments(function):
        args = function.args
        return [a.arg for a in (*args.posonlyargs, *args.args) if a.arg not in ("self", "cls")]

    for stub in sorted(folder.glob("*.pyi")):
        for node in ast.parse(stub.read_text()).body:
            if isinstance(node, ast.ClassDef):
                found[node.name] = None
                for member in node.body:
                    if isinstance(member, ast.FunctionDef):
                        is_property = any(getattr(d, "id", "") == "property" for d in member.decorator_list)
                        found[f"{node.name}.{member.name}"] = None if is_property else arguments(member)
                    elif isinstance(member, ast.AnnAssign):
                        found[f"{node.name}.{member.target.id}"] = None
            elif isinstance(node, ast.FunctionDef):
                found[node.name] = arguments(node)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                found[target.id] = None
    return found


@pytest.fixture(scope="module")
def mpi():
    from gormapy import MPI

    return MPI


def test_everything_declared_is_there(mpi):
    names = declared(Path(mpi.__file__).parent)
    assert len(names) > 700
    for name, arguments in names.items():
        if name in ("Buffer", "BufSpec", "TargetSpec") or name.endswith(".__buffer__"):
            continue
        obj = mpi
        for part in name.split("."):
            obj = getattr(obj, part)
        if arguments is None or ".__" in name:
            continue
        try:
            real = [p for p in inspect.signature(obj).parameters if p not in ("self", "cls")]
        except ValueError:
            continue  # of the extension, which cannot say its defaults
        assert real == [a for a in arguments if a] or real[: len(arguments)] == arguments, name


def test_everything_there_is_declared(mpi):
    names = declared(Path(mpi.__file__).parent)
    names.update(dict.fromkeys(vars(__import__("gormapy.MPI.constants", fromlist=["x"]))))
    for name in dir(mpi):
        if not name.startswith("_"):
            assert name in names, name


def test_docstrings_are_sentences(mpi):
    for name, member in vars(mpi).items():
        if name.startswith("_") or not (inspect.isclass(member) or inspect.isfunction(member)):
            continue
        for owner in (member, *(vars(member).values() if inspect.isclass(member) else ())):
            obj = getattr(owner, "__func__", owner)
            if not (inspect.isclass(obj) or inspect.isfunction(obj) or isinstance(obj, property)):
                continue
            label = f"{name}: {getattr(obj, '__name__', obj)}"
            if getattr(obj, "__name__", "x").startswith("_"):
                continue
            assert obj.__doc__, label
            summary = obj.__doc__.strip().split("\n")[0]
            assert summary.endswith(".") and summary[0].isupper(), label


def test_the_extension_shows_the_docstrings_of_python(mpi):
    """Calls that it answers itself: their docstrings stand in the Python method of the same name only."""
    from gormapy._ext import fast

    folder, seen = Path(mpi.__file__).parent, 0
    files = {"Win": ["win.py"], "Comm": ["p2p.py", "coll.py"], "Request": ["request.py"]}
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
        assert inspect.getdoc(method) in written, call
        assert str(inspect.signature(method)).startswith("("), call
        seen += 1
    assert seen > 20
