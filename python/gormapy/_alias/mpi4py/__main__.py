"""``python -m mpi4py``."""

from gormapy.run import main

if __name__ == "__main__":
    main()
