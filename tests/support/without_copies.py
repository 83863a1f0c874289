"""Run a program without process_vm_readv and process_vm_writev, which containers take away by a seccomp filter, too.

The exit status is 77 where the kernel installs no filter.
"""

import ctypes
import os
import struct
import sys

first = {"x86_64": 310, "aarch64": 270}[os.uname().machine]


def op(code, k, yes=0, no=0):
    """Return an instruction of the filter."""
    return struct.pack("HBBI", code, yes, no, k)


class Program(ctypes.Structure):
    """What the kernel takes as a filter."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


program = op(0x20, 0) + op(0x15, first, 1) + op(0x15, first + 1, 0, 1) + op(0x06, 0x00050001) + op(0x06, 0x7FFF0000)
memory = ctypes.create_string_buffer(program, len(program))
libc = ctypes.CDLL(None)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(Program(5, ctypes.addressof(memory))), 0, 0):
    sys.exit(77)
os.execvp(sys.argv[1], sys.argv[1:])
