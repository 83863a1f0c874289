"""The options of %%mpi and %mpi."""

import argparse

from IPython.core.error import UsageError

_MOST = 512


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise UsageError(f"{self.prog}: {message}\n{self.format_usage()}")

    def exit(self, status=0, message=None):
        raise UsageError(message or "")


def _count(text):
    try:
        n = int(text)
    except ValueError:
        n = 0
    if not 1 <= n <= _MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of ranks (1 to {_MOST})")
    return n


def _seconds(text):
    try:
        s = float(text)
    except ValueError:
        s = 0.0
    if not 0 < s < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds greater than 0")
    return s


def rank_list(text):
    """Return the ranks of "0,2" or "0-2,5", sorted."""
    ranks = set()
    try:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            numbers = range(int(first), int(last if dash else first) + 1)
            if not numbers or numbers[0] < 0 or numbers[-1] >= _MOST:
                raise ValueError
            ranks.update(numbers)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of ranks, such as 0,2 or 0-2,5") from None
    return sorted(ranks)


def cell_parser():
    """Return the parser of %%mpi."""
    p = _Parser(prog="%%mpi", add_help=False, description="Run the cell on ranks that stay alive between cells.")
    add = p.add_argument
    add("-n", type=_count, metavar="N", help="number of ranks; without it, that of the last cell, at first 4")
    add(
        "--hosts",
        metavar="LIST",
        help="start the ranks on these hosts, such as a,b or a:4,b:4; without it, on those of the last cell, at first "
        "on this one, or in an allocation of Slurm or Flux on its nodes",
    )
    add("--ranks", type=rank_list, metavar="LIST", help="run on these ranks only, such as 0,2 or 1-3")
    add("--timeout", type=_seconds, metavar="S", help="interrupt the cell after S seconds, and show what the ranks do")
    add("--fresh", action="store_true", help="start new ranks first: nothing of earlier cells is left")
    add("--local", action="store_true", help="run the cell in the notebook's own kernel first, too")
    add("--allow-errors", action="store_true", help="show what goes wrong, and go on with the notebook")
    add(
        "--shared-arrays",
        action="store_true",
        help="have NumPy make the cell's arrays in memory that the other ranks on the host can map",
    )
    add(
        "--check",
        nargs="?",
        const=True,
        default=False,
        choices=("exact",),
        help="start ranks that are checked, if they are not, and show races and misuse of one-sided communication; "
        "with --check=exact of all loads and stores, however many there are in a cell",
    )
    add(
        "--trace",
        nargs="?",
        const="",
        metavar="FILE",
        help="record what the ranks do and show a timeline; it stays in the variable mpi_trace, and in FILE",
    )
    add("-h", "--help", action="store_true", help="show this")
    return p


def line_parser():
    """Return the parser of %mpi."""
    p = _Parser(prog="%mpi", add_help=False, description="Do something with the ranks of this notebook.")
    p.add_argument("-h", "--help", action="store_true")
    sub = p.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    for name, text in (
        ("status", "show the ranks: process, state, memory"),
        ("start", "start ranks now, if there are none"),
        ("stop", "end the ranks"),
        ("reset", "put communication back into a defined state, on all ranks"),
    ):
        one = sub.add_parser(name, help=text, add_help=False)
        if name == "start":
            one.add_argument("-n", type=_count, metavar="N")
            one.add_argument("--hosts", metavar="LIST")
    for name, text in (
        ("pull", "bring variables of the ranks into the notebook: lists by rank, or dicts with --ranks"),
        ("push", "set variables of the notebook on the ranks"),
    ):
        one = sub.add_parser(name, help=text, add_help=False)
        one.add_argument("names", nargs="+", metavar="NAME")
        one.add_argument("--ranks", type=rank_list, metavar="LIST")
    return p
