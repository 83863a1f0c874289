"""What the checker is told of files: the buffers that are read and written."""

from . import accesses, buffers
from .wrapping import replace


def _transfer(name):
    write = "ead" in name  # into memory
    place = (1 if "_at" in name else 0), "buf"

    def make(method):
        def told(self, *args, **kwargs):
            accesses.told(name, place, buffers.at(place, args, kwargs, write), write)
            return method(self, *args, **kwargs)

        return told

    return make


def install():
    """Replace the methods of files that transfer data."""
    from gormapy import MPI
    from gormapy.trace.calls import CALLS

    for name in CALLS["File"]:
        if name.startswith(("Read", "Write", "Iread", "Iwrite")):
            replace(MPI.File, name, _transfer(name))
