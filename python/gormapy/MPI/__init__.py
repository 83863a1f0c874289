"""Message Passing Interface: the classes, functions and constants of mpi4py.MPI.

Classes, calls, and constants that are objects, such as SUM, have docstrings. A constant that is an integer, such as
ERR_TRUNCATE, has that of int: what it means is in the dictionary `gormapy.MPI.constanttexts.CONSTANTS`, by its name,
and editors show it.
"""

from gormapy._ext import core as _core
from gormapy._ext import fast as _fast
from gormapy._rc import rc as _rc

from . import cudaarray, dlpack, explain
from .abi import Get_abi_fortran_info, Get_abi_info, Get_abi_version
from .bsend import Attach_buffer, Detach_buffer, Flush_buffer, Iflush_buffer
from .buffer import Alloc_mem, Free_mem, buffer, memory
from .comm import COMM_NULL, Comm
from .commlock import _comm_lock, _comm_lock_table, _commctx_inter, _commctx_intra
from .constants import *
from .datarep import Register_datarep
from .datatype import DATATYPE_NULL, Datatype
from .dynamic import Close_port, Lookup_name, Open_port, Publish_name, Unpublish_name
from .environment import (
    Aint_add,
    Aint_diff,
    Compute_dims,
    Finalize,
    Get_address,
    Get_hw_resource_info,
    Get_library_version,
    Get_processor_name,
    Get_version,
    Init,
    Init_thread,
    Is_finalized,
    Is_initialized,
    Is_thread_main,
    Pcontrol,
    Query_thread,
    Wtick,
    Wtime,
    _addressof,
    _handleof,
    _set_abort_status,
    _sizeof,
    _typealign,
    _typecode,
    get_vendor,
)
from .errhandler import (
    ERRHANDLER_NULL,
    ERRORS_ABORT,
    ERRORS_ARE_FATAL,
    ERRORS_RETURN,
    Errhandler,
)
from .exception import (
    Add_error_class,
    Add_error_code,
    Add_error_string,
    Exception,
    Get_error_class,
    Get_error_string,
    Remove_error_class,
    Remove_error_code,
    Remove_error_string,
)
from .file import FILE_NULL, File
from .group import GROUP_EMPTY, GROUP_NULL, Group
from .info import INFO_ENV, INFO_NULL, Info
from .intercomm import Intercomm
from .intracomm import COMM_SELF, COMM_WORLD, Intracomm
from .message import MESSAGE_NO_PROC, MESSAGE_NULL, Message
from .op import (
    BAND,
    BOR,
    BXOR,
    LAND,
    LOR,
    LXOR,
    MAX,
    MAXLOC,
    MIN,
    MINLOC,
    NO_OP,
    OP_NULL,
    PROD,
    REPLACE,
    SUM,
    Op,
)
from .request import REQUEST_NULL, Grequest, Prequest, Request
from .sentinel import (
    BOTTOM,
    BUFFER_AUTOMATIC,
    IN_PLACE,
    BottomType,
    BufferAutomaticType,
    InPlaceType,
)
from .serialize import Pickle, pickle
from .session import SESSION_NULL, Session
from .status import Status
from .topocomm import Cartcomm, Distgraphcomm, Graphcomm, Topocomm
from .typecode import ALIASES as _ALIASES
from .typecode import DATATYPES as _DATATYPES
from .typecode import _datatype_create, _datatype_decode, _typedict, _typedict_c, _typedict_f
from .win import WIN_NULL, Win

for _name in _ALIASES:
    globals()[_name] = _DATATYPES.get(_ALIASES[_name], DATATYPE_NULL)

# Objects are pickled by their name here.
for _object in list(globals().values()):
    if isinstance(_object, type) and _object.__module__.startswith(__name__):
        _object.__module__ = __name__


def _connect_extension():
    """Complete the docstrings, and pass the extension the functions and types that it needs."""
    import threading

    from . import bsend, comm, commlock, docstrings, errhandler, hot, naming
    from .datatype import _by_handle
    from .op import _functions

    docstrings.install(globals())
    _fast.setup(Exception, Request, Prequest, IN_PLACE, Datatype, Intracomm, Message, Group)
    _fast.set_registries(
        naming._names,
        naming._attributes,
        errhandler._chosen,
        comm._topologies,
        comm._hints,
        bsend._attached,
        commlock._tables,
        commlock._contexts,
    )
    # A Python without this dictionary would have short sends give the interpreter's lock up always.
    _fast.set_threads(vars(threading).get("_active"))
    _fast.set_functions(Op, _functions, _by_handle, buffer)
    hot.install(globals())
    for code, datatype in _typedict.items():
        if len(code) == 1:
            _fast.set_format(code, datatype._h, datatype._size)
    for op in (MAX, MIN, SUM, PROD, LAND, BAND, LOR, BOR, LXOR, BXOR, MAXLOC, MINLOC, REPLACE, NO_OP):
        _fast.set_op(op._h, op)


def _start():
    """Initialize MPI as `gormapy.rc` says, and the other services of a rank."""
    import os
    import sys

    under_launcher = any(name.startswith(("GORMAPY_JOB_", "PMI_", "PMIX_")) for name in os.environ)
    from . import environment, errhandler

    if _core.SharedArrays():
        _fast.arrays_everywhere()
    if _rc.initialize and not Is_initialized():
        Init()
    errhandler.start(
        Comm, Intracomm, Intercomm, Topocomm, Cartcomm, Graphcomm, Distgraphcomm, Win, File, Session, Request, Prequest
    )
    if _rc.finalize or (_rc.finalize is None and _rc.initialize):
        environment.finalize_at_exit()
    if "GORMAPY_TIMEOUT" in os.environ:
        _print_stacks_on_request()
    if not (under_launcher or _is_launched()):
        return
    from gormapy import _excepthook

    _excepthook.install(True)
    stdout = sys.stdout
    if stdout is not None and hasattr(stdout, "reconfigure") and not stdout.isatty():
        stdout.reconfigure(line_buffering=True)  # a rank's lines appear when they are printed
    _print_stacks_on_request()


def _is_launched():
    """Return whether a launcher has started this process, which has joined its job."""
    info = _core.WorldInfo()
    return info != "null" and '"launcher":"none"' not in info


def _print_stacks_on_request():
    """Let the launcher request the stacks of all threads at its time-out."""
    import faulthandler

    try:
        faulthandler.register(61, all_threads=True)
    except (AttributeError, ValueError, OSError, RuntimeError):
        return  # no such signal, or no file behind sys.stderr
    if hasattr(_core, "SetStacks"):
        _core.SetStacks(1)


_connect_extension()
_start()

# The namespace holds what mpi4py's does; the modules are found where modules are. All of them have been imported, since
# a later import would make them names again.
for _name, _object in list(globals().items()):
    if isinstance(_object, type(_fast)) and not _name.startswith("_"):
        del globals()[_name]
del _name, _object
