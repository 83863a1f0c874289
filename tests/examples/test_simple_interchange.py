"""The eight steps of simple_interchange, on every back end that is here."""

import re
import subprocess
import sys
import threading
from importlib.util import find_spec

import numpy as np
import pytest

from gormapy import rdma
from gormapy.examples import simple_interchange as program

BACKENDS = [
    name
    for name, found in rdma.backends().items()
    if not isinstance(found, str) and any(port.state == "ACTIVE" for device in found for port in device.ports)
]

EXPECTED = """\
=== Simple GPU Data Interchange Example ===
Transferring 1024 bytes with value 42

Step 1: Initializing RDMA context...
  Found X RDMA device(s)
Step 2: Getting RDMA devices...
  Found X active device port(s)
Step 3: Creating device contexts...
  Device contexts created
Step 4: Creating RDMA endpoints...
  Endpoints created (QPN: send=XXX, recv=XXX)
Step 5: Connecting endpoints...
  Endpoints connected
Step 6: Allocating and registering GPU buffers...
  Buffers allocated and registered
Step 7: Launching GPU kernel for data interchange...
Success! All 1024 bytes verified with value 42
  Kernel execution completed
Step 8: Cleaning up resources...
  Resources cleaned up

=== Example completed successfully! ===
"""


def run(*args, timeout=60):
    """Run the program; return its status, output and errors."""
    command = [sys.executable, "-m", "gormapy.examples.simple_interchange", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("backend", BACKENDS)
def test_says_what_the_original_says(backend):
    status, out, err = run("--backend", backend)
    assert status == 0, err
    numbers = re.findall(r"Found (\d+)", out) + re.findall(r"=(\d+)", out)
    assert len(numbers) == 4
    assert all(int(number) > 0 for number in numbers)
    assert re.sub(r"=\d+", "=XXX", re.sub(r"Found \d+", "Found X", out)) == EXPECTED
    assert "no GPU can post from here" in err  # which the output, being that of the original, does not say


@pytest.mark.parametrize("backend", BACKENDS)
def test_many_writes_of_odd_sizes(backend):
    status, out, err = run("--backend", backend, "--size", 100_003, "--value", 7, "--writes", 1000, "--explain")
    assert status == 0, err
    assert "Success! All 100003 bytes verified with value 7" in out
    assert "a proxy thread posts for the kernel; its doorbell record" in out


@pytest.mark.parametrize(
    ("args", "status", "words"),
    [
        (["--device", "nix"], 1, "there is no device 'nix'; there is"),
        (["--backend", "pigeon"], 1, "there is no back end 'pigeon'"),
        (["--value", 0], 2, "not from 1 to 255"),
        (["--size", 0], 2, "not from 1 to 2**30"),
        (["--size", 3, "--writes", 4], 2, "in 1 to 3 pieces"),
        (["--array", "cupy"], 1, "cupy"),
    ],
)
def test_refusals(args, status, words, capsys):
    if "cupy" in args and find_spec("cupy"):
        pytest.skip("CuPy is here")
    with pytest.raises(SystemExit) as exit:
        program.main([str(arg) for arg in args])
    code = exit.value.code
    assert (code if isinstance(code, int) else 1) == status
    assert words in (capsys.readouterr().err if code == 2 else code)


def test_wrong_data_is_found(monkeypatch, capsys):
    class Wrong(program.HostArray):
        def to_host(self):
            self.host[5] = 1

    monkeypatch.setitem(program.ARRAYS, "numpy", Wrong)
    with pytest.raises(SystemExit) as exit:
        program.main(["--backend", BACKENDS[0]])
    assert exit.value.code == 1
    out = capsys.readouterr().out
    assert "Error! 1 of 1024 bytes are not 42" in out
    assert "Success" not in out
    assert "=== Example failed! ===" in out


def test_staging_copies_both_ways(monkeypatch, capsys):
    class Device(program.HostArray):
        """Memory that can't be registered, as that of a device."""

        def __init__(self, nbytes):
            super().__init__(nbytes)
            self.far = np.zeros(nbytes, np.uint8)

        def fill(self, value):
            self.far.fill(value)

        def wrong(self, value):
            return int(np.count_nonzero(self.far != value))

        def to_host(self):
            self.host[:] = self.far

        def from_host(self):
            self.far[:] = self.host

    monkeypatch.setitem(program.ARRAYS, "numpy", Device)
    with pytest.raises(SystemExit) as exit:
        program.main(["--backend", BACKENDS[0]])
    assert exit.value.code == 0
    assert "Success!" in capsys.readouterr().out


def test_a_write_that_fails_ends_the_kernel():
    with rdma.Context("tcp0") as context:
        pd = context.alloc_pd()
        send, recv = (pd.create_qp(context.create_cq()) for _ in range(2))
        send.connect(recv.info())
        recv.connect(send.info())
        source, target = pd.register(64), pd.register(64)
        remote = target.remote
        target.close()
        queue = program.ProxyQueue(4)
        proxy = threading.Thread(target=queue.serve, args=(send, source, remote))
        proxy.start()
        queue.update_send_dbr_record(queue.post_write(0, 0, 64))
        queue.ring_doorbell()
        with pytest.raises(rdma.Error, match="IBV_WC_REM_ACCESS_ERR"):
            queue.poll_cq(1)
        proxy.join(10)
        assert not proxy.is_alive()


def test_queue_has_limits():
    queue = program.ProxyQueue(2)
    assert [queue.post_write(0, 0, 1) for _ in range(2)] == [1, 2]
    with pytest.raises(BufferError, match="room for 2 requests"):
        queue.post_write(0, 0, 1)
    with pytest.raises(TimeoutError, match="0 of 2 writes"):
        queue.poll_cq(2, timeout=0.01)
    queue.update_cq_dbr_record(1)
    assert queue.post_write(0, 0, 1) == 3
