"""Operations of reductions and accumulates."""

from __future__ import annotations

from enum import IntEnum

from gormapy import MPI


class Operator(IntEnum):
    """Operations of reductions."""

    MAX = MPI.MAX._h
    MIN = MPI.MIN._h
    SUM = MPI.SUM._h
    PROD = MPI.PROD._h
    LAND = MPI.LAND._h
    LOR = MPI.LOR._h
    LXOR = MPI.LXOR._h
    BAND = MPI.BAND._h
    BOR = MPI.BOR._h
    BXOR = MPI.BXOR._h
    REPLACE = MPI.REPLACE._h
    NO_OP = MPI.NO_OP._h
