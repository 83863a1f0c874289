"""pyPESTO optimizes from several starts by its MPI engine. Run by -m mpi4py.futures."""

import numpy as np
import pypesto
import pypesto.optimize as optimize
import scipy.optimize as so
from pypesto.engine.mpi_pool import MPIPoolEngine

if __name__ == "__main__":
    objective = pypesto.Objective(fun=so.rosen, grad=so.rosen_der)
    problem = pypesto.Problem(objective=objective, lb=-5 * np.ones((3, 1)), ub=5 * np.ones((3, 1)))
    result = optimize.minimize(problem, n_starts=6, engine=MPIPoolEngine(), progress_bar=False, filename=None)
    assert len(result.optimize_result.list) == 6
    assert result.optimize_result.list[0].fval < 1e-5
    print("checked")
