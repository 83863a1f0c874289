"""Print the report: ``python -m gormapy info``."""

import argparse
import json
import sys


def parse(args):
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m gormapy info",
        description="Say what gormapy is running on: everything that a bug report needs. "
        "Under a launcher (mpiexec -n 4 python -m gormapy info) also how the ranks reach each other.",
    )
    parser.add_argument("--config", action="store_true", help="list the settings: name, default, value, meaning")
    parser.add_argument("--json", action="store_true", help="write a JSON object instead of text")
    return parser.parse_args(args)


def main(args=None):
    """Print the report, under a launcher on rank 0 alone; end with status 1 if MPI can't be used."""
    options = parse(args)
    from . import report, world

    found = report()
    if found["error"]:
        if world.supposed_rank() != 0:
            sys.exit(f"rank {world.supposed_rank()}: {found['error']}")  # the report is rank 0's
    elif found["state"] == "initialized" and found["job"]["size"] > 1 and not options.config:
        from . import peers

        try:
            ranks = peers.gather()
        except (TimeoutError, RuntimeError) as error:  # RuntimeError: what MPI raises
            sys.exit(f"rank {found['job']['rank']}: {error}")
        if ranks is None:
            return
        found.update(ranks)
    if found["job"] and found["job"]["rank"] != 0:
        return
    _print(found, options)
    if (found["error"] and not options.config) or found.get("missing"):
        sys.exit(1)


def _print(found, options):
    from . import layout

    if options.json:
        print(json.dumps(found["settings"] if options.config else found, indent=1))
    elif options.config:
        print(layout.config(found["settings"]))
    else:
        print(layout.show(found))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
