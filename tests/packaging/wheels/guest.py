"""An emulated aarch64 machine: QEMU, Debian's kernel, and a root file system of this machine's."""

import gzip
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import roots

MODULES = ("virtio_pci", "9pnet_virtio", "9p")

INIT = """\
#!/bin/busybox sh
export PATH=/bin
/bin/busybox mkdir -p /proc /sys /dev /root
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
for m in $(/bin/busybox cat /modules/order); do /bin/busybox insmod /modules/$m; done
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose root /root
cd /root
/bin/busybox mount -t proc proc proc
/bin/busybox mount -t sysfs sys sys
/bin/busybox mount -t devtmpfs dev dev
/bin/busybox mkdir -p dev/shm
/bin/busybox mount -t tmpfs shm dev/shm
/bin/busybox mount -t tmpfs tmp tmp
/bin/busybox ip link set lo up
/bin/busybox chroot . /bin/sh -c 'export PATH=/usr/bin:/bin HOME=/root LC_ALL=C.UTF-8; COMMAND; echo "exit status $?"' \\
	</dev/null 2>&1
/bin/busybox poweroff -f
"""


def prepare(folder):
    """Fetch the kernel and busybox, unless they are there."""
    if (folder / "made").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    state = folder.with_name("guest-apt")
    files = roots.packages(state, "bookworm", "arm64", ["linux-image-arm64", "busybox-static"])
    unpacked = folder / "unpacked"
    unpacked.mkdir(parents=True)
    for file in files:
        if re.match(r"linux-image-\d|busybox", file.name):
            roots.run("dpkg-deb", "-x", file, unpacked)
    (kernel,) = (unpacked / "boot").glob("vmlinuz-*")
    version = kernel.name.partition("-")[2]
    content = kernel.read_bytes()
    (folder / "kernel").write_bytes(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
    (folder / "modules").mkdir()
    roots.run("depmod", "-b", unpacked, version)
    order = []
    for name in MODULES:
        words = ["modprobe", "-d", unpacked, "-S", version, "--show-depends", name]
        for line in subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
            kind, _, path = line.partition(" ")
            file = Path(path.split()[0])
            if kind == "insmod" and file.name.removesuffix(".xz") not in order:
                order.append(file.name.removesuffix(".xz"))
                to = folder / "modules" / order[-1]
                shutil.copy(file, to.with_name(file.name))
                if file.suffix == ".xz":
                    roots.run("xz", "-d", to.with_name(file.name))
    (folder / "modules/order").write_text("\n".join(order))
    shutil.copy(next(unpacked.glob("**/bin/busybox")), folder / "busybox")
    shutil.rmtree(unpacked)
    (folder / "made").touch()


def initrd(folder, to, command):
    """Pack what runs first, in the format of cpio that the kernel reads."""
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name)
        (tree / "bin").mkdir()
        shutil.copy(folder / "busybox", tree / "bin")
        shutil.copytree(folder / "modules", tree / "modules")
        (tree / "init").write_text(INIT.replace("COMMAND", command))
        (tree / "init").chmod(0o755)
        packed = subprocess.run(
            "find . | cpio -o -H newc --quiet", shell=True, cwd=tree, check=True, capture_output=True
        )
        to.write_bytes(gzip.compress(packed.stdout, 1))


def run(folder, root, command, limit):
    """Run a command in a root file system on an emulated machine, and report whether it succeeded. Its output is shown."""
    prepare(folder)
    with tempfile.TemporaryDirectory() as name:
        initrd(folder, Path(name, "initrd"), command)
        words = [
            *("qemu-system-aarch64", "-M", "virt", "-accel", "tcg,thread=multi", "-cpu", "neoverse-n1", "-smp", "2"),
            *("-m", "2048", "-nographic", "-nodefaults", "-no-reboot", "-serial", "stdio", "-monitor", "none"),
            *("-kernel", folder / "kernel", "-initrd", Path(name, "initrd")),
            *("-append", "console=ttyAMA0 panic=-1 quiet loglevel=3 mitigations=off"),
            *("-device", "virtio-rng-pci"),
            *("-virtfs", f"local,path={root},mount_tag=root,security_model=none,multidevs=remap"),
        ]
        words = [os.fspath(word) for word in words]
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=limit)
        except subprocess.TimeoutExpired as error:
            print((error.stdout or b"").decode(errors="replace"), flush=True)
            print(f"the machine was still running after {limit} s", flush=True)
            return False
    print(done.stdout, flush=True)
    return "exit status 0" in done.stdout
