"""Start a program on several processes: ``python -m gormapy.launch -n 4 script.py``."""

import os
import sys


def launcher():
    """Return the path of the mpiexec program of this installation."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bin", "mpiexec")


def main(args=None):
    """Become mpiexec, which puts this interpreter before programs that are Python files.

    `args` are its arguments, by default those of the command line. It does not return; if mpiexec can't be started, the
    process exits with a message.
    """
    args = sys.argv[1:] if args is None else args
    path = launcher()
    try:
        os.execv(path, ["mpiexec", "--python", sys.executable, *args])
    except OSError as error:
        sys.exit(
            f"gormapy: cannot start the launcher {path}: {error.strerror}; "
            "install gormapy with pip, or build it with make build"
        )


if __name__ == "__main__":
    main()
