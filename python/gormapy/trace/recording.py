"""Turn the recording of this process on and off.

The extension records its own methods; methods in Python are replaced in their classes, while a recording is on, by
objects of the extension (`fast.Recorded`) that record a call and pass it on.
"""

from gormapy._ext import core, fast

from . import calls

# [(class, name, original, replacement)] while a recording is on
_replaced = []
_names = []  # names of the calls; their numbers are recorded
# None while no recording of start() is on, else the number of records before it.
_begun = None
_job = False  # the launcher wants a recording


def _families():
    """Return the classes whose methods are recorded, by the name that their calls are shown with."""
    from gormapy import MPI

    comms = [MPI.Comm, MPI.Intracomm, MPI.Intercomm, MPI.Topocomm, MPI.Cartcomm, MPI.Graphcomm, MPI.Distgraphcomm]
    return {
        "Comm": comms,
        "Win": [MPI.Win],
        "Request": [MPI.Request],
        "Prequest": [MPI.Prequest],
        "Message": [MPI.Message],
        "File": [MPI.File],
    }


def _install():
    _names[:] = [(*call.split("."),) for call in fast.HOT]
    _names.append(("Comm", "Finalize"))
    for family, classes in _families().items():
        wanted = calls.CALLS[family]
        for cls in classes:
            for base in cls.__mro__:
                if base.__module__.startswith("gormapy.MPI"):
                    _replace(family, base, wanted)


def _replace(family, cls, wanted):
    for name, member in list(vars(cls).items()):
        if name not in wanted:
            continue
        function = member.__func__ if isinstance(member, classmethod) else member
        if not callable(function) or isinstance(function, (fast.Recorded, type)):
            continue
        if (family, name) not in _names:
            _names.append((family, name))
        recorded = fast.Recorded(function, _names.index((family, name)))
        by = classmethod(recorded) if isinstance(member, classmethod) else recorded
        _replaced.append((cls, name, member, by))
        setattr(cls, name, by)


def _uninstall():
    while _replaced:
        cls, name, member, by = _replaced.pop()
        if vars(cls)[name] is by:  # otherwise the program has wrapped the method, and keeps its wrapper
            setattr(cls, name, member)


def _text():
    """Return the names in the form that the core takes."""
    return "\n".join(f"{calls.shown(*name)}\t{calls.category(*name)}" for name in _names)


def _switch_on(begin):
    """Let the core and then the extension record; `begin` is the core's function. Return its result."""
    _install()
    result = begin(_text())
    if result < 0 or (result == 0 and begin is not core.TraceStart):
        _uninstall()
        if result < 0:
            from gormapy.MPI.exception import check

            check(result)
        return False
    fast.trace(True)
    return True


def join_job():
    """Record for the launcher (mpiexec --trace), until the process ends."""
    global _job
    _job = _switch_on(core.TraceJob)


def start():
    """Start a recording of this process.

    Local. The recording of mpiexec --trace continues; `stop` returns the records since `start`.

    Errors: RuntimeError if a recording of `start` is already on, or MPI is not initialized.
    """
    global _begun
    if _begun is not None:
        raise RuntimeError("a recording is on already: end it by gormapy.trace.stop() first")
    from gormapy import MPI

    if not MPI.Is_initialized() or MPI.Is_finalized():
        raise RuntimeError("only between MPI.Init() and MPI.Finalize() can be recorded")
    if _job:
        _begun = fast.trace_mark()
        return
    _switch_on(core.TraceStart)
    _begun = 0


def stop():
    """End the recording of `start` and return this process's part of it, as bytes for `join`.

    Local. Errors: RuntimeError if no recording is on.
    """
    global _begun
    if _begun is None:
        raise RuntimeError("no recording is on: gormapy.trace.start() begins one")
    since, _begun = _begun, None
    if not _job:
        fast.trace(False)
        _uninstall()
        core.TraceStop()
    return fast.trace_part(since)


def is_on():
    """Return whether this process is being recorded, by `start` or for the launcher."""
    return _job or _begun is not None
