"""Files: read and written by all ranks together, or by each for itself."""

from __future__ import annotations

import builtins
import os
import weakref
from array import array
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, AnyStr

from gormapy._ext import core, fast

from . import datarep as representations
from . import errhandler, fileinfo
from .constants import ERR_ARG, ERR_FILE, MODE_RDONLY, SEEK_SET
from .datatype import Datatype
from .errhandler import ErrorHandling
from .exception import Exception, check, error, fields
from .group import Group
from .handle import Handle, adopt, named
from .hot import hot
from .info import INFO_NULL
from .msgbuffer import index, message
from .request import Request
from .status import expect_status
from .typecode import DATATYPES, lookup

if TYPE_CHECKING:
    from os import PathLike

    from typing_extensions import Self

    from gormapy.typing import BufSpec

    from .comm import Comm
    from .errhandler import Errhandler
    from .info import Info
    from .status import Status

BYTE = DATATYPES["BYTE"]

# The kind of a read or write, for the core: the bits of mpiio.Kind.
_WRITE, _ALL, _OWN, _SHARED, _NONBLOCKING = 1, 2, 4, 8, 16


class _Opened:
    """The state shared by all objects for one open file. When the last object is gone, the descriptor is closed."""

    __slots__ = ("__weakref__", "amode", "datarep", "etype", "filetype", "handle", "process", "split")

    def __init__(self, handle, amode):
        self.handle, self.amode = handle, amode
        self.process = os.getpid()
        self.etype = self.filetype = BYTE
        self.datarep = "native"
        self.split = None  # the split collective in progress: name and request
        _opened[handle] = self

    def __del__(self):
        if self.handle and self.process == os.getpid():  # a forked child must not call the core
            core.FileDrop(self.handle)


_opened = weakref.WeakValueDictionary()


def _name(filename):
    """Return the name of a file as an array of bytes."""
    name = os.fsencode(filename)
    if b"\0" in name:
        raise ValueError(f"filename: {filename!r} has a null byte in it")
    return array("B", name)


def _done(request):
    """Wait for an operation that the core has started; return its result."""
    return fast.result(check(request))


class File(ErrorHandling, Handle, fast.File):
    """File that the ranks of a communicator have opened together."""

    _family = "File"
    __slots__ = ("__weakref__", "_open")

    def __new__(cls, file: File | None = None) -> Self:
        self = adopt(File, super().__new__(cls), file)
        self._open = _opened.get(self._h) if file is None else file._open
        return self

    @classmethod
    def _from_handle(cls, handle):
        self = cls.__new__(cls)
        self._h = handle
        self._open = _opened.get(handle)
        return self

    def _checked(self):
        if not self._h or self._open is None:
            raise error(ERR_FILE, "the file is FILE_NULL (it was never opened, or has been closed)")
        check(core.FileCheck(self._h))  # another object may have closed it
        return self._open

    @contextmanager
    def _arguments(self, call):
        """If the arguments of a collective call are wrong at this rank, tell the others, which wait for it."""
        try:
            yield
        except builtins.Exception as wrong:
            error_class = wrong.Get_error_class() if isinstance(wrong, Exception) else ERR_ARG
            with suppress(Exception):
                _done(core.FileRefuse(self._h, call, error_class))
            raise

    # Opening, closing and properties
    # -------------------------------

    @classmethod
    def Open(
        cls,
        comm: Comm,
        filename: PathLike[AnyStr] | str | bytes,
        amode: int = MODE_RDONLY,
        info: Info = INFO_NULL,
    ) -> Self:
        """Open a file."""
        if not isinstance(comm, fast.Comm):
            raise TypeError(f"comm: expecting a communicator, got {type(comm).__name__}")
        name = _name(filename)
        amode = index(amode, "amode")
        try:
            hints = fileinfo.read(info)
            handle = fast.file_open(comm._h, name.buffer_info()[0], len(name), amode, *hints)
        except Exception as failed:
            _null_handles(failed, "Open")
            raise
        self = cls.__new__(cls)
        self._h = handle
        self._open = _Opened(handle, amode)
        errhandler.inherit_default(self, FILE_NULL)
        return self

    def Close(self) -> None:
        """Close the file."""
        opened = self._checked()
        try:
            _done(core.FileClose(self._h))
        finally:
            if core.FileCheck(self._h):  # it may have been closed and yet have failed
                opened.handle = 0
                self._forget_errhandler()
                _free_types(opened)
                self._h, self._open = 0, None

    @classmethod
    def Delete(cls, filename: PathLike[AnyStr] | str | bytes, info: Info = INFO_NULL) -> None:
        """Delete a file."""
        name = _name(filename)
        try:
            fileinfo.read(info)
            check(core.FileDelete(name.buffer_info()[0], len(name)))
        except Exception as failed:
            _null_handles(failed, "Delete")
            raise

    def free(self) -> None:
        """Call Close, if the file is not null."""
        if self:
            self.Close()

    def Set_size(self, size: int) -> None:
        """Cut off or lengthen the file."""
        self._checked()
        _done(core.FileSetSize(self._h, index(size, "Set_size: size, a number of bytes")))

    def Preallocate(self, size: int) -> None:
        """Reserve storage for the first `size` bytes of the file."""
        self._checked()
        _done(core.FilePreallocate(self._h, index(size, "Preallocate: size, a number of bytes")))

    def Get_size(self) -> int:
        """Return the size of the file."""
        self._checked()
        return check(core.FileSize(self._h))

    def Get_amode(self) -> int:
        """Return the access mode."""
        return self._checked().amode

    def Get_group(self) -> Group:
        """Return the group of the ranks that opened the file."""
        self._checked()
        return Group._made(core.FileGroup(self._h))

    def Set_info(self, info: Info) -> None:
        """Change the hints of the file."""
        self._checked()
        with self._arguments("Set_info"):
            hints = fileinfo.read(info, self._hints())
        _done(core.FileSetInfo(self._h, *hints))

    def Get_info(self) -> Info:
        """Return the hints of the file."""
        self._checked()
        return fileinfo.info(self._hints())

    def _hints(self):
        return fields(core.FileInfo(self._h))[2:]

    size = property(Get_size, doc="Size of the file.")
    amode = property(Get_amode, doc="Access mode.")
    group = property(Get_group, doc="Group of the ranks that opened the file.")
    info = property(Get_info, Set_info, doc="Hints of the file.")

    @property
    def group_size(self) -> int:
        """Number of ranks that opened the file."""
        self._checked()
        return fields(core.FileInfo(self._h))[1]

    @property
    def group_rank(self) -> int:
        """Rank of this process among them."""
        self._checked()
        return fields(core.FileInfo(self._h))[0]

    # Views and file pointers
    # -----------------------

    def Set_view(
        self,
        disp: int = 0,
        etype: Datatype = BYTE,
        filetype: Datatype | None = None,
        datarep: str = "native",
        info: Info = INFO_NULL,
    ) -> None:
        """Choose which part of the file this rank sees."""
        opened = self._checked()
        with self._arguments("Set_view"):
            etype = BYTE if etype is None else _datatype("etype", etype)
            filetype = etype if filetype is None else _datatype("filetype", filetype)
            datarep, number = representations.find("native" if datarep is None else datarep)
            representations.check_extents(datarep, (etype, filetype))
            disp = index(disp, "disp, a number of bytes")
            hints = fileinfo.read(info, self._hints())
        _done(core.FileSetView(self._h, disp, etype._h, filetype._h, number, *hints))
        _free_types(opened)
        # the program may free its datatypes before it calls Get_view
        opened.etype, opened.filetype = etype._reference(), filetype._reference()
        opened.datarep = datarep

    def Get_view(self) -> tuple[int, Datatype, Datatype, str]:
        """Return the view as (disp, etype, filetype, datarep)."""
        opened = self._checked()
        disp = check(core.FileViewDisp(self._h))
        return disp, opened.etype._reference(), opened.filetype._reference(), opened.datarep

    @hot
    def Seek(self, offset: int, whence: int = SEEK_SET) -> None:
        """Move this rank's file pointer."""
        self._checked()
        check(core.FileSeek(self._h, index(offset, "offset"), index(whence, "whence")))

    @hot
    def Get_position(self) -> int:
        """Return where this rank's file pointer is, in etypes of the view."""
        self._checked()
        return check(core.FilePosition(self._h))

    def Seek_shared(self, offset: int, whence: int = SEEK_SET) -> None:
        """Move the shared file pointer."""
        self._checked()
        _done(core.FileSeekShared(self._h, index(offset, "offset"), index(whence, "whence")))

    def Get_position_shared(self) -> int:
        """Return where the shared file pointer is, in etypes of the view."""
        self._checked()
        return check(core.FileSharedPosition(self._h))

    def Get_byte_offset(self, offset: int) -> int:
        """Return the byte of the file at which an offset of the view lies."""
        self._checked()
        return check(core.FileByteOffset(self._h, index(offset, "offset")))

    def Get_type_extent(self, datatype: Datatype) -> int:
        """Return the extent of a datatype in the file."""
        self._checked()
        return check(core.FileTypeExtent(self._h, _datatype("datatype", datatype)._h))

    # Consistency
    # -----------

    def Set_atomicity(self, flag: bool) -> None:
        """Switch the atomic mode on or off."""
        self._checked()
        _done(core.FileSetAtomicity(self._h, bool(flag)))

    def Get_atomicity(self) -> bool:
        """Report whether the atomic mode is on."""
        self._checked()
        return bool(check(core.FileAtomicity(self._h)))

    atomicity = property(Get_atomicity, Set_atomicity, doc="Whether the atomic mode is on.")

    def Sync(self) -> None:
        """Write what this rank has written to storage, and see what others have."""
        self._checked()
        _done(core.FileSync(self._h))

    # Reading and writing
    # -------------------

    def _begin(self, kind, buf, offset=0):
        """Begin a read or write in the core."""
        self._checked()
        address, count, datatype, holder = message(buf, bool(kind & _WRITE))
        return fast.file_io(kind, self._h, index(offset, "offset"), address, count, datatype._h, holder)

    def _access(self, kind, buf, status, offset=0):
        expect_status(status)
        fast.finish(self._begin(kind, buf, offset), status)

    def _start(self, kind, buf, offset=0):
        return Request._started(self._begin(kind | _NONBLOCKING, buf, offset))

    def _split_begin(self, name, kind, buf, offset=0):
        opened = self._checked()
        if opened.split is not None:
            raise error(
                ERR_FILE,
                f"{name}_begin: {opened.split[0]}_begin has not been ended: a file can have one at a time",
            )
        opened.split = name, self._start(kind, buf, offset)

    def _split_end(self, name, buf, status):
        opened = self._checked()
        if opened.split is None or opened.split[0] != name:
            has = "nothing has" if opened.split is None else f"{opened.split[0]}_begin has"
            raise error(ERR_FILE, f"{name}_end: {has} been begun on the file; the call that it ends is {name}_begin")
        (_, request), opened.split = opened.split, None
        request.Wait(status)

    @hot
    def Read_at(self, offset: int, buf: BufSpec, status: Status | None = None) -> None:
        """Read into `buf` at an offset."""
        self._access(0, buf, status, offset)

    @hot
    def Read_at_all(self, offset: int, buf: BufSpec, status: Status | None = None) -> None:
        """Read into `buf` at an offset, all ranks together."""
        self._access(_ALL, buf, status, offset)

    @hot
    def Write_at(self, offset: int, buf: BufSpec, status: Status | None = None) -> None:
        """Write `buf` at an offset."""
        self._access(_WRITE, buf, status, offset)

    @hot
    def Write_at_all(self, offset: int, buf: BufSpec, status: Status | None = None) -> None:
        """Write `buf` at an offset, all ranks together."""
        self._access(_WRITE | _ALL, buf, status, offset)

    def Iread_at(self, offset: int, buf: BufSpec) -> Request:
        """Start to read into `buf` at an offset."""
        return self._start(0, buf, offset)

    def Iread_at_all(self, offset: int, buf: BufSpec) -> Request:
        """Start to read into `buf` at an offset, all ranks together."""
        return self._start(_ALL, buf, offset)

    def Iwrite_at(self, offset: int, buf: BufSpec) -> Request:
        """Start to write `buf` at an offset."""
        return self._start(_WRITE, buf, offset)

    def Iwrite_at_all(self, offset: int, buf: BufSpec) -> Request:
        """Start to write `buf` at an offset, all ranks together."""
        return self._start(_WRITE | _ALL, buf, offset)

    @hot
    def Read(self, buf: BufSpec, status: Status | None = None) -> None:
        """Read into `buf` at this rank's file pointer."""
        self._access(_OWN, buf, status)

    @hot
    def Read_all(self, buf: BufSpec, status: Status | None = None) -> None:
        """Read into `buf` at this rank's file pointer, all ranks together."""
        self._access(_OWN | _ALL, buf, status)

    @hot
    def Write(self, buf: BufSpec, status: Status | None = None) -> None:
        """Write `buf` at this rank's file pointer."""
        self._access(_OWN | _WRITE, buf, status)

    @hot
    def Write_all(self, buf: BufSpec, status: Status | None = None) -> None:
        """Write `buf` at this rank's file pointer, all ranks together."""
        self._access(_OWN | _WRITE | _ALL, buf, status)

    def Iread(self, buf: BufSpec) -> Request:
        """Start to read into `buf` at this rank's file pointer."""
        return self._start(_OWN, buf)

    def Iread_all(self, buf: BufSpec) -> Request:
        """Start to read into `buf` at this rank's file pointer, all ranks together."""
        return self._start(_OWN | _ALL, buf)

    def Iwrite(self, buf: BufSpec) -> Request:
        """Start to write `buf` at this rank's file pointer."""
        return self._start(_OWN | _WRITE, buf)

    def Iwrite_all(self, buf: BufSpec) -> Request:
        """Start to write `buf` at this rank's file pointer, all ranks together."""
        return self._start(_OWN | _WRITE | _ALL, buf)

    @hot
    def Read_shared(self, buf: BufSpec, status: Status | None = None) -> None:
        """Read into `buf` at the shared file pointer."""
        self._access(_SHARED, buf, status)

    @hot
    def Write_shared(self, buf: BufSpec, status: Status | None = None) -> None:
        """Write `buf` at the shared file pointer."""
        self._access(_SHARED | _WRITE, buf, status)

    def Iread_shared(self, buf: BufSpec) -> Request:
        """Start to read into `buf` at the shared file pointer."""
        return self._start(_SHARED, buf)

    def Iwrite_shared(self, buf: BufSpec) -> Request:
        """Start to write `buf` at the shared file pointer."""
        return self._start(_SHARED | _WRITE, buf)

    @hot
    def Read_ordered(self, buf: BufSpec, status: Status | None = None) -> None:
        """Read into `buf` at the shared file pointer, in the order of ranks."""
        self._access(_SHARED | _ALL, buf, status)

    @hot
    def Write_ordered(self, buf: BufSpec, status: Status | None = None) -> None:
        """Write `buf` at the shared file pointer, in the order of ranks."""
        self._access(_SHARED | _WRITE | _ALL, buf, status)

    # Split collectives
    # -----------------

    def Read_at_all_begin(self, offset: int, buf: BufSpec) -> None:
        """Begin to read into `buf` at an offset, all ranks together."""
        self._split_begin("Read_at_all", _ALL, buf, offset)

    def Read_at_all_end(self, buf: BufSpec, status: Status | None = None) -> None:
        """Wait for what Read_at_all_begin has begun."""
        self._split_end("Read_at_all", buf, status)

    def Write_at_all_begin(self, offset: int, buf: BufSpec) -> None:
        """Begin to write `buf` at an offset, all ranks together."""
        self._split_begin("Write_at_all", _WRITE | _ALL, buf, offset)

    def Write_at_all_end(self, buf: BufSpec, status: Status | None = None) -> None:
        """Wait for what Write_at_all_begin has begun."""
        self._split_end("Write_at_all", buf, status)

    def Read_all_begin(self, buf: BufSpec) -> None:
        """Begin to read into `buf` at this rank's file pointer, all ranks together."""
        self._split_begin("Read_all", _OWN | _ALL, buf)

    def Read_all_end(self, buf: BufSpec, status: Status | None = None) -> None:
        """Wait for what Read_all_begin has begun."""
        self._split_end("Read_all", buf, status)

    def Write_all_begin(self, buf: BufSpec) -> None:
        """Begin to write `buf` at this rank's file pointer, all ranks together."""
        self._split_begin("Write_all", _OWN | _WRITE | _ALL, buf)

    def Write_all_end(self, buf: BufSpec, status: Status | None = None) -> None:
        """Wait for what Write_all_begin has begun."""
        self._split_end("Write_all", buf, status)

    def Read_ordered_begin(self, buf: BufSpec) -> None:
        """Begin to read into `buf` at the shared file pointer, in the order of ranks."""
        self._split_begin("Read_ordered", _SHARED | _ALL, buf)

    def Read_ordered_end(self, buf: BufSpec, status: Status | None = None) -> None:
        """Wait for what Read_ordered_begin has begun."""
        self._split_end("Read_ordered", buf, status)

    def Write_ordered_begin(self, buf: BufSpec) -> None:
        """Begin to write `buf` at the shared file pointer, in the order of ranks."""
        self._split_begin("Write_ordered", _SHARED | _WRITE | _ALL, buf)

    def Write_ordered_end(self, buf: BufSpec, status: Status | None = None) -> None:
        """Wait for what Write_ordered_begin has begun."""
        self._split_end("Write_ordered", buf, status)

    # Errors
    # ------

    def _null_error(self):
        raise error(ERR_FILE, "the file is FILE_NULL (it was never opened, or has been closed)")

    def Get_errhandler(self) -> Errhandler:
        """Return the error handler of the file."""
        return errhandler.Errhandler._from_handle(errhandler._handler(self))

    def Set_errhandler(self, errhandler: Errhandler) -> None:
        """Choose the error handler of the file."""
        self._set_errhandler(errhandler)

    def Call_errhandler(self, errorcode: int) -> None:
        """Call the error handler of the file."""
        self._checked()
        errhandler._handle(self, Exception(errorcode), "Call_errhandler")


def _datatype(what, value):
    """Return a datatype argument."""
    if isinstance(value, Datatype):
        value._checked()
        return value
    if isinstance(value, str):
        return lookup(value)
    raise TypeError(f"{what}: expecting a Datatype, got {type(value).__name__}")


def _free_types(opened):
    """Free the file's own copies of the datatypes of a view."""
    for datatype in (opened.etype, opened.filetype):
        if datatype and not datatype.is_predefined:
            datatype.Free()
    opened.etype = opened.filetype = BYTE


def _null_handles(failed, call):
    """Apply the error handler of FILE_NULL to an error that belongs to no file."""
    if not getattr(failed, "_handled", False):
        failed._handled = True
        errhandler._handle(FILE_NULL, failed, call)


FILE_NULL = File()
named("File", 0, "FILE_NULL")
