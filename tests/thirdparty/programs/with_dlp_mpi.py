"""dlp_mpi divides the work among the ranks, evenly or as they become free."""

import dlp_mpi
from mpi4py import MPI

mine = [x * x for x in dlp_mpi.split_round_robin(range(30))]
parts = dlp_mpi.gather(mine)
if dlp_mpi.IS_MASTER:
    assert sorted(x for part in parts for x in part) == [x * x for x in range(30)]
managed = dlp_mpi.gather([x * x for x in dlp_mpi.split_managed(range(30), progress_bar=False)])
found = sorted(dlp_mpi.map_unordered(abs, range(-30, 0), progress_bar=False))
if dlp_mpi.IS_MASTER:
    assert sorted(x for part in managed for x in part) == [x * x for x in range(30)]
    assert found == list(range(1, 31))
assert dlp_mpi.bcast(MPI.COMM_WORLD.rank) == 0
print("checked")
