"""A job of two ranks of which one is killed while the other writes to it, over verbs: it ends, and says why."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent / "programs" / "killed_target.py"
mpiexec = Path(__file__).resolve().parents[2] / "python/gormapy/_bin/mpiexec"
command = [str(mpiexec), "-n", "2", "--timeout", "90", sys.executable, str(PROGRAM)]
done = subprocess.run(command, env={**os.environ, "GORMAPY_FABRIC": "verbs"}, stderr=subprocess.PIPE, text=True)
print(done.stderr)
print("ended with status", done.returncode)
sys.exit(done.returncode != 128 + 9 or "rank 1" not in done.stderr)
