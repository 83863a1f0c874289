"""Run a program of the tests on a rank: a file, or a function of a file.

    python program.py FILE FUNCTION JSON-ARGUMENTS

A file runs as ``python FILE ARGUMENTS`` does. A function is called with its arguments, after its file has been
executed as a module, so that what it pickles is found by the name of that module.
"""

import json
import os
import sys
import types

_compiled = {}


def compiled(path):
    """Return the code of a file; ranks that stay run many functions of one file."""
    stamp = os.stat(path).st_mtime_ns
    if _compiled.get(path, (None,))[0] != stamp:
        with open(path, "rb") as file:
            _compiled[path] = stamp, compile(file.read(), path, "exec")
    return _compiled[path][1]


def execute(path, function, arguments):
    """Execute a file in a namespace of its own, and call the function where one is named."""
    name = "__main__" if function is None else os.path.splitext(os.path.basename(path))[0]
    module = types.ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    sys.argv = [path, *map(str, arguments)]
    sys.path.insert(0, os.path.dirname(path))
    exec(compiled(path), module.__dict__)
    if function is not None:
        getattr(module, function)(*arguments)


def command(function, *arguments):
    """Return the command that calls a function of a program in a process of its own."""
    return [sys.executable, __file__, function.__code__.co_filename, function.__name__, json.dumps(arguments)]


if __name__ == "__main__":
    execute(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
