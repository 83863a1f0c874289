"""Jobs of any MPI's launcher that end in time: a hang or a crash of one library is a result, not the end."""

import contextlib
import os
import signal
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

MARK = "GORMAPY_BENCH_JOB"


@dataclass
class Outcome:
    """The output of a job, and its failure, if any, in a word and in a sentence."""

    stdout: str
    problem: str = ""
    detail: str = ""


def run(command, env, limit):
    """Run a job for at most `limit` seconds and return its Outcome; end all of its processes if it is late."""
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        command,
        env={**env, MARK: mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    late = False
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        late = True
        _end(process, mark)
        out, err = process.communicate()
    except BaseException:
        _end(process, mark)
        process.communicate()
        raise
    if late:
        return Outcome(out, "hang", f"had not ended after {limit:g} s")
    if process.returncode:
        return Outcome(out, *_failure(process.returncode, err))
    return Outcome(out)


def _failure(status, err):
    """Return a word and a sentence for a job that ended with a status other than 0."""
    lines = [line.strip() for line in err.splitlines() if line.strip()]
    said = next((line for line in lines if "Error" in line or "error" in line), lines[-1] if lines else "")
    number = -status if status < 0 else status - 128
    if number in signal.valid_signals() and number > 0:
        return "crash", f"ended by {signal.Signals(number).name}: {said[:200]}"
    return "error", f"ended with status {status}: {said[:200]}"


def _marked(mark):
    """Return the processes that have the mark of a job in their environment: launchers' helpers leave sessions."""
    sought = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and sought in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue  # it has ended, or belongs to another user
    return found


def _end(process, mark, patience=3.0):
    """End a job: first its launcher gets a signal, since it knows what to clean up."""
    process.terminate()
    end = monotonic() + patience
    while process.poll() is None and monotonic() < end:
        sleep(0.02)
    end = monotonic() + patience
    while (left := _marked(mark)) and monotonic() < end:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.poll()
        sleep(0.02)
