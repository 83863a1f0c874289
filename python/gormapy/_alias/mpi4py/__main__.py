"""``python -m mpi4py``."""

from gormapy.run import main

main()
