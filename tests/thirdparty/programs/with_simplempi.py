"""simplempi divides a loop among the ranks."""

import simplempi

tool = simplempi.simpleMPI()
mine = [x * x for x in tool.parfor(list(range(30)))]
parts = tool.comm.allgather(mine)
assert sorted(x for part in parts for x in part) == [x * x for x in range(30)]
print("checked")
