"""Run `gormapy.bench` under an interpreter that has no gormapy: ``python PATH/elsewhere.py ring --mpi mpi4py.MPI``.

The interpreter of another MPI's environment must not find this one's packages (its NumPy may be for another
Python), so this file loads only that package, by path and under another name.
"""

import importlib.util
import os
import sys

NAME = "gormapy_bench"


def load():
    """Import `gormapy.bench` as `gormapy_bench` and return its command line's function."""
    here = os.path.dirname(os.path.abspath(__file__))
    # Python puts the folder of a script first: names such as `table` must not hide other modules.
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    folder = os.path.join(os.path.dirname(here), "gormapy", "bench")
    spec = importlib.util.spec_from_file_location(
        NAME, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = package
    spec.loader.exec_module(package)
    return importlib.import_module(f"{NAME}.__main__").main


if __name__ == "__main__":
    load()()
