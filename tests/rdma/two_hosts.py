"""Jobs over verbs on two hosts, which are guests with a kernel and a Soft-RoCE device each. See README.md."""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TREE = HERE.parent.parent
sys.path.insert(0, str(HERE))
from run import GUEST, no_guest, warm  # noqa: E402

# The guests are 20 times slower than a machine, and share its processors.
LIMIT = 300


def job(*program, **settings):
    """Run a program on two ranks of each guest. Return the status, and what the ranks have printed."""
    env = {
        **os.environ,
        "GORMAPY_FABRIC": "verbs",
        "PYTHONPATH": str(TREE / "python"),
        "PYTHONPYCACHEPREFIX": str(TREE / ".cache" / "bytecode"),
        **settings,
    }
    options = ["--guests", "2", "--timeout", str(LIMIT), "--env", "PYTHONPYCACHEPREFIX"]
    command = [GUEST, "run", *options, "--", HERE / "guest" / "ranks", "2", sys.executable, *program]
    done = subprocess.run(
        list(map(str, command)), cwd=TREE, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    print(done.stdout, flush=True)
    return done.returncode, done.stdout


def everything():
    """Messages, collectives and windows."""
    status, output = job(TREE / "tests" / "hosts" / "programs" / "everything.py")
    return status == 0 and "4 ranks on 2 nodes: all went well" in output


def info():
    """The ranks of the other host are reached by RDMA, at the address of its device."""
    status, output = job("-m", "gormapy", "info")
    far = re.findall(r"^host0: +[23] .* host1 .* verbs +rdma", output, re.MULTILINE)
    return status == 0 and len(far) == 2 and re.search(r"to rank 2: rxe0 port 1.* at ::ffff:10\.2\.0\.2", output)


def rank():
    """A rank is killed."""
    status, output = job(HERE / "programs" / "lost_peer.py", "rank")
    return status != 0 and "rank 3 has ended with status 137" in output and ended(output, [0, 1, 2])


def host():
    """A host ends without a word."""
    # Long enough for rank 0, which writes, to learn of it by the device before the job ends for that reason.
    _, output = job(HERE / "programs" / "lost_peer.py", "host", GORMAPY_PEER_TIMEOUT="10")
    learnt = re.search("rank 0 learns after .*: MPI_ERR_PROC_FAILED: .*IBV_WC_RETRY_EXC_ERR", output)
    return "the host ends" in output and learnt and ended(output, [0, 1])


def ended(output, ranks):
    """Report whether these ranks have failed, and at least one has said that another one was lost."""
    why = re.search(r"MPI_ERR_PROC_FAILED|gormapy: rank [23] .*(has ended|its host has left)", output)
    return why and all(re.search(rf"rank {r} has ended with status [^0]", output) for r in ranks)


CASES = {case.__name__: case for case in (everything, info, rank, host)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"some of: {' '.join(CASES)}; all unless told")
    args = parser.parse_args()
    if unknown := [name for name in args.cases if name not in CASES]:
        parser.error(f"no case {', '.join(unknown)}: there are {', '.join(CASES)}")
    if reason := no_guest():
        print(f"two hosts: skipped: {reason}")
        return 0
    warm()
    results = []
    for name in args.cases or CASES:
        print(f"\n=== {name}: {CASES[name].__doc__}", flush=True)
        begun = time.monotonic()
        result = "ok" if CASES[name]() else "failed"
        results.append((name, result, time.monotonic() - begun))
    print(f"\n{'case':<24}{'result':<24}seconds")
    for name, result, seconds in results:
        print(f"{name:<24}{result:<24}{seconds:7.1f}")
    return int(any(result != "ok" for _, result, _ in results))


if __name__ == "__main__":
    sys.exit(main())
