"""An MPI in which something is lost, made twice, or fetched to another place."""

import numpy as np

from gormapy import MPI
from gormapy.MPI import *  # noqa: F403


class Win(MPI.Win):
    def Put(self, origin, target_rank, target=None):
        super().Put(origin[:-1], target_rank, target)

    def Get(self, origin, target_rank, target=None):
        super().Get(origin[1:], target_rank, target)

    def Accumulate(self, *args):
        super().Accumulate(*args)
        super().Accumulate(*args)

    def Get_accumulate(self, origin, result, *args):
        super().Get_accumulate(origin, np.zeros_like(result), *args)

    def Compare_and_swap(self, origin, compare, result, *args):
        super().Compare_and_swap(origin, compare, np.zeros_like(result), *args)
