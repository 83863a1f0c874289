"""The programs of one-sided communication in tests/rma, and the ways in which they are run."""

from pathlib import Path

PROGRAMS = Path(__file__).resolve().parents[1] / "rma" / "programs"

# How memory of the program is reached: through the kernel, or, where it refuses that, by messages that the
# target's engine serves.
WAYS = {"kernel": {}, "messages": {"GORMAPY_ONE_COPY": "0"}}
