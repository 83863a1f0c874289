"""Hours of one-sided operations, locks and files under a nemesis; SOAK_MINUTES says how many (a part of one).

Ranks are stopped and go on, are all interrupted and make a collective reset; at the end of each episode one of them is
killed, which ends the job, or the job comes to its end. What the operations returned is checked for linearizability, and what each
rank has of memory, descriptors and threads for growth.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.exhaustive

HERE = Path(__file__).parent
MINUTES = float(os.environ.get("SOAK_MINUTES", "0.5"))
EPISODE = 15.0 if MINUTES >= 2 else 5.0


@pytest.fixture(scope="session")
def checker(tmp_path_factory):
    """Build the program that checks histories."""
    path = tmp_path_factory.mktemp("checker") / "checker"
    go = [sys.executable, "-m", "gormapy_build", "go"]
    env = {**os.environ, "PYTHONPATH": str(HERE.parents[1] / "pybind" / "build")}
    subprocess.run([*go, "-C", str(HERE / "checker"), "test", "./..."], check=True, env=env, stdout=subprocess.DEVNULL)
    subprocess.run([*go, "-C", str(HERE / "checker"), "build", "-o", str(path), "."], check=True, env=env)
    return path


def haunt(job, ranks, chance, seconds):
    """Stop ranks for a while and interrupt all of them, until a time; return how often."""
    stops = interrupts = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(chance.uniform(0, 0.1))
        if chance.random() < 0.7:
            pid = chance.choice(list(ranks.values()))
            os.kill(pid, signal.SIGSTOP)
            time.sleep(chance.choice([0.001, 0.02, 0.3]))
            os.kill(pid, signal.SIGCONT)
            stops += 1
            continue
        for pid in ranks.values():
            os.kill(pid, signal.SIGINT)
            time.sleep(chance.choice([0, 0, 0.002]))
        interrupts += 1
        job.expect(rf"^reset \d+ {interrupts}$", len(ranks), timeout=60)
    return stops, interrupts


@pytest.mark.parametrize(
    ("window", "env"),
    [
        ("allocate", {}),
        ("create", {}),
        ("create", {"GORMAPY_ONE_COPY": "0"}),
        ("allocate", {"GORMAPY_FABRIC": "tcp"}),
    ],
    ids=["loads-and-stores", "kernel-copies", "messages", "tcp"],
)
def test_soak(mpirun, checker, tmp_path, window, env):
    seed = int(os.environ.get("SOAK_SEED") or random.randrange(1 << 32))
    print(f"\nSOAK_SEED={seed}")  # what the nemesis does; when it does it, the machine decides, too
    chance = random.Random(seed)
    until = time.monotonic() + MINUTES * 60 / 4
    total = {"episodes": 0, "killed": 0, "stops": 0, "interrupts": 0, "operations": 0, "looked at": 0}
    while time.monotonic() < until or not total["episodes"]:
        folder = tmp_path / f"episode{total['episodes']}"
        folder.mkdir()
        killed = chance.random() < 0.5
        job = mpirun.start(4, HERE / "program.py", folder, env={**env, "SOAK_WINDOW": window}, timeout=EPISODE + 150)
        ranks = job.pids(4)
        stops, interrupts = haunt(job, ranks, chance, EPISODE)
        if killed:
            os.kill(chance.choice(list(ranks.values())), signal.SIGKILL)
        else:
            (folder / "over").touch()
        result = job.finish(expect=137 if killed else 0)
        looked = re.findall(r"^resources \d (?!None)", result.stdout, re.MULTILINE)
        assert killed or interrupts < 3 or len(looked) == 4, str(result)
        total["looked at"] += len(looked)
        check = subprocess.run([checker, *sorted(folder.glob("history.*"))], capture_output=True, text=True)
        assert check.returncode == 0, f"{check.stdout}{check.stderr}{result}\nthe histories are in {folder}"
        assert " 0 words undecided" in check.stdout, check.stdout
        total["episodes"] += 1
        total["killed"] += killed
        total["stops"] += stops
        total["interrupts"] += interrupts
        total["operations"] += int(check.stdout.split()[0])
        shutil.rmtree(folder)
    print(f"\n{window} {env}: {total}")
