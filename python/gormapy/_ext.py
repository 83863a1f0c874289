"""Load the one shared object that holds both extension modules.

``core`` is what gopy generated from pybind/core (``core.CommRank``…), ``fast``
the hand-written shim. Both live in one file, because two Go run-times in one
process are to be avoided.
"""

import os
import signal
import sys
from contextlib import contextmanager
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location

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
    spec = spec_from_file_location(full, path, loader=loader)
    module = module_from_spec(spec)
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
_GO = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS", "SIGABRT", "SIGPIPE", "SIGPROF", "SIGURG"}


@contextmanager
def _signals_for_python():
    """Let threads that are made meanwhile, and all that they make, leave signals to the threads of Python.

    A signal to the process goes to any thread that does not block it. If it is none of Python's, Python
    before 3.12 notes it and does not look: Ctrl-C would do nothing to a rank that computes.
    """
    wanted = {s for s in signal.valid_signals() if getattr(s, "name", "") not in _GO}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_path = _locate()
with _signals_for_python():
    fast = _load("_fast", _path)
core = _Core(_load("_gormapy", _path))


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
