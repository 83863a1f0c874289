"""What mpiexec --check finds in the ranks of a session, as the owner reads it; it outlives them."""

import json
import os

from ..check import LIMIT
from .errors import ranks_text

_CHUNK = 1 << 20
_FINDING = b'{"class":'  # how the lines begin that are findings: the others are few


class Checked:
    """A file in memory to which mpiexec writes what it finds."""

    def __init__(self, exact):
        self.exact = exact  # all loads and stores are looked at, however many there are
        # unbuffered: it is read by its descriptor, while mpiexec writes
        self._file = open(os.memfd_create("gormapy-found", os.MFD_CLOEXEC), "rb", buffering=0)  # noqa: SIM115
        self._rest = None  # its lines, when it is closed
        self._told, self._limited, self._unseen, self._blind, self._failed = 0, set(), set(), False, False

    @property
    def option(self):
        """The launcher's option."""
        return f"--check={'exact,' if self.exact else ''}json:/proc/{os.getpid()}/fd/{self._file.fileno()}"

    def news(self):
        """Return what has been found since the last call, as records, and remarks about what was not looked at."""
        lines, remarks = self._lines(), []
        found = [line for line in lines if line.startswith(_FINDING)]
        for line in lines:
            if line.startswith(_FINDING):
                continue
            record = json.loads(line)
            new = set(record.get("limited", ())) - self._limited
            if new:
                self._limited |= new
                remarks.append(
                    f"Of {ranks_text(new)} only the first {LIMIT:,} loads and stores here were looked at. Later ones "
                    "are looked at on new ranks only."
                )
            new = set(record.get("unseen", ())) - self._unseen
            if new:
                self._unseen |= new
                remarks.append(
                    "Only calls are looked at, not loads and stores, of memory that neither NumPy nor MPI has "
                    f"allocated: {', '.join(sorted(new))}."
                )
            if "blind" in record and not self._blind:
                self._blind = True
                remarks.append("Only calls are looked at: loads and stores are not seen on this processor.")
            if "failure" in record and not self._failed:
                self._failed = True
                remarks.append(
                    "mpiexec --check: internal error, after which nothing is looked at: please report it: "
                    + record["failure"]
                )
        new, self._told = found[self._told :], max(self._told, len(found))
        return [json.loads(line) for line in new], remarks

    def close(self):
        """Close the file, and keep what is in it."""
        self._rest = self._lines()
        self._file.close()

    def _lines(self):
        if self._rest is not None:
            return self._rest
        text, at = [], 0
        while part := os.pread(self._file.fileno(), _CHUNK, at):
            text.append(part)
            at += len(part)
        *lines, _ = b"".join(text).split(b"\n")  # the last one may not be complete yet
        return lines
