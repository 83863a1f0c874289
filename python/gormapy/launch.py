"""Start a program on several processes: ``python -m gormapy.launch -n 4 script.py``."""

import os
import sys

# Options of mpiexec with the number of arguments that they take; all others take none.
_ARGUMENTS = {
    "-n": 1,
    "-np": 1,
    "-c": 1,
    "-x": 1,
    "-wdir": 1,
    "-wd": 1,
    "-host": 1,
    "-H": 1,
    "-hosts": 1,
    "-hostfile": 1,
    "-machinefile": 1,
    "-f": 1,
    "-timeout": 1,
    "-bind-to": 1,
    "-map-by": 1,
    "-rank-by": 1,
    "-env": 2,
    "-genv": 2,
    "-mca": 2,
}


def launcher():
    """Return the path of the mpiexec program of this installation."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bin", "mpiexec")


def with_interpreter(args):
    """Put this interpreter before a program that is a Python file."""
    i = 0
    while i < len(args) and args[i].startswith("-") and args[i] not in ("-", "--"):
        option = args[i][1:] if args[i].startswith("--") else args[i]
        i += 1
        if "=" not in option:
            i += _ARGUMENTS.get(option, 0)
    if i < len(args) and args[i] == "--":
        i += 1
    if i < len(args) and args[i].endswith(".py"):
        return [*args[:i], sys.executable, *args[i:]]
    return list(args)


def main(args=None):
    """Become mpiexec."""
    args = sys.argv[1:] if args is None else args
    path = launcher()
    try:
        os.execv(path, ["mpiexec", *with_interpreter(args)])
    except OSError as error:
        sys.exit(
            f"gormapy: cannot start the launcher {path}: {error.strerror}; "
            "install gormapy with pip, or build it with make build"
        )


if __name__ == "__main__":
    main()
