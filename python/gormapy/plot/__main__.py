"""Draw a recording: python -m gormapy.plot out.json -o picture.png"""

import argparse
import sys
from pathlib import Path

PICTURES = ("timeline", "matrix", "windows", "waits")


def main(args=None):
    """Draw pictures of a recording into files."""
    parser = argparse.ArgumentParser(
        prog="python -m gormapy.plot", description="Draw a recording of mpiexec --trace. Needs matplotlib."
    )
    parser.add_argument("file", help="the recording")
    parser.add_argument(
        "-o", "--output", required=True, help="picture to write; its suffix says the format (.png, .svg, .pdf)"
    )
    parser.add_argument(
        "--what",
        choices=[*PICTURES, "all"],
        default="timeline",
        help="all: four files, with the name before the suffix",
    )
    parser.add_argument("--from", dest="begin", type=float, metavar="S", help="timeline: seconds at which it begins")
    parser.add_argument("--to", dest="end", type=float, metavar="S", help="timeline: seconds at which it ends")
    parser.add_argument("--window", type=int, help="windows: number of the window")
    parser.add_argument("--dpi", type=int, default=120)
    options = parser.parse_args(args)
    try:
        paths = draw(options)
    except (OSError, ValueError, ImportError) as error:
        sys.exit(f"gormapy.plot: {error}")
    print(*paths, sep="\n")


def draw(options):
    """Draw the pictures that the options select and return their paths."""
    from gormapy import plot, trace

    recording = trace.load(options.file)
    own = {"timeline": {"begin": options.begin, "end": options.end}, "windows": {"window": options.window}}
    wanted = PICTURES if options.what == "all" else (options.what,)
    paths = []
    for name in wanted:
        path = Path(options.output)
        if len(wanted) > 1:
            path = path.with_name(f"{path.stem}.{name}{path.suffix}")
        figure = getattr(plot, name)(recording, **own.get(name, {}))
        figure.savefig(path, dpi=options.dpi)
        paths.append(path)
    return paths


if __name__ == "__main__":
    main()
