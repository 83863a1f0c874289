"""Command line of the OSU programs."""

import argparse
from functools import partial

from .label import sizes
from .osu import PROGRAMS, SIZES, SYNCS, TYPES, Settings, combinations, osu
from .windows import FLAVOURS

HEAD = "Each window and each synchronisation that is asked for is measured with each program that has it."


def among(known, whole="all"):
    """Return a reader of "a,b" that takes known names, and "all"."""

    def read(text):
        found = list(known) if text == whole else text.split(",")
        for name in found:
            if name not in known:
                raise argparse.ArgumentTypeError(f"there is no {name!r}: choose from {', '.join(known)}; or {whole}")
        return found

    return read


def some_sizes(text):
    """Read sizes, for argparse."""
    try:
        return sizes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_selection(parser):
    """Add the options that gormapy_compare has too."""
    parser.add_argument(
        "--window", type=among(FLAVOURS), default=["allocate"], help=f"of: {','.join(FLAVOURS)}; or all (allocate)"
    )
    parser.add_argument("--sync", type=among(SYNCS), help=f"of: {','.join(SYNCS)}; or all (flush; put_bibw: pscw)")
    parser.add_argument(
        "--sizes", type=some_sizes, help=f"bytes: FIRST:LAST by powers of two, or A,B,... ({SIZES[0]}:{SIZES[-1]})"
    )


def parse(args, add_common):
    """Read the command line of `osu`; `add_common` adds what all measurements have."""
    parser = argparse.ArgumentParser(
        prog="python -m gormapy.bench osu",
        description="Run the one-sided programs of the OSU micro-benchmarks from Python: their loops, sizes and "
        "numbers of iterations. " + HEAD + " fop_latency and cas_latency work on 8 bytes, as OSU's.",
        epilog="Latency (us) is the mean, as OSU prints it; the other columns are over batches of iterations. "
        "Validation looks at the memory of the target, or at what was fetched, after the last iteration.",
    )
    parser.add_argument("programs", nargs="+", metavar="PROGRAM", help=f"{', '.join(PROGRAMS)}; or all")
    add_selection(parser)
    parser.add_argument("--type", choices=TYPES, default="char", help="elements of Accumulate and Get_accumulate")
    parser.add_argument("--iterations", type=int, help="in place of OSU's, which depend on the size")
    parser.add_argument("--check", action=argparse.BooleanOptionalAction, default=True, help="validate every size")
    add_common(parser, "seconds after which a size ends early (default: OSU's iterations)", None)
    options = parser.parse_args(args)
    unknown = [name for name in options.programs if name not in (*PROGRAMS, "all")]
    if unknown:
        parser.error(f"there is no program {unknown[0]!r}: choose from {', '.join(PROGRAMS)}; or all")
    if options.iterations is not None and options.iterations < 1:
        parser.error(f"argument --iterations: {options.iterations} is not a number of iterations")
    names = list(PROGRAMS) if "all" in options.programs else options.programs
    wanted = list(combinations(names, options.window, options.sync))
    if not wanted:
        parser.error(f"{', '.join(names)} can't be synchronised by {', '.join(options.sync)}: use fence or pscw")
    options.name, options.default_ranks, options.error = "osu", 2, parser.error
    settings = Settings(options.iterations, options.budget, options.check, options.type)
    options.loop = partial(osu, wanted=wanted, sizes=options.sizes, settings=settings)
    return options
