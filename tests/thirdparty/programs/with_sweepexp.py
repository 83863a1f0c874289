"""SweepExp runs an experiment for each combination of parameters, on the ranks."""

from mpi4py import MPI
from sweepexp import SweepExpMPI


def experiment(x: float, y: float) -> dict:
    return {"addition": x + y, "product": x * y}


sweep = SweepExpMPI(func=experiment, parameters={"x": [1, 2], "y": [3, 4, 5]})
sweep.run()
if MPI.COMM_WORLD.rank == 0:
    assert (sweep.data["status"].values == "C").all()
    assert sweep.data["product"].values.tolist() == [[3, 4, 5], [6, 8, 10]]
    print("checked")
