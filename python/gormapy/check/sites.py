"""Sites: lines of the program that call gormapy, and the names of the variables that they pass."""

import ast
import linecache
import os
import re
import sys
import sysconfig

from gormapy._ext import fast

from . import kinds

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = sysconfig.get_path("stdlib") + os.sep
_NUMPY = os.path.join(sysconfig.get_path("platlib"), "numpy") + os.sep
_INSTALLED = _LIBRARY + "site-packages" + os.sep, _LIBRARY + "dist-packages" + os.sep
_PROGRAMS = tuple(_OURS + name + os.sep for name in ("examples", "bench"))
_OPTIMIZED = 1  # inspect.CO_OPTIMIZED, of functions
_ROLES = {
    "Get_accumulate": ("origin", "result"),
    "Rget_accumulate": ("origin", "result"),
    "Fetch_and_op": ("origin", "result"),
    "Compare_and_swap": ("origin", "compare", "result"),
    "put_notify": ("window", "origin"),
}

_sites = {}  # (id of the code, line, call, place) -> (number, the code, which stays alive with it)
_own = {}  # file name -> whether it is a file of this package
_trees = {}  # file name -> syntax tree, None if it has none


def here(call, place=None):
    """Return the number of the site at which the program makes a call, which this is called from.

    `place` is that of an argument, its index and name: reports name what it is, and not the first one.
    """
    frame = _program(sys._getframe(2))
    site = _sites.get((id(frame.f_code), frame.f_lineno, call, place))
    return _define(frame.f_code, frame.f_lineno, call, place) if site is None else site[0]


def accessing(write, address):
    """Return the number of the site at which the program accesses memory: the caller's caller."""
    frame = _program(sys._getframe(2))
    call = "store" if write else "load"
    site = _sites.get((id(frame.f_code), frame.f_lineno, call, None))
    if site is not None:
        return site[0]
    return _define(frame.f_code, frame.f_lineno, call, None, _named(frame, address))


def _is_library(file):
    """Report whether a file is of this package, of NumPy or of Python's library, whose lines are not the program's."""
    if file.startswith((_OURS, _NUMPY)):
        return not file.startswith(_PROGRAMS)
    return file.startswith((_LIBRARY, "<frozen")) and not file.startswith(_INSTALLED)


def _program(frame):
    """Return the innermost frame of the program itself."""
    while True:
        name = frame.f_code.co_filename
        own = _own.get(name)
        if own is None:
            own = _own[name] = _is_library(name)
        if not own or frame.f_back is None:
            break
        frame = frame.f_back
    return frame


def _named(frame, address):
    """Return the name of the variable whose memory has an address, preferably one that the line names."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return ""
    words = set(re.findall(r"\w+", linecache.getline(frame.f_code.co_filename, frame.f_lineno)))
    found = ""
    for name, value in _locals(frame) + list(frame.f_globals.items()):
        if isinstance(value, numpy.ndarray) and _has(numpy, value, address):
            if name in words:
                return name
            found = found or name
    return found


def _locals(frame):
    """Return the names and values of a frame's local variables."""
    scope = frame.f_locals
    pairs = list(scope.items())
    # Up to Python 3.12 that of a function is a copy, in which the frame would keep the values alive. It is left alone
    # if the program has it, and while something traces: what is not in it when a trace function returns is deleted.
    copied = sys.version_info < (3, 13) and frame.f_code.co_flags & _OPTIMIZED
    if copied and sys.gettrace() is None and sys.getrefcount(scope) <= 3:
        scope.clear()
    return pairs


def _has(numpy, array, address):
    low, high = (
        numpy.lib.array_utils.byte_bounds(array) if hasattr(numpy.lib, "array_utils") else numpy.byte_bounds(array)
    )
    return low <= address < high


def _define(code, line, call, place, variable=None):
    number = len(_sites) + 1
    _sites[id(code), line, call, place] = number, code
    file = code.co_filename
    text = linecache.getline(file, line).strip()
    names = _arguments(file, line, call, place) if variable is None else {"origin": variable}
    function = getattr(code, "co_qualname", code.co_name)
    window, origin, result, compare = (names.get(role, "") for role in ("window", "origin", "result", "compare"))
    fields = (file, call, text, function, window, origin, result, compare)
    fast.check_event(kinds.DEF_SITE, 0, "\0".join(fields)[:8000], number, line)
    fast.check_site(code, line, call, number)
    return number


def _arguments(file, line, call, place):
    """Return what a call at a line names its window and its buffers, or the argument at a place."""
    best = None
    for node in ast.walk(_tree(file)):
        if (
            isinstance(node, ast.Call)
            and call == getattr(node.func, "attr", getattr(node.func, "id", None))
            and node.lineno <= line <= node.end_lineno
            and (best is None or node.lineno >= best.lineno)
        ):
            best = node
    if best is None:
        return {}
    names = {"window": _text(best.func.value)} if isinstance(best.func, ast.Attribute) and _is_of_windows(call) else {}
    roles = _ROLES.get(call, ("origin",))
    if place is not None:
        roles = ("",) * place[0] + ("origin",)
    for role, node in zip(roles, best.args):
        names[role] = _text(node)
    for keyword in best.keywords:
        if keyword.arg in roles:
            names[keyword.arg] = _text(keyword.value)
        if place is not None and keyword.arg == place[1]:
            names["origin"] = _text(keyword.value)
    return names


def _is_of_windows(call):
    """Report whether a call is a method of a window: not Free_mem, nor Create, which is one of the class."""
    from gormapy import MPI

    return hasattr(MPI.Win, call) and not call.startswith(("Create", "Allocate"))


def _tree(file):
    if file not in _trees:
        try:
            _trees[file] = ast.parse("".join(linecache.getlines(file)))
        except (SyntaxError, ValueError):
            _trees[file] = ast.Module([], [])
    return _trees[file]


def _text(node):
    if isinstance(node, (ast.List, ast.Tuple)) and node.elts:
        node = node.elts[0]  # of a specification, the buffer
    text = ast.unparse(node)
    return text if len(text) <= 40 else text[:37] + "..."
