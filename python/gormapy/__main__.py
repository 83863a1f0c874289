"""Print what gormapy is and which commands it has: ``python -m gormapy``."""

import sys

from . import __version__

USAGE = """\
usage: python -m gormapy [info | --version | --help]

One-sided MPI for Python. Programs say "from gormapy import MPI"; these commands go with it:

  mpiexec -n 4 python script.py           run a program on 4 ranks of this machine
                                          (also as gormapy-mpiexec and python -m gormapy.launch)
  python -m gormapy.run script.py         run a program written for mpi4py, unchanged
  python -m gormapy info                  what gormapy runs on: put it into a bug report
                                          (info --config: the settings; under mpiexec: the ranks)
  python -m gormapy.bench NAME            measure how fast this machine is
  python -m gormapy.examples.NAME         run an example: demo, ring, put, heat, work_queue"""


def main(args=None):
    """Run info, or answer --version and --help."""
    args = sys.argv[1:] if args is None else args
    if args in ([], ["-h"], ["--help"]):
        print(USAGE)
    elif args in (["-V"], ["--version"]):
        print(f"gormapy {__version__}")
    elif args[0] == "info":
        from .info.__main__ import main as info

        info(args[1:])
    else:
        print(f"python -m gormapy: there is no command {' '.join(args)!r}\n{USAGE}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
