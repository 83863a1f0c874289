"""Run nxtval-mpi3.py, whose path is the argument, with the barrier that it lacks."""

import runpy
import sys

namespace = runpy.run_path(sys.argv[1])


class Counter(namespace["Counter"]):
    def __init__(self, comm):
        super().__init__(comm)
        comm.Barrier()


namespace["test_counter"].__globals__["Counter"] = Counter
namespace["test_counter"]()
namespace["test_mutex"]()
