"""Whether the memory that a program gives to one-sided calls has a name.

mpi4py keeps no reference to the arrays of one-sided calls. The array of `win.Put(np.ones(1), 1)` is freed before the
transfer, and what arrives is whatever lies there then. gormapy keeps them, so that running a program doesn't tell.
"""

import ast

# How many of the first arguments of each call are memory of the caller. A request (Rput, Isend) keeps its memory.
CALLS = {
    "Put": 1,
    "Get": 1,
    "Accumulate": 1,
    "Get_accumulate": 2,
    "Fetch_and_op": 2,
    "Compare_and_swap": 3,
}

_COMPLETING = {"Fence", "Flush", "Flush_all", "Flush_local", "Flush_local_all", "Unlock", "Unlock_all", "Complete"}


def temporary(tree):
    """Yield (line, call) for each call in a tree of Python that is given memory which nobody keeps.

    That is an array without a name, and one whose name is given to the next array in a loop before anything
    completes. An array that is gone because its function has returned is not found.
    """
    for node in ast.walk(tree):
        name = _called(node)
        if name in CALLS:
            if not all(_kept(buffer) for buffer in _buffers(node)):
                yield node.lineno, name
        elif isinstance(node, (ast.For, ast.While)):
            yield from _replaced(node)


def _called(node):
    """Return the name of the method that a node calls; "" if it calls none."""
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def _buffers(call):
    """Return the arguments of a call that are memory."""
    names = ("origin", "result", "compare")
    return call.args[: CALLS[_called(call)]] + [word.value for word in call.keywords if word.arg in names]


def _kept(node):
    """Report whether something else than the call refers to the memory that an argument stands for."""
    if isinstance(node, (ast.List, ast.Tuple)):  # [array, count, type]
        return bool(node.elts) and _kept(node.elts[0])
    if isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred)):
        return _kept(node.value)
    # A string is the key of an Info, whose Get has the same name.
    return isinstance(node, ast.Name) or (isinstance(node, ast.Constant) and isinstance(node.value, (str, type(None))))


def _root(node):
    """Return the name that an argument begins with; "" if there is none."""
    while not isinstance(node, ast.Name):
        if isinstance(node, (ast.List, ast.Tuple)) and node.elts:
            node = node.elts[0]
        elif isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred)):
            node = node.value
        else:
            return ""
    return node.id


def _replaced(loop):
    """Yield the calls in a loop whose arrays are replaced in it, if nothing in the loop completes them."""
    inside = [node for statement in loop.body for node in ast.walk(statement)]
    if any(_called(node) in _COMPLETING for node in inside):
        return
    made = {
        name.id
        for node in inside
        if isinstance(node, ast.Assign) and not isinstance(node.value, (ast.Name, ast.Attribute, ast.Subscript))
        for target in node.targets
        for name in ([*target.elts] if isinstance(target, ast.Tuple) else [target])
        if isinstance(name, ast.Name)
    }
    for node in inside:
        if _called(node) in CALLS and any(_root(buffer) in made for buffer in _buffers(node)):
            yield node.lineno, _called(node)
