"""Tokens: the messages of channels."""

import numpy as np


class Kind:
    """The kind of a channel's tokens: bytes, or arrays of one type and shape.

    `nbytes` is the size of each one, None if they have any size.
    """

    def __init__(self, nbytes, dtype, shape, payload):
        self.dtype = None if dtype is None else np.dtype(dtype)
        self.shape = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
        if self.dtype is None and payload is None and nbytes is None:
            raise TypeError("channel: what are the tokens? Give nbytes, or dtype and shape, or payload for any size")
        if self.dtype is not None and nbytes is not None:
            raise TypeError(
                "channel: nbytes is for tokens that are bytes; the size of arrays follows from dtype, shape"
            )
        if self.dtype is not None and (self.dtype.hasobject or self.dtype.itemsize == 0):
            raise TypeError(f"channel: {self.dtype} is no type whose elements can go to another process")
        if payload is not None:
            self.nbytes = None
        elif self.dtype is None:
            self.nbytes = nbytes
        else:
            self.nbytes = self.dtype.itemsize * int(np.prod(self.shape, dtype=int))
        if self.nbytes is not None and self.nbytes <= 0:
            raise ValueError(f"channel: a token needs a byte at least, not {self.nbytes}")

    def encode(self, token):
        """Return a token of this kind as a contiguous buffer."""
        if self.dtype is None:
            try:
                memory = memoryview(token)
            except TypeError:
                raise TypeError(
                    f"push: the tokens are bytes, got {type(token).__name__}: encode it, or make the channel with dtype"
                ) from None
            return memory if memory.c_contiguous else memory.tobytes()
        array = np.asarray(token)
        if array.dtype != self.dtype:
            array = self._converted(array)
        if self.nbytes is not None and array.shape != self.shape:
            raise ValueError(f"push: the tokens have the shape {self.shape}, got {array.shape}")
        return np.ascontiguousarray(array)

    def _converted(self, array):
        """Return an array with the type of the tokens; an integer may change its size if its value does not change."""
        if array.dtype.kind in "iu" and self.dtype.kind in "iu":
            changed = array.astype(self.dtype)
            if not np.array_equal(changed, array):
                raise ValueError(f"push: {array} has values that {self.dtype} does not have")
            return changed
        return array.astype(self.dtype, casting="same_kind")

    def decode(self, memory):
        """Return bytes as a token that is a copy of its own."""
        if self.dtype is None:
            return bytes(memory)
        array = np.frombuffer(memory, self.dtype).copy()
        return array if self.nbytes is None else array.reshape(self.shape)

    def show(self, memory):
        """Return memory as a token that shows it, read-only."""
        if self.dtype is None:
            return memoryview(memory).toreadonly()
        array = np.frombuffer(memory, self.dtype)
        if self.nbytes is not None:
            array = array.reshape(self.shape)
        array.flags.writeable = False
        return array
