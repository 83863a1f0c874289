"""A recording as arrays."""

import json
import math
import os
import tempfile

import numpy as np

from . import epochs

CALL = np.dtype(
    [
        ("rank", "i4"),
        ("thread", "i8"),
        ("name", "U32"),
        ("category", "U12"),
        ("begin", "f8"),
        ("end", "f8"),
        ("wait", "f8"),
        ("waits_for", "i4"),
        ("comm", "i8"),
        ("window", "i8"),
        ("peer", "i4"),
        ("tag", "i4"),
        ("bytes", "i8"),
        ("finished", "?"),
        ("failed", "?"),
    ]
)
MESSAGE = np.dtype(
    [
        ("source", "i4"),
        ("dest", "i4"),
        ("tag", "i4"),
        ("comm", "i8"),
        ("bytes", "i8"),
        ("sent", "f8"),
        ("received", "f8"),
    ]
)
OPERATION = np.dtype(
    [
        ("rank", "i4"),
        ("target", "i4"),
        ("peer", "i4"),
        ("window", "i8"),
        ("name", "U32"),
        ("disp", "i8"),
        ("bytes", "i8"),
        ("span", "i8"),
        ("op", "i4"),
        ("begin", "f8"),
        ("end", "f8"),
        ("epoch", "i4"),
        ("call", "i8"),
    ]
)

NOBODY = -3


class Trace:
    """What the ranks of a job did, as NumPy structured arrays. Times are seconds since `start`.

    start, duration: the first event by MPI.Wtime() (of a notebook's cell: when the first rank began it), and the
        seconds from there to the last event.
    calls: rank, thread, name, category, begin, end, wait (the seconds in which the call waited), waits_for (the rank in
        COMM_WORLD that it waited for longest, negative: no particular one), comm and window (the same number at
        all ranks, -1: none), peer (rank in the communicator or window, of an intercommunicator in its remote group;
        -1 ANY_SOURCE, -2 PROC_NULL, -3 none, or ROOT), tag (of a Fence its assertion, of a Lock its type), bytes,
        finished (False: the rank ended in it), failed (True: it raised an exception).
    messages: source and dest in COMM_WORLD, tag, comm, bytes, sent, received (NaN: not recorded, or never).
    operations: one-sided ones. rank and target in COMM_WORLD, peer (the target's rank in the window), window, name,
        disp and span (the accessed range in bytes), bytes, op (handle of the MPI.Op), begin, end, epoch (index
        into `epochs`, -1: none), call (index into `calls`).
    epochs: rank, window, kind (fence, lock, lock_all, access, exposure), target (of a lock, in the window; -1),
        begin, end, closed, operations (how many this rank issued in it).
    """

    def __init__(self, document):
        """Make a Trace of a parsed JSON document in the Chrome trace event format, as mpiexec --trace writes it."""
        other = document.get("otherData", {}) if isinstance(document, dict) else {}
        if other.get("producer") != "gormapy" or not isinstance(document.get("traceEvents"), list):
            raise ValueError("no recording of gormapy's: mpiexec --trace FILE and gormapy.trace.record make them")
        self.ranks = other["ranks"]
        self.absent = list(other["absent"])
        self.dropped = {int(rank): n for rank, n in other["dropped"].items()}
        self.window_ranks = {int(window): about["ranks"] for window, about in other["windows"].items()}
        self.start = other["start_ns"] / 1e9  # by CLOCK_MONOTONIC, which is time.monotonic() and MPI.Wtime()
        self.duration = (other["end_ns"]) / 1e9
        self._summary = other["summary"]
        self._read(document["traceEvents"])
        order = np.lexsort((self.calls["begin"], self.calls["rank"]))
        self.calls = self.calls[order]
        places = np.empty(len(order), "i8")
        places[order] = np.arange(len(order))
        self.operations["call"] = places[self.operations["call"]]
        self.operations = self.operations[np.argsort(self.operations["begin"], kind="stable")]
        self.messages = self.messages[np.argsort(np.nan_to_num(self.messages["sent"], nan=0), kind="stable")]
        self.epochs = epochs.assign(epochs.find(self.calls, self.duration), self.operations)

    def _read(self, events):
        calls, messages, operations, sends = [], [], [], {}
        for event in events:
            phase = event["ph"]
            if phase == "X" and event["cat"] != "access":
                args = event["args"]
                begin = event["ts"] / 1e6
                end = begin + event["dur"] / 1e6
                window = args.get("window", -1)
                peer = args.get("peer", NOBODY)
                if "target" in args and "failed" not in args:
                    operations.append(
                        (
                            event["pid"],
                            args["target"],
                            peer,
                            window,
                            event["name"],
                            args["disp"],
                            args["bytes"],
                            args["span"],
                            args["op"],
                            begin,
                            end,
                            -1,
                            len(calls),
                        )
                    )
                calls.append(
                    (
                        event["pid"],
                        event["tid"],
                        event["name"],
                        event["cat"],
                        begin,
                        end,
                        args["wait_us"] / 1e6,
                        args.get("waits_for", -2),
                        args.get("comm", -1),
                        window,
                        peer,
                        args.get("tag", -1),
                        args["bytes"],
                        "unfinished" not in args,
                        "failed" in args,
                    )
                )
            elif event.get("cat") == "message":
                args = event["args"]
                of = args["source"], args["dest"], args["tag"], args["comm"], args["bytes"]
                at = event["ts"] / 1e6
                if phase == "s":
                    sends[event["id"]] = at
                elif phase == "f":
                    # the receiver's: it may have received less than was sent
                    messages.append((*of, sends.pop(event["id"]), at))
                elif phase == "i" and event["name"] == "not received":
                    messages.append((*of, at, math.nan))
                elif phase == "i":
                    messages.append((*of, math.nan, at))
        self.calls = np.array(calls, CALL)
        self.messages = np.array(messages, MESSAGE)
        self.operations = np.array(operations, OPERATION)

    def summary(self):
        """Return a table of the time that each rank spent in each call, as text.

        Times are in seconds.
        """
        return self._summary

    def __repr__(self):
        return (
            f"<Trace of {self.ranks} ranks, {self.duration:.6g} s: {len(self.calls)} calls, {len(self.messages)} "
            f"messages, {len(self.operations)} one-sided operations, {len(self.epochs)} epochs>"
        )


def load(path):
    """Read a recording that mpiexec --trace or `record` has written, and return the Trace.

    Errors: ValueError for a file that is no recording; OSError if it can't be read.
    """
    with open(path, encoding="utf-8") as file:
        try:
            document = json.load(file)
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)} is not JSON: {error}") from None
    try:
        return Trace(document)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from None


def join(parts, path=None, clocks=None, origin=None):
    """Join the parts that `stop` has returned at each rank (bytes) and return the Trace.

    With a path the file for Perfetto is written there. For parts of several hosts ``clocks`` has a tuple for each: the
    host's name, and what to add to its CLOCK_MONOTONIC, in nanoseconds, when the recording began and when it ended.
    Times begin with the first event, or at the ``origin`` before it, in nanoseconds by this host's CLOCK_MONOTONIC.

    Errors: OSError if the file can't be written.
    """
    from gormapy._ext import core

    with tempfile.TemporaryDirectory(prefix="trace-") as folder:
        names = []
        for number, part in enumerate(parts):
            names.append(os.path.join(folder, str(number)))
            with open(names[-1], "wb") as file:
                file.write(part)
            if clocks is not None:
                names[-1] += "\t{}\t{}\t{}".format(*clocks[number])
        to = os.fspath(path) if path is not None else os.path.join(folder, "out.json")
        problem = core.TraceWrite("\n".join(names), os.path.abspath(to), origin or 0)
        if problem:
            raise OSError(f"can't write the recording: {problem}")
        return load(to)
