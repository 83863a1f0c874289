"""What keeps the modules of gormapy whole while Python ends: objects of the program may use MPI until they are gone.

When Python ends, it sets the globals of all modules to None that it finds in sys.modules and that are in use still. The
`__del__` of an object that goes after that would find no datatypes and no communicators. What is in sys.modules
and is no module, Python leaves alone.
"""

import sys
from types import ModuleType


class _Kept:
    """A module of gormapy in sys.modules, for imports that come as late as this."""

    def __init__(self, module):
        self.__dict__["_module"] = module

    def __getattr__(self, name):
        return getattr(self._module, name)

    def __setattr__(self, name, value):
        setattr(self._module, name, value)

    def __dir__(self):
        return dir(self._module)


def keep_modules():
    """Have the globals of the modules of gormapy kept."""
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and name.partition(".")[0] in ("gormapy", "mpi4py"):
            sys.modules[name] = _Kept(module)
