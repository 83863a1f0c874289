"""Pictures of recordings (gormapy.trace), by matplotlib: pip install 'gormapy[plot]'.

Each function takes a Trace, or the path of a recording, and returns a matplotlib Figure, which a notebook shows and
savefig writes. python -m gormapy.plot out.json -o picture.png does the same from a shell.
"""

import functools
import os

__all__ = ["matrix", "timeline", "transfers", "waits", "windows"]


def _of_recording(function):
    @functools.wraps(function)
    def call(trace, *args, **kwargs):
        if isinstance(trace, (str, os.PathLike)):
            from gormapy.trace import load

            trace = load(trace)
        return function(trace, *args, **kwargs)

    return call


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    module = importlib.import_module("." + {"transfers": "matrix"}.get(name, name), __name__)
    # The imports have bound these names to modules.
    for function in __all__:
        if function in vars(module) and callable(vars(module)[function]):
            globals()[function] = _of_recording(vars(module)[function])
    return globals()[name]
