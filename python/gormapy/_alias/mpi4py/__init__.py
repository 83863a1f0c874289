"""The package mpi4py of processes that a program under `gormapy.run` starts: they find it on PYTHONPATH."""

import importlib
import os
import sys

try:
    import gormapy.run as _run
except ModuleNotFoundError:  # from a source tree that is not on their path
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "..")))
    import gormapy.run as _run

_run.provide_mpi4py()
importlib.import_module("mpi4py")  # takes the place of this module
