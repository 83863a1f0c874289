"""Make programs that call gormapy as the stubs of mpi4py allow.

For each function, method and attribute that a stub declares, a program has functions whose parameters have the
declared types, and which pass them on to what gormapy has by that name: all by position, all by name, only what has no
default. They return what the call returns, as the declared type. A type checker that accepts the functions has shown
that gormapy takes what the stub allows, and gives what it promises.

The stubs are read when a test runs; nothing of them is in this repository.
"""

import ast
from dataclasses import dataclass, field
from types import SimpleNamespace

# The stubs of mpi4py, and the modules of gormapy that have their names.
MODULES = {
    "__init__": "",
    "MPI": ".MPI",
    "bench": ".bench",
    "run": ".run",
    "typing": ".typing",
    "futures/__init__": ".futures",
    "futures/aplus": ".futures.aplus",
    "futures/pool": ".futures",
    "futures/util": ".futures.util",
    "util/dtlib": ".util.dtlib",
    "util/pkl5": ".util.pkl5",
    "util/pool": ".util.pool",
    "util/sync": ".util.sync",
}
# Names of MPI that begin with an underscore and that programs use nevertheless.
PRIVATE = {"_typedict", "_typedict_c", "_typedict_f", "_sizeof", "_addressof", "_handleof", "_comm_lock", "_typecode"}


def wanted(name):
    """Report whether a name is for programs."""
    return not name.startswith("_") or name in PRIVATE or (name.startswith("__") and name.endswith("__"))


@dataclass
class Program:
    """The text of a program, and which name each of its lines is about."""

    lines: list = field(default_factory=list)
    subjects: list = field(default_factory=list)

    def add(self, subject, text):
        for line in text.splitlines():
            self.lines.append(line)
            self.subjects.append(subject)

    def subject(self, number):
        """Return the name that a line, counted from 1, is about."""
        return self.subjects[number - 1]

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"


def programs(stubs, package, version):
    """Return a program for each stub below a folder, by the name of its file: {name: Program}.

    With the package mpi4py, they call what the stubs are of: a checker has to accept that. The version, as (3, 12), is
    the one of Python that the stubs are read for.
    """
    return {f"probe_{stub.replace('/', '_')}.py": _Probes(stubs, stub, package, version).program for stub in MODULES}


def module_of(stub, package):
    """Return the name of the module that has what a stub declares."""
    if (stub, package) == ("bench", "gormapy"):
        return "gormapy._alias.mpi4py.bench"
    return package + MODULES[stub]


def _flat(body, version):
    """Yield the statements of a body, of conditions about the version of Python those that hold."""
    for node in body:
        if isinstance(node, ast.If):
            names = {"sys": SimpleNamespace(version_info=version)}
            holds = eval(compile(ast.Expression(node.test), "stub", "eval"), names)
            yield from _flat(node.body if holds else node.orelse, version)
        else:
            yield node


class _Probes:
    def __init__(self, stubs, stub, package, version):
        self.program = Program()
        self._stub = stub
        self._module = module_of(stub, package)
        self._version = version
        self._package = package
        self._folder = stub.split("/")[:-1]  # what imports of the stub are relative to
        self._count = 0
        text = (stubs / f"{stub}.pyi").read_text(encoding="utf-8")
        nodes = list(_flat(ast.parse(text).body, version))
        self._declared = {name for node in nodes for name in _names(node)}
        self._header(nodes)
        for node in nodes:
            self._statement(node)

    def _add(self, name, text):
        self.program.add(f"{self._stub.replace('/', '.')}.{name}", text)

    # The head: what annotations refer to
    # -----------------------------------

    def _header(self, nodes):
        self._add("imports", "from __future__ import annotations")
        self._add("imports", "from typing import TypeVar")
        self._add("imports", f"import {self._module} as it")
        for node in nodes:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._add("imports", self._import(node))
        for node in nodes:
            if isinstance(node, ast.ClassDef) or (isinstance(node, ast.AnnAssign) and _is_type_alias(node)):
                for name in filter(wanted, _names(node)):
                    self._add(name, f"from {self._module} import {name}")
        for node in nodes:
            if self._is_alias(node):
                self._add("aliases", ast.unparse(node))

    def _import(self, node):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = self._folder[: len(self._folder) - node.level + 1]
            stub = "/".join([*folder, node.module] if node.module else [*folder, "__init__"])
            module = module_of(stub, self._package) if stub != "futures/_base" else "concurrent.futures"
            return f"from {module} import {', '.join(ast.unparse(alias) for alias in node.names)}"
        return ast.unparse(node)

    def _is_alias(self, node):
        """Report whether a statement defines a name for types: a type variable, or a private alias."""
        if isinstance(node, ast.AnnAssign):
            return _is_type_alias(node) and not wanted(node.target.id)
        return isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and not wanted(node.targets[0].id)

    # The declarations
    # ----------------

    def _statement(self, node):
        if isinstance(node, ast.FunctionDef) and wanted(node.name):
            self._function(node)
        elif isinstance(node, ast.ClassDef) and wanted(node.name):
            self._class(node)
        elif isinstance(node, ast.AnnAssign) and wanted(node.target.id):
            name = node.target.id
            if name == "__all__" or name.startswith("__pyx"):
                return
            type_ = ast.unparse(node.annotation)
            if type_ == "TypeAlias":  # the alias takes and gives what the stub says
                value = ast.unparse(node.value)
                self._define(name, f"(x: it.{name}) -> {value}", "x")
                self._define(name, f"(x: {value}) -> it.{name}", "x")
            else:
                if type_.startswith("Final["):
                    type_ = type_.removeprefix("Final[").removesuffix("]")
                self._define(name, f"() -> {type_}", f"it.{name}")
        elif isinstance(node, ast.Assign):
            (target,) = node.targets
            if isinstance(node.value, ast.Name):  # memory = buffer
                self._define(target.id, f"() -> type[{node.value.id}]", f"it.{target.id}")
            elif wanted(target.id):
                self._define(target.id, "() -> object", f"it.{target.id}")

    def _function(self, node):
        arguments = _without_defaults(node.args)
        for call in _calls(node.args):
            self._define(
                node.name, f"({ast.unparse(arguments)}) -> {ast.unparse(node.returns)}", f"it.{node.name}({call})"
            )

    def _class(self, node):
        bases = [
            base for base in node.bases if "Generic" not in ast.unparse(base) and "Protocol" not in ast.unparse(base)
        ]
        generic = next((ast.unparse(b) for b in node.bases if ast.unparse(b).startswith("Generic[")), "")
        this = node.name + generic.removeprefix("Generic")
        if not generic:
            inherited = [ast.unparse(b) for b in bases if isinstance(b, ast.Subscript) and "[T]" in ast.unparse(b)]
            this += "[T]" if inherited else ""
        for base in bases:
            self._define(f"{node.name} is a {ast.unparse(base)}", f"(x: {this}) -> {ast.unparse(base)}", "x")
        if any("Protocol" in ast.unparse(base) for base in node.bases):
            self._define(node.name, f"(x: it.{node.name}) -> object", "x")
        members = list(_flat(node.body, self._version))
        functions = {member.name: member for member in members if isinstance(member, ast.FunctionDef)}
        for member in members:
            if isinstance(member, ast.FunctionDef) and wanted(member.name):
                self._method(node.name, this, member, member.name)
            elif isinstance(member, ast.AnnAssign) and wanted(member.target.id):
                type_, name = ast.unparse(member.annotation), member.target.id
                if type_ == "TypeAlias":
                    self._define(f"{node.name}.{name}", f"(x: {this}) -> object", f"x.{name}")
                else:
                    self._define(f"{node.name}.{name}", f"(x: {this}) -> {type_}", f"x.{name}")
            elif isinstance(member, ast.Assign) and isinstance(member.value, ast.Name):  # Create_dup = Dup
                self._method(node.name, this, functions[member.value.id], member.targets[0].id)

    def _method(self, class_, this, node, name):
        decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
        returns = ast.unparse(node.returns)
        signature = _without_defaults(node.args)
        first = None
        if "staticmethod" not in decorators:
            first = (signature.posonlyargs or signature.args).pop(0)
        label = f"{class_}.{name}"
        variable = ""
        text = ast.unparse(signature)
        if first is not None and name not in ("__new__", "__init__"):
            type_ = this
            if "Self" in f"{returns} {text}":  # a subclass gets its own type
                variable = f"S{self._count}"
                self._add(label, f"{variable} = TypeVar({variable!r}, bound={this})")
                type_, returns, text = variable, _with(returns, variable), _with(text, variable)
            # A method whose parameters are to be passed by position only has one before the slash.
            type_ = f"type[{type_}]" if "classmethod" in decorators else type_
            text = f"x_: {type_}, {'/, ' if text == '/' or text.startswith('/,') else ''}" + text.removeprefix("/, ")
        if "property" in decorators:
            self._define(label, f"({text}) -> {returns}", f"x_.{name}")
            return
        calls = _calls(node.args, 0 if first is None else 1)
        if name.startswith("__") and name not in ("__new__", "__init__", "__call__"):
            calls = calls[:1]  # Python calls it, by position
        for call in calls:
            if name in ("__new__", "__init__"):
                self._define(label, f"({text}) -> {this}", f"{class_}({call})")
            else:
                self._define(label, f"({text}) -> {returns}", f"{'x_' if first is not None else class_}.{name}({call})")

    def _define(self, label, signature, value):
        self._count += 1
        returns = "" if signature.endswith("-> NoReturn") else "return "
        self._add(label, f"def p{self._count}{signature}:\n    {returns}{value}")


def _with(text, variable):
    """Return annotations with a type variable in place of Self."""
    tree = ast.parse(f"def f({text}): ..." if ":" in text or "=" in text else text)

    class Replace(ast.NodeTransformer):
        def visit_Name(self, node):
            return ast.Name(variable) if node.id == "Self" else node

    done = ast.unparse(Replace().visit(tree))
    return done.removeprefix("def f(").rpartition("):")[0] if done.startswith("def f(") else done


def _is_type_alias(node):
    return ast.unparse(node.annotation) == "TypeAlias"


def _names(node):
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        return [node.name]
    if isinstance(node, ast.AnnAssign):
        return [node.target.id]
    return [target.id for target in node.targets] if isinstance(node, ast.Assign) else []


def _without_defaults(arguments):
    """Return a copy in which a call has to give all parameters."""
    copy = ast.parse(f"def f({ast.unparse(arguments)}): ...").body[0].args
    copy.defaults = []
    copy.kw_defaults = [None] * len(copy.kwonlyargs)
    return copy


def _calls(arguments, skip=0):
    """Return the argument lists of calls with all parameters by position, all by name, and those without defaults."""
    plain = [*arguments.posonlyargs, *arguments.args]
    only = len(arguments.posonlyargs)
    required = len(plain) - len(arguments.defaults)
    rest = [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    named = [f"{a.arg}={a.arg}" for a in arguments.kwonlyargs]
    rest_named = [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    found = [[a.arg for a in plain[skip:]] + rest + named + rest_named]
    if not arguments.vararg:
        by_name = [f"{a.arg}={a.arg}" if k >= only else a.arg for k, a in enumerate(plain)][skip:]
        found.append(by_name + named + rest_named)
    needed = [f"{a.arg}={a.arg}" for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults) if default is None]
    passed_on = rest + rest_named if rest_named and ast.unparse(arguments.kwarg.annotation).endswith(".kwargs") else []
    found.append([a.arg for a in plain[skip:required]] + needed + passed_on)
    unique = []
    for call in (", ".join(call) for call in found):
        if call not in unique:
            unique.append(call)
    return unique
