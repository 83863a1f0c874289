"""Load the one shared object that holds both extension modules.

``core`` is what gopy generated from pybind/core (``core.CommRank``…), ``fast``
the hand-written shim. Both live in one file, because two Go run-times in one
process are to be avoided.
"""

# What every rank imports at its start, it waits for: signal and importlib.util bring enum, re and more along.
import _signal  # type: ignore[import-not-found]
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec

from gormapy._faults import stand_in_front as _stand_in_front

_PREFIX = "core_"


def _locate():
    here = os.path.dirname(os.path.abspath(__file__))
    for suffix in EXTENSION_SUFFIXES:
        path = os.path.join(here, "_gormapy" + suffix)
        if os.path.exists(path):
            return path
    raise ImportError(
        f"gormapy's compiled core for {sys.implementation.cache_tag} is not in {here}: "
        "install gormapy with this Python (pip install .), or run 'make build' in a source tree"
    )


def _load(name, path):
    full = f"gormapy.{name}"
    loader = ExtensionFileLoader(full, path)
    spec = ModuleSpec(full, loader, origin=path)
    spec.has_location = True
    module = loader.create_module(spec)
    module.__spec__ = spec
    loader.exec_module(module)
    sys.modules[full] = module
    return module


class _Core:
    """The functions of package core under their Go names."""

    def __init__(self, module):
        for name in dir(module):
            if name.startswith(_PREFIX):
                setattr(self, name[len(_PREFIX) :], getattr(module, name))


# What Go's threads need to get themselves: faults, and what its run-time sends to its own threads.
_GO = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS", "SIGABRT", "SIGPIPE", "SIGPROF", "SIGURG")


def _load_quietly(name, path):
    """Load a module; threads that it makes, and all that they make, leave signals to the threads of Python.

    A signal to the process goes to any thread that does not block it. If it is none of Python's, Python
    before 3.12 notes it and does not look: Ctrl-C would do nothing to a rank that computes.
    """
    theirs = {int(getattr(_signal, signal)) for signal in _GO if hasattr(_signal, signal)}
    before = _signal.pthread_sigmask(_signal.SIG_BLOCK, set(_signal.valid_signals()) - theirs)
    try:
        return _load(name, path)
    finally:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, before)


_path = _locate()
fast = _load_quietly("_fast", _path)
core = _Core(_load("_gormapy", _path))
_stand_in_front(fast.arm_guard)


class _Forked:
    """What core becomes in a forked child: Go's threads did not come along."""

    def __getattr__(self, name):
        raise RuntimeError(
            "this process was forked from an MPI process: it can't use MPI (start it with "
            "the multiprocessing method 'spawn', or with subprocess)"
        )


def _in_child():
    vars(core).clear()
    core.__class__ = _Forked


os.register_at_fork(after_in_child=_in_child)
