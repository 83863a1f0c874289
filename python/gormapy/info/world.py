"""The state of this process in MPI: launcher, rank, transports. It does not communicate."""

import json
import os

# The variables that launchers set in the environment of a rank, and the one that has its rank.
_LAUNCHERS = ("GORMAPY_JOB_", "PMI_", "PMIX_", "HYDI_", "OMPI_", "SLURM_")
_RANKS = ("GORMAPY_JOB_RANK", "PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")


def facts():
    """Return the state of MPI in this process; "error" says why it can't be used."""
    found = {"state": "not usable", "error": "", "core": {}, "job": None, "transports": [], "variables": variables()}
    found["shared_arrays"] = None
    try:
        from gormapy._ext import core
    except ImportError as error:
        return {**found, "error": str(error)}
    try:
        found["core"] = {**json.loads(core.Runtime()), "version": core.Version(), "file": _file()}
        found["transports"] = json.loads(core.Transports())
        found["shared_arrays"] = _shared_arrays(core.ArenaProblem())
    except RuntimeError as error:  # this process was forked from an MPI process
        return {**found, "state": "forked", "error": str(error)}
    try:
        from gormapy import MPI
    except Exception as error:  # any error that prevents MPI from starting is reported
        return {**found, "error": f"MPI can't be initialized: {error}"}
    found["job"] = json.loads(core.WorldInfo())
    found["transports"] = json.loads(core.Transports())
    if MPI.Is_finalized():
        found["state"] = "finalized"
    else:
        found["state"] = "initialized" if MPI.Is_initialized() else "not initialized"
    return found


def _shared_arrays(problem):
    if problem:
        return {"usable": False, "text": f"shared_empty, shared_zeros and Alloc_mem give ordinary memory: {problem}"}
    text = "windows over shared_empty, shared_zeros and Alloc_mem are as those of Win.Allocate"
    return {"usable": True, "text": text}


def _file():
    from gormapy import _ext

    return os.path.basename(_ext._path)


def variables():
    """Return the names of what a launcher has put into the environment; their values may be secrets."""
    return sorted(name for name in os.environ if name.startswith(_LAUNCHERS))


def supposed_rank():
    """Return the rank that a launcher gave to this process, 0 if it gave none: for the case that MPI can't start."""
    for name in _RANKS:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0
