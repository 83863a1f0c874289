"""Print the contents of a recording: python -m gormapy.trace out.json"""

import argparse
import csv
import sys

from .file import load

_ARRAYS = ("calls", "messages", "operations", "epochs")


def main(args=None):
    """Print the table of a recording, or one of its arrays."""
    parser = argparse.ArgumentParser(
        prog="python -m gormapy.trace",
        description="Print a table of the time that calls took in a recording of mpiexec --trace.",
    )
    parser.add_argument("file", help="the recording")
    parser.add_argument(
        "--csv", choices=_ARRAYS, metavar="WHAT", help=f"print one of these as CSV: {', '.join(_ARRAYS)}"
    )
    options = parser.parse_args(args)
    try:
        trace = load(options.file)
    except (OSError, ValueError) as error:
        sys.exit(f"gormapy.trace: {error}")
    if options.csv is None:
        print(trace.summary(), end="")
        return
    rows = getattr(trace, options.csv)
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(rows.dtype.names)
    out.writerows(row.item() for row in rows)


if __name__ == "__main__":
    main()
