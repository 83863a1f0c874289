"""Platypus optimizes two objectives at once; the workers of its own MPI pool evaluate them."""

import random
import sys

from platypus import NSGAII, Problem, Real
from platypus.evaluator import PoolEvaluator
from platypus.mpipool import MPIPool


def schaffer(variables):
    return [variables[0] ** 2, (variables[0] - 2) ** 2]


pool = MPIPool()
if not pool.is_master():
    pool.wait()
    sys.exit(0)
random.seed(1)
problem = Problem(1, 2)
problem.types[:] = Real(-10, 10)
problem.function = schaffer
with PoolEvaluator(pool) as evaluator:
    algorithm = NSGAII(problem, evaluator=evaluator)
    algorithm.run(2000)
assert all(-0.2 <= solution.variables[0] <= 2.2 for solution in algorithm.result)
print("checked")
