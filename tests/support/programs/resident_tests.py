"""Tests that are killed while their ranks wait for a program: resident_tests.py FOLDER."""

import os
import signal
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TESTS))

from support.programs import Program  # noqa: E402
from support.resident import Pool, Ranks  # noqa: E402

folder = Path(sys.argv[1])
ranks = Ranks(Pool(folder), folder)
ranks(2, Program(TESTS / "support" / "programs" / "resident.py", "process"))
print(next(iter(ranks.pool.teams.values())).mark, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
