"""Which interpreters and systems gormapy is built for.

Everything else is refused with one sentence, before a build requirement is
fetched. This module and the package's ``__init__`` keep to syntax that old
interpreters can read: a refusal has to run on what it refuses.
"""

import os
import platform
import struct
import sys
import sysconfig

MACHINES = ("x86_64", "aarch64")


class Host:
    """What a refusal is decided from; tests make hosts that are not theirs."""

    def __init__(self) -> None:
        self.system = platform.system()
        self.machine = platform.machine()
        self.implementation = platform.python_implementation()
        self.version = sys.version_info[:2]
        self.free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
        self.pointer_bits = struct.calcsize("P") * 8
        self.libc = _libc()
        self.include = sysconfig.get_path("include")
        self.has_headers = os.path.isfile(os.path.join(self.include, "Python.h"))


def _libc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, OSError, ValueError):
        return ""


def refusal_of(host: Host, need_headers: bool = True) -> "str | None":
    """The sentence that refuses this host, or None."""
    if host.system == "Darwin":
        return (
            "gormapy does not support macOS: its one-sided core needs Linux with glibc;"
            " use a Linux container or virtual machine."
        )
    if host.system == "Windows":
        return "gormapy does not support Windows: install it inside WSL, which is Linux with glibc."
    if host.system != "Linux":
        return "gormapy needs Linux with glibc; this is %s." % host.system
    if host.implementation != "CPython":
        return (
            "gormapy needs CPython; this is %s, which the generator of its extension does not support."
            % host.implementation
        )
    if host.version < (3, 10):
        return "gormapy needs CPython 3.10 or newer; this is Python %d.%d." % host.version
    if host.free_threaded:
        return (
            "gormapy does not support the free-threaded build of CPython %d.%d"
            " (no GIL); use the regular build." % host.version
        )
    if host.pointer_bits != 64:
        return "gormapy needs a 64-bit Python; this one is %d-bit." % host.pointer_bits
    if not host.libc.startswith("glibc"):
        return (
            "gormapy needs glibc; this Python uses another C library (musl, as on Alpine):"
            " use a glibc-based image such as python:3-slim."
        )
    if host.machine not in MACHINES:
        return "gormapy is built for %s; this machine is %s." % (" and ".join(MACHINES), host.machine)
    if need_headers and not host.has_headers:
        return (
            "gormapy needs the C headers of Python %d.%d and found no %s: install python3-dev"
            " (Debian, Ubuntu) or python3-devel (Fedora, RHEL, openSUSE)."
            % (host.version[0], host.version[1], os.path.join(host.include, "Python.h"))
        )
    return None


def check(need_headers: bool = True) -> None:
    """Ends the build with the refusal's sentence alone, without a traceback."""
    sentence = refusal_of(Host(), need_headers)
    if sentence:
        raise SystemExit(sentence)
