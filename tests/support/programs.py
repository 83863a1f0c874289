"""The programs of a test file: functions of a file with its name in the folder ``programs`` beside it."""

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Program(NamedTuple):
    """What ranks run: a file, or a function of one."""

    file: Path
    function: str | None = None

    def __str__(self):
        return self.file.name + (f":{self.function}" if self.function else "")


@cache
def _functions(file):
    return frozenset(n.name for n in ast.parse(file.read_text()).body if isinstance(n, ast.FunctionDef))


class Programs:
    """The functions of a file, as attributes. The file is not imported here: it begins MPI."""

    def __init__(self, file):
        self._file = file

    def __getattr__(self, name):
        if name.startswith("_") or name not in _functions(self._file):
            raise AttributeError(f"{self._file} has no function {name}")
        return Program(self._file, name)

    def keys_of(self, table):
        """Return the keys of a table of the file, which tests have as parameters."""
        for node in ast.parse(self._file.read_text()).body:
            if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [table]:
                return [ast.literal_eval(key) for key in node.value.keys]
        raise AttributeError(f"{self._file} has no table {table}")


def beside(test_file, part=""):
    """Return the programs of a test file: programs/p2p.py for test_p2p.py, or a part: programs/p2p_PART.py."""
    test_file = Path(test_file).resolve()
    name = test_file.stem.removeprefix("test_") + (f"_{part}" if part else "")
    return Programs(test_file.parent / "programs" / f"{name}.py")
