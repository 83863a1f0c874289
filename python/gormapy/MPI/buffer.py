"""Memory as MPI sees it: an address and a number of bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, overload

from gormapy._ext import fast

from . import msgbuffer
from .info import INFO_NULL

if TYPE_CHECKING:
    from typing_extensions import Self

    from gormapy.typing import Buffer

    from .info import Info


class buffer(fast.Buffer):
    """Block of memory."""

    def __new__(cls, *buf: Buffer) -> Self:
        self = super().__new__(cls)
        if buf:
            (obj,) = buf
            self._address_of(obj, False)
        return self

    def _address_of(self, obj, writable):
        self._addr, self._nbytes, _, _, readonly, holder = msgbuffer.acquire(obj, not writable)
        self._readonly = bool(readonly)
        self._obj = (obj, holder)
        self._device = _is_on_device(obj)

    @staticmethod
    def allocate(nbytes: int, clear: bool = False) -> buffer:
        """Allocate a buffer."""
        if nbytes < 0:
            raise ValueError(f"buffer: expecting a size of 0 or more, got {nbytes}")
        return buffer.frombuffer(bytearray(nbytes))

    @staticmethod
    def frombuffer(obj: Buffer, readonly: bool = False) -> buffer:
        """Create a buffer over memory of another object."""
        self = buffer()
        self._address_of(obj, not readonly)
        self._readonly = bool(readonly)
        return self

    @staticmethod
    def fromaddress(address: int, nbytes: int, readonly: bool = False) -> buffer:
        """Create a buffer over memory at an address."""
        return _view(address, nbytes, readonly, None)

    @property
    def address(self) -> int:
        """Address of the first byte."""
        return self._addr

    @property
    def obj(self) -> Buffer | None:
        """Object that owns the memory."""
        owner = self._obj
        return owner[0] if isinstance(owner, tuple) else owner

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self._nbytes

    @property
    def readonly(self) -> bool:
        """Whether the memory may only be read."""
        return bool(self._readonly)

    @property
    def format(self) -> str:
        """Format of each element."""
        return "B"

    @property
    def itemsize(self) -> int:
        """Size of each element in bytes."""
        return 1

    def cast(self, format: str, shape: list[int] | tuple[int, ...] = ...) -> memoryview:
        """Return a memoryview of the memory with another format or shape."""
        if shape is ...:
            return memoryview(self).cast(format)
        return memoryview(self).cast(format, shape)

    def tobytes(self, order: str | None = None) -> bytes:
        """Return the data as bytes."""
        return bytes(memoryview(self))

    def toreadonly(self) -> buffer:
        """Return a buffer of the same memory that may only be read."""
        return self._part(0, self._nbytes, True, self._obj)

    def release(self) -> None:
        """Let go of the memory."""
        self._addr = self._nbytes = self._readonly = self._device = 0
        self._obj = None

    def __len__(self) -> int:
        return self._nbytes

    @overload
    def __getitem__(self, item: int, /) -> int: ...
    @overload
    def __getitem__(self, item: slice, /) -> buffer: ...
    def __getitem__(self, item: Any, /) -> Any:
        if not isinstance(item, slice):
            return memoryview(self)[_index(item, self._nbytes)]
        start, length = _range(item, self._nbytes)
        return self._part(start, length, self._readonly, self)

    def _part(self, start, length, readonly, owner):
        part = _view(self._addr + start, length, readonly, owner)
        part._device = self._device
        return part

    def __delitem__(self, item: Any, /) -> NoReturn:
        raise NotImplementedError("buffer: memory cannot be deleted from the middle of a buffer")

    @overload
    def __setitem__(self, item: int, value: int, /) -> None: ...
    @overload
    def __setitem__(self, item: slice, value: Buffer | int, /) -> None: ...
    def __setitem__(self, item: Any, value: Any, /) -> None:
        if self._readonly:
            raise TypeError("buffer is read-only")
        if not isinstance(item, slice):
            memoryview(self)[_index(item, self._nbytes)] = value
            return
        start, length = _range(item, self._nbytes)
        if hasattr(value, "__index__"):
            value = bytes([value]) * length
        with memoryview(value) as source:
            if source.nbytes != length:
                raise ValueError(f"buffer: a slice of {length} bytes cannot take {source.nbytes} bytes")
            memoryview(self)[start : start + length] = source.cast("B")


memory = buffer


def _index(item, length):
    if not hasattr(item, "__index__"):
        raise TypeError(f"buffer: index must be integer or slice, not {type(item).__name__}")
    index = item.__index__()
    if not -length <= index < length:
        raise IndexError(f"buffer: index {index} out of range, there are {length} bytes")
    return index


def _range(item, length):
    start, stop, step = item.indices(length)
    if step != 1:
        raise IndexError("buffer: slice with step not supported")
    return start, max(stop - start, 0)


def _is_on_device(obj):
    """Return 1 if an array's memory is that of a device, whether the processor can reach it or not; else 0."""
    if isinstance(obj, buffer):
        return obj._device
    if hasattr(obj, "__dlpack_device__"):
        from .dlpack import HOST_DEVICES

        return int(int(obj.__dlpack_device__()[0]) not in HOST_DEVICES)
    return int(hasattr(obj, "__cuda_array_interface__"))


def _view(address, nbytes, readonly, owner):
    """Make a buffer over memory that `owner` keeps alive."""
    if nbytes < 0:
        raise ValueError(f"buffer: expecting a length of 0 or more, got {nbytes}")
    if nbytes > 0 and address == 0:
        raise ValueError("buffer: expecting an address other than 0")
    self = buffer()
    self._addr = address
    self._nbytes = nbytes
    self._readonly = bool(readonly)
    self._obj = owner
    return self


view = _view


def Alloc_mem(size: int, info: Info = INFO_NULL) -> buffer:
    """Allocate memory for communication."""
    from .wininfo import alignment, given

    size = msgbuffer.index(size, "Alloc_mem: size, a number of bytes")
    if size < 0:
        raise ValueError(f"Alloc_mem: expecting a size of 0 or more, got {size}")
    align = alignment(given(info))
    if not size:
        return buffer()
    owner = fast.alloc_mem(size, align)  # unmapped when the last view of it is gone
    return _view(owner.address, size, False, owner)


def Free_mem(mem: buffer) -> None:
    """Free memory that Alloc_mem returned."""
    if not isinstance(mem, buffer):
        raise TypeError(f"Free_mem: expecting what Alloc_mem returned, got {type(mem).__name__}")
    mem.release()
