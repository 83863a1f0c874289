"""What devices there are, in Python and by the command."""

import json
import subprocess
import sys

import pytest
from support.mpirun import environment

from gormapy import rdma


@pytest.mark.parametrize("backend", ("verbs", "ofi", "tcp", "shm"))
def test_each_backend_has_devices_or_says_why_not(backend):
    found = rdma.backends()[backend]
    if isinstance(found, str):
        assert len(found) > 10
        assert rdma.devices(backend) == []
        with pytest.raises(rdma.Error) as caught:
            rdma.Context(backend=backend)
        assert caught.value.status == "ENODEV" and found in str(caught.value)
        pytest.skip(f"{backend}: {found}")
    for device in rdma.devices(backend):
        assert device.backend == backend and device.name and device.ports
        with rdma.Context(device.name, backend) as context:
            assert context.device.name == context.name == device.name
            assert context.query_device()["max_qp"] > 0
            assert context.query_port(1).max_msg >= 2**20


def command(*args):
    """Run the command and return what it prints."""
    line = [sys.executable, "-m", "gormapy.rdma", *args]
    done = subprocess.run(line, env=environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_lists_devices_and_why_others_are_missing():
    text = command("devices")
    table, _, notes = text.partition("\n\n")
    assert table.split("\n")[0].split()[:4] == ["device", "back", "end", "port"]
    for name, found in rdma.backends().items():
        if isinstance(found, str):
            assert f"{name} (" in notes and found in notes
        for device in [] if isinstance(found, str) else found:
            assert device.name in table and f"{device.name}: " in notes
    facts = json.loads(command("devices", "--json"))
    assert facts["tcp"]["devices"][0]["name"] == "tcp0"


def test_nothing_of_mpi_is_initialized():
    program = "import sys\nfrom gormapy import rdma\nrdma.Context('shm0')\nassert 'gormapy.MPI' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], env=environment(), check=True, timeout=60)
