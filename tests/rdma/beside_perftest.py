"""Measure gormapy's verbs transport and perftest's programs in turn, and print the medians.

Nothing is asserted of the times: in the guest they depend on the load outside.
"""

import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = int(os.environ.get("ROUNDS", "5"))
#: Seconds after which no other round begins.
PATIENCE = 90
TESTS = os.environ["TESTS"]

#: What is measured: perftest's command, the column of its table, the role of our program, the unit.
MEASURES = {
    "write 8 B, half round trip": ("ib_write_lat -s 8 -n 500", 4, "write_lat", "us"),
    "fetch-add": ("ib_atomic_lat -A FETCH_AND_ADD -n 500", 4, "atomic_lat", "us"),
    "write 64 KiB": ("ib_write_bw -s 65536 -n 300", 3, "write_bw", "MiB/s"),
}


def devices() -> tuple[str, str]:
    names = sorted(p.name for p in Path("/sys/class/infiniband").iterdir())
    return names[0], names[-1]


def perftest(command: str, column: int) -> float | None:
    """Run server and client, and take the typical value or the average bandwidth; None if they did not end in time."""
    first, second = devices()
    index = ["-x", "1"] if "RXE_GUEST" in os.environ else []
    words = [*command.split(), "-F", *index]
    server = subprocess.Popen([*words, "-d", second], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(1.5)
        out = subprocess.run([*words, "-d", first, "127.0.0.1"], capture_output=True, text=True, timeout=40)
    except subprocess.TimeoutExpired:
        return None
    finally:
        server.kill()
        server.wait()
    rows = re.findall(r"^ *\d+ +\d+ .*$", out.stdout, re.M)
    if not rows:
        print(f"{command}: {out.stdout[-500:]}{out.stderr[-500:]}")
        return None
    return float(rows[-1].split()[column])


def ours(role: str) -> float | None:
    """Run our program, which ends in error if an operation fails; None if it did not end in time."""
    env = {**os.environ, "VERBS_TEST_ROLE": role}
    try:
        out = subprocess.run([f"{TESTS}/verbs.test"], env=env, capture_output=True, text=True, timeout=40)
    except subprocess.TimeoutExpired:
        return None
    if out.returncode:
        raise RuntimeError(f"{role}: {out.stdout[-500:]}{out.stderr[-500:]}")
    return float(out.stdout.split()[-1])


def main() -> int:
    values: dict[str, tuple[list[float | None], list[float | None]]] = {name: ([], []) for name in MEASURES}
    start = time.monotonic()
    rounds = 0
    while rounds < ROUNDS and time.monotonic() - start < PATIENCE:
        rounds += 1
        for name, (command, column, role, _unit) in MEASURES.items():
            values[name][0].append(perftest(command, column))
            values[name][1].append(ours(role))
    print(f"{'medians of ' + str(rounds) + ' rounds':<30}{'perftest':>12}{'gormapy':>12}{'ratio':>8}")
    for name, (_, _, _, unit) in MEASURES.items():
        each = values[name]
        theirs, own = ([v for v in side if v is not None] for side in each)
        if not theirs or not own:
            print(f"{name:<30}  did not end in time: the machine is too busy; each: {each}")
            continue
        a, b = statistics.median(theirs), statistics.median(own)
        ratio = a / b if unit == "MiB/s" else b / a
        print(f"{name:<30}{a:>12.1f}{b:>12.1f}{ratio:>8.2f}  {unit}; each: {each}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
