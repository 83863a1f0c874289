"""Load the one shared object that holds both extension modules.

``core`` is what gopy generated from pybind/core (``core.CommRank``…), ``fast``
the hand-written shim. Both are in one file, so that the process has only one
Go run-time.
"""

# Imports delay the start of every rank: signal and importlib.util would import enum, re and more.
import _signal  # type: ignore[import-not-found]
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec

from gormapy._faulthandler import stand_in_front as _stand_in_front

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


# Signals that Go's threads have to get themselves: faults, and those that its run-time sends to its threads.
_GO = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS", "SIGABRT", "SIGPIPE", "SIGPROF", "SIGURG")


def _load_quietly(name, path):
    """Load a module; its threads, and all threads that they make, leave signals to the threads of Python.

    A signal to the process goes to any thread that does not block it. If that is not a thread of Python, Python
    before 3.12 records the signal but does not check for it: Ctrl-C would not interrupt a rank that computes.
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
    """The substitute of core in a forked child, which does not have Go's threads."""

    def __getattr__(self, name):
        raise RuntimeError(
            "this process was forked from an MPI process: it can't use MPI (start it with "
            "the multiprocessing method 'spawn', or with subprocess)"
        )


def _in_child():
    vars(core).clear()
    core.__class__ = _Forked


os.register_at_fork(after_in_child=_in_child)
