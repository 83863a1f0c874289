"""Pages of the reference: one for each class of gormapy.MPI, and one for each other module.

Which members a class has is in the stub, which `make stubs` makes from the live module. Sphinx's autodoc takes
signatures and texts from the docstrings.
"""

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from . import ROOT
from .docstrings import converted, summary

STUB = ROOT / "python" / "gormapy" / "MPI" / "__init__.pyi"

# Modules beside MPI; of those that are programs, too, --help is shown.
MODULES = (
    "gormapy",
    "gormapy.rdma",
    "gormapy.slots",
    "gormapy.notify",
    "gormapy.aio",
    "gormapy.shared",
    "gormapy.trace",
    "gormapy.check",
    "gormapy.plot",
    "gormapy.futures",
    "gormapy.util",
    "gormapy.util.pkl5",
    "gormapy.util.pool",
    "gormapy.util.sync",
    "gormapy.util.dtlib",
    "gormapy.numba",
    "gormapy.mt19937",
    "gormapy.launch",
    "gormapy.run",
    "gormapy.testing",
    "gormapy.bench",
    "gormapy.info",
    "gormapy.typing",
)
PROGRAMS = {
    "gormapy.rdma",
    "gormapy.trace",
    "gormapy.plot",
    "gormapy.futures",
    "gormapy.run",
    "gormapy.bench",
    "gormapy.info",
}


@dataclass
class Stub:
    """What the stub declares: classes with their members, functions, and constants by type."""

    classes: dict
    bases: dict
    functions: list
    constants: dict
    texts: dict  # docstrings of constants


def stub(text=None):
    """Read the stub."""
    found = Stub({}, {}, [], {}, {})
    nodes = ast.parse(STUB.read_text(encoding="utf-8") if text is None else text).body
    for node, following in zip(nodes, [*nodes[1:], None]):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            found.classes[node.name] = _members(node)
            found.bases[node.name] = [base.id for base in node.bases if not base.id.startswith("_")]
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            found.functions.append(node.name)
        elif isinstance(node, ast.AnnAssign) and not node.target.id.startswith("_"):
            kind = node.annotation
            kind = ast.unparse(kind.slice) if isinstance(kind, ast.Subscript) else ast.unparse(kind)
            found.constants.setdefault(kind, []).append(node.target.id)
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                found.texts[node.target.id] = inspect.cleandoc(following.value.value)
    return found


def _members(node):
    names = []
    for member in node.body:
        if isinstance(member, ast.FunctionDef):
            names.append(member.name)
        elif isinstance(member, ast.AnnAssign):
            names.append(member.target.id)
        elif isinstance(member, ast.Assign):
            names.append(member.targets[0].id)
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]


def _rst(*lines):
    return ["````{eval-rst}", *lines, "````", ""]


def _table(owner, names, prefix):
    """Return a table of calls with the first sentence of each."""
    lines = ["| | |", "|---|---|"]
    for name in names:
        text = summary(inspect.getdoc(inspect.getattr_static(owner, name))).replace("|", r"\|")
        lines.append(f"| {{py:obj}}`{name} <{prefix}{name}>` | {_markdown(text)} |")
    return [*lines, ""]


def _markdown(text):
    """Escape what MyST would take for markup outside of code."""
    parts = text.replace("``", "`").split("`")
    for i in range(0, len(parts), 2):
        for character in "\\*_<[":
            parts[i] = parts[i].replace(character, "\\" + character)
    return "`".join(parts)


def class_page(mpi, declared, name):
    """Return the page of a class of gormapy.MPI."""
    cls, members = getattr(mpi, name), declared.classes[name]
    lines = [f"# MPI.{name}", ""]
    inner = [f".. autoclass:: gormapy.MPI.{name}"]
    if members:
        lines += [*_rst(*inner), *_inherited(declared, name), "## Summary", ""]
        lines += [*_table(cls, members, f"gormapy.MPI.{name}."), "## Members", ""]
        inner = [".. currentmodule:: gormapy.MPI", ""]
        inner += [line for member in members for line in (_directive(cls, name, member), "")]
    return "\n".join([*lines, *_rst(*inner)])


def _inherited(declared, name):
    bases = [base for base in declared.bases[name] if base in declared.classes]
    if not bases:
        return []
    there = " and ".join(f"{{py:class}}`{base} <gormapy.MPI.{base}>`" for base in bases)
    return [f"It has the members of {there}, too.", ""]


def _directive(cls, owner, member):
    value = inspect.getattr_static(cls, member)
    if isinstance(value, property):
        kind = "property"
    elif inspect.isgetsetdescriptor(value) or not callable(getattr(cls, member)):
        kind = "attribute"
    else:
        kind = "method"
    return f".. auto{kind}:: {owner}.{member}"


def constants_page(declared):
    """Return a page of the constants of gormapy.MPI."""
    lines = ["# Constants", "", "[Error classes](../errors.md) has the values and the texts of `ERR_…`.", ""]
    titles = {"int": "Numbers", "Datatype": "Datatypes", "Op": "Operations"}
    for kind, names in sorted(declared.constants.items(), key=lambda item: item[0] not in titles):
        if kind in ("int", "Datatype", "Op"):
            lines += [f"## {titles[kind]}", ""]
            groups = _grouped(names) if kind == "int" else [names]
            for group in groups:
                lines += _data(group, declared.texts)
        else:
            lines += [f"## {kind}", "", *_data(names, declared.texts)]
    return "\n".join(lines)


def _grouped(names):
    """Return the names by their first words."""
    by = {}
    for name in names:
        by.setdefault(name.split("_")[0], []).append(name)
    alone = [name for group in by.values() if len(group) == 1 for name in group]
    return [group for group in by.values() if len(group) > 1] + [alone]


def _data(names, texts):
    """Return constants: one after the other where they have no texts."""
    lines = [".. currentmodule:: gormapy.MPI", ""]
    for has_text, some in groupby(names, key=texts.__contains__):
        if has_text:
            for name in some:
                text = converted(texts[name].splitlines())
                lines += [f".. py:data:: {name}", "", *(f"   {line}" if line else "" for line in text)]
        else:
            first, *rest = some
            lines += [f".. py:data:: {first}", *(f"             {name}" for name in rest), ""]
    return _rst(*lines)


def mpi_page(mpi, declared):
    """Return the overview of gormapy.MPI."""
    lines = [
        "# gormapy.MPI",
        "",
        *_rst(".. automodule:: gormapy.MPI"),
        "Arguments, defaults and exceptions are those of mpi4py:",
        "[what differs](../../migrating-from-mpi4py.md#what-differs).",
        "",
        "## Classes",
        "",
        "| | |",
        "|---|---|",
    ]
    for name in declared.classes:
        lines.append(f"| [{name}]({name}.md) | {_markdown(summary(inspect.getdoc(getattr(mpi, name))))} |")
    lines += ["", "## Functions", "", *_table(mpi, declared.functions, "gormapy.MPI."), "## All functions", ""]
    inner = [".. currentmodule:: gormapy.MPI", ""]
    inner += [line for name in declared.functions for line in (f".. autofunction:: {name}", "")]
    return "\n".join([*lines, *_rst(*inner)])


def first_sentence(name):
    """Return what a module's docstring says first, as Markdown."""
    return _markdown(summary(importlib.import_module(name).__doc__)).replace("|", r"\|")


def module_page(name):
    """Return the page of another module."""
    module = importlib.import_module(name)
    lines = [f"# {name}", ""]
    inner = [f".. automodule:: {name}", "", f".. currentmodule:: {name}", ""]
    aliases = _aliases(module)
    for member in sorted(public(module), key=lambda member: _rank(module, member)):
        inner += aliases[member] if member in aliases else _of_module(module, member)
    lines += _rst(*inner)
    if name in PROGRAMS:
        command = [sys.executable, "-m", name, "--help"]
        env = {**os.environ, "COLUMNS": "88"}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
        lines += ["## Command line", "", "```text", done.stdout.rstrip(), "```", ""]
    return "\n".join(lines)


def public(module):
    """Return the names of a module that are for users."""
    if hasattr(module, "__all__"):
        names = list(module.__all__)
    else:
        names = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__ and callable(value)
        ]
    return [name for name in names if not inspect.ismodule(getattr(module, name))]


_ALIAS = re.compile(r"(?:^# (.*)\n)?^(\w+): TypeAlias = (\((?:\n .*)+\n\)|.+)$", re.MULTILINE)


def _expanded(text, private):
    """Return a type with the private names in it replaced."""
    return re.sub(r"\b_\w+", lambda name: private[name[0]], text)


def _aliases(module):
    """Return the directives of a module's names of types: the comment above, and what they stand for."""
    source = Path(module.__file__).read_text(encoding="utf-8")
    found, private, comment = {}, {}, ""
    for above, name, definition in _ALIAS.findall(source):
        comment = above or comment  # one for several names
        value = definition[1:-1] if definition.startswith("(\n") else definition
        value = _expanded(" ".join(value.split()), private)
        if name.startswith("_"):
            private[name] = value
            continue
        found[name] = [f".. py:type:: {name}", f"   :canonical: {value}", "", f"   {comment}", ""]
    return found


def _rank(module, name):
    """Sort classes before functions, these before other values, and second names last."""
    value = getattr(module, name)
    if inspect.isclass(value):
        return 0 if value.__qualname__ == name else 3
    return 1 if callable(value) else 2


def _of_module(module, name):
    value = getattr(module, name)
    canonical = getattr(value, "__qualname__", name)
    if inspect.isclass(value) and not (getattr(value, "__module__", "") or "").startswith("gormapy"):
        return []  # Python's own, under the names of mpi4py
    if inspect.isclass(value) and canonical != name:
        return [f".. py:data:: {name}", "", f"   Another name of :py:class:`{canonical}`.", ""]
    if inspect.isclass(value):
        kind = "exception" if issubclass(value, BaseException) else "class"
        return [f".. auto{kind}:: {name}", "   :members:", "   :inherited-members: " + _STOP, ""]
    if callable(value) and hasattr(value, "__name__"):
        return [f".. autofunction:: {name}", ""] if value.__module__.startswith("gormapy") else []
    return [f".. autodata:: {name}", "   :no-value:", ""]


# Bases whose members are Python's.
_STOP = "object, Exception, BaseException, int, str, tuple, IntEnum, IntFlag, Enum, Executor, NamedTuple"
