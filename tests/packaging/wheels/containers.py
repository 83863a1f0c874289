"""Containers: the recipes of docs/containers, built by Docker and Apptainer of Debian, of images that are made here.

The image that a recipe names is fetched from a registry elsewhere; here a Debian with its own Python takes its place. Docker's
daemon runs in a folder of its own, and ends with the test.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import roots

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
RECIPES = ROOT / "docs/containers"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
START = 30


def image(folder):
    """Make a root with Python and pip, as the image of a recipe has them; return it."""
    root = folder / "python"
    roots.debian(root, "bookworm", "amd64", ["python3", "python3-pip", "libstdc++6", "dash", "coreutils", "sed"])
    if not (root / "usr/bin/python").exists():
        (root / "usr/bin/python").symlink_to("python3")
    (root / "usr/lib/python3.11/EXTERNALLY-MANAGED").unlink(missing_ok=True)  # images of Python have no such file
    if CERTIFICATES.exists():
        (root / "etc/ssl/certs").mkdir(parents=True, exist_ok=True)
        shutil.copy(CERTIFICATES, root / "etc/ssl/certs")
    return root


@contextlib.contextmanager
def daemon(folder):
    """Run Docker's daemon; give a function that runs the words of a docker command and returns what they print."""
    tools = folder / "docker"
    roots.debian(tools, "bookworm", "amd64", ["docker.io", "iptables"])
    env = {
        **os.environ,
        "PATH": f"{tools}/usr/bin:{tools}/usr/sbin:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": f"{tools}/usr/lib/x86_64-linux-gnu",
    }
    with tempfile.TemporaryDirectory(dir=folder) as own:
        client = [tools / "usr/bin/docker", "-H", f"unix://{own}/socket"]
        # When the first process of its namespaces is killed, containers and mounts go, too.
        words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        words += ["dockerd", "--bridge=none", "--iptables=false", "--ip-forward=false", "--ip-masq=false"]
        words += [f"--data-root={own}/data", f"--exec-root={own}/run", f"--pidfile={own}/pid", client[1], client[2]]
        with (
            open(folder / "dockerd.log", "w") as log,
            subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process,
        ):
            try:
                _wait([*client, "version"], process, log.name)
                yield lambda *words, **options: _docker([*client, *words], **options)
            finally:
                process.kill()


def _wait(command, process, log):
    for _ in range(5 * START):
        if subprocess.run(command, capture_output=True).returncode == 0:
            return
        if process.poll() is not None:
            break
        time.sleep(0.2)
    raise SystemExit(f"Docker's daemon does not run: {Path(log).read_text()[-2000:]}")


def _docker(command, expect=0, **options):
    done = subprocess.run(list(map(os.fspath, command)), capture_output=True, text=True, timeout=600, **options)
    if done.returncode != expect:
        raise SystemExit(f"failed: {' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def docker_image(docker, folder, dist):
    """Build the image of docs/containers/Dockerfile, as the page says, of the image that is made here."""
    root = image(folder)
    with subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE) as tar:
        docker("import", "-", "python-of-debian", stdin=tar.stdout)
    words = ["--network", "host", "--build-arg", "IMAGE=python-of-debian"]
    docker("build", *words, "-t", "gormapy", "-f", RECIPES / "Dockerfile", dist)


# Runs with a root of its own, in namespaces for mounts and processes: chroot is not enough for Apptainer.
PIVOT = """
mount --bind "$1" "$1" && cd "$1"
mkdir -p clone old etc/ssl/certs var/tmp var/lib/apptainer/mnt/session
mount -t proc proc proc && mount --rbind /dev dev && mount --rbind /sys sys && mount -t tmpfs tmpfs tmp
mount --rbind "$2" clone
cp /etc/resolv.conf /etc/hosts etc/
cp "$3" etc/ssl/certs/ || true
touch etc/localtime
echo root:x:0: >etc/group
pivot_root . old && umount -l /old
shift 3
cd /clone && exec env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LC_ALL=C.UTF-8 "$@"
"""


def apptainer(folder):
    """Make a root with Apptainer; return a function that gives the words of an apptainer command in it.

    The clone is /clone there.
    """
    root = folder / "apptainer"
    roots.debian(root, "sid", "amd64", ["apptainer", "mount", "dash", "coreutils"])
    start = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "--pid",
        "--fork",
        "sh",
        "-ec",
        PIVOT,
        "sh",
        root,
        ROOT,
        CERTIFICATES,
    ]
    return lambda *words: [*map(os.fspath, start), "apptainer", *words]
