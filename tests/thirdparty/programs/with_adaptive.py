"""adaptive chooses points of a function; an executor of mpi4py.futures evaluates them. Run by -m mpi4py.futures."""

import adaptive
from mpi4py.futures import MPIPoolExecutor


def peak(x):
    return x + 0.01**2 / (0.01**2 + x**2)


if __name__ == "__main__":
    with MPIPoolExecutor() as executor:
        learner = adaptive.Learner1D(peak, bounds=(-1, 1))
        adaptive.BlockingRunner(learner, npoints_goal=60, executor=executor, shutdown_executor=True)
    assert learner.npoints >= 60
    assert min(abs(x) for x in learner.data) < 0.02
    print("checked")
