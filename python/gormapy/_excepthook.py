"""Reports of unhandled exceptions, which end a rank's program."""

import os
import sys

from gormapy._ext import core

_pid = os.getpid()  # a forked child has another one, and no core to tell
_hidden_files = ()
_interrupted = []


def hide(*files):
    """Leave frames of these files out at the start of tracebacks."""
    global _hidden_files
    _hidden_files += files


def install(under_launcher):
    """Report unhandled exceptions with the rank, and once for all ranks that fail in one place."""
    if sys.excepthook is not sys.__excepthook__ and sys.excepthook is not _strip:
        return  # the program or its tools have a hook of their own
    sys.excepthook = _report if under_launcher else _strip
    if under_launcher:
        import atexit

        # functions that the program registers later are called before
        atexit.register(lambda: _interrupted and _end_by_interrupt())


failed: list[bool] = []  # has an item after an unhandled exception


def _goes_on():
    """Report whether the program goes on after the exception: a console, or the program itself, has only reported it.

    Python calls the hook of an exception that ends the program when no module's code is being executed any more.
    """
    if sys.flags.interactive or hasattr(sys, "ps1"):
        return True
    frame = outermost = sys._getframe()
    while frame is not None:
        outermost, frame = frame, frame.f_back
    return outermost.f_code.co_name == "<module>" or outermost.f_globals.get("__name__") in ("runpy", "threading")


def mark_failures():
    """Record unhandled exceptions of a process without a launcher: it does not wait for what it has spawned."""
    hook = sys.excepthook
    if hook is _report or getattr(hook, "_marks", False):
        return

    def marked(kind, value, tb):
        if os.getpid() == _pid and not _goes_on():
            failed.append(True)
            core.MarkFailed()
        hook(kind, value, tb)

    marked._marks = True
    sys.excepthook = marked


def ignore(kind):
    """Report exceptions of a class no more that functions of atexit and __del__ raise."""
    hook = sys.unraisablehook
    sys.unraisablehook = lambda what: None if isinstance(what.exc_value, kind) else hook(what)


def _trim(tb):
    trimmed = tb
    while trimmed is not None and trimmed.tb_frame.f_code.co_filename in _hidden_files:
        trimmed = trimmed.tb_next
    return tb if trimmed is None else trimmed


def _strip(kind, value, tb):
    tb = _trim(tb)
    sys.__excepthook__(kind, value.with_traceback(tb), tb)


def _end_by_interrupt():
    """End as Python does after a KeyboardInterrupt, which it forgets when the hook imports modules."""
    import signal
    from contextlib import suppress

    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


def _report(kind, value, tb):
    if os.getpid() != _pid:
        _strip(kind, value, tb)
        return
    if not _goes_on():
        failed.append(True)
        core.MarkFailed()
        if issubclass(kind, KeyboardInterrupt):
            _interrupted.append(True)
    import json
    import traceback
    from binascii import crc32

    tb = _trim(tb)
    rank = (json.loads(core.WorldInfo()) or {"rank": "?"})["rank"]  # CommRank is an error after Finalize
    places = [(f.filename, f.lineno) for f in traceback.extract_tb(tb)]
    place = crc32(repr((kind.__name__, places)).encode())
    text = f"rank {rank}:\n{''.join(traceback.format_exception(kind, value, tb))}"
    try:
        sys.stdout.flush()
        # At once before it is written: a rank that finds it claimed may end the job.
        if core.ClaimTraceback(place):
            line = "".join(traceback.format_exception_only(kind, value)).rstrip()
            text = f"rank {rank}: {line} (in the place of a traceback above)\n"
        sys.stderr.write(text)  # in one piece: other ranks write too
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass  # no process reads it
