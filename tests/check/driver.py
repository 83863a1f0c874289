"""Run programs one after the other: driver.py MODULE NAME... in a job that is checked."""

import importlib.util
import sys

from gormapy import MPI

spec = importlib.util.spec_from_file_location("program", sys.argv[1])
program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(program)
for name in sys.argv[2:]:
    getattr(program, name)()
    MPI.COMM_WORLD.Barrier()
