"""Run test modules of mpi4py on this rank, and write what came of every test.

    mpiexec -n 2 python -m gormapy.run unittests.py FOLDER OUTPUT MODULE...

The file OUTPUT/RANK.jsonl gets one line for each test: [id, outcome, reason].
"""

import importlib
import json
import sys
import unittest
from pathlib import Path


class Recorder(unittest.TestResult):
    """Result that writes each test's outcome at once, so that a test that hangs is known."""

    def __init__(self, file):
        super().__init__()
        self.file = file

    def note(self, test, outcome, reason=""):
        """Write a line."""
        print(json.dumps([test.id(), outcome, reason]), file=self.file, flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.note(test, "started")

    def addSuccess(self, test):
        self.note(test, "passed")

    def addSkip(self, test, reason):
        self.note(test, "skipped", reason)

    def addExpectedFailure(self, test, error):
        self.note(test, "passed")

    def addUnexpectedSuccess(self, test):
        self.note(test, "failed", "it was expected to fail")

    def addFailure(self, test, error):
        self.note(test, "failed", self.explain(error))

    def addError(self, test, error):
        self.note(test, "failed", self.explain(error))

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.note(test, "failed", self.explain(error))

    def explain(self, error):
        """Return the type, the text and the place of an exception."""
        kind, value, trace = error
        while trace.tb_next is not None:
            trace = trace.tb_next
        place = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        return f"{kind.__name__}: {value} ({place})"


def main(folder, output, *modules):
    """Run all tests of some modules."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, folder)
    sys.modules["cupy"] = sys.modules["numba"] = None  # slow to import, and not meant
    MPI = importlib.import_module("mpi4py.MPI")
    with (Path(output) / f"{MPI.COMM_WORLD.Get_rank()}.jsonl").open("w") as file:
        result = Recorder(file)
        for module in modules:
            unittest.defaultTestLoader.loadTestsFromName(module).run(result)
        print(json.dumps(["", "ended", ""]), file=file, flush=True)


if __name__ == "__main__":  # not in workers of pools
    main(*sys.argv[1:])
