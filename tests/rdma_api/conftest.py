"""Pairs of connected queue pairs on every back end that this machine has."""

from contextlib import ExitStack
from types import SimpleNamespace

import numpy as np
import pytest

from gormapy import rdma

BACKENDS = ("tcp", "shm", "verbs", "ofi")


def missing(backend):
    """Return why there is no device of a back end to test with, "" if there is one."""
    found = rdma.backends().get(backend, "this build has no such back end")
    if isinstance(found, str):
        return found
    if not any(port.state == "ACTIVE" for device in found for port in device.ports):
        return "no port is active"
    return ""


PRESENT = [backend for backend in BACKENDS if not missing(backend)]  # test_devices.py skips for the others


@pytest.fixture(params=PRESENT)
def backend(request):
    """The name of each back end that is here."""
    return request.param


@pytest.fixture
def device(backend):
    """The name of a device of the back end."""
    active = (d for d in rdma.devices(backend) if any(port.state == "ACTIVE" for port in d.ports))
    return next(active).name


@pytest.fixture
def end(backend, device):
    """Make ends of connections: a context, a queue pair and a region of zeroed bytes."""
    with ExitStack() as stack:

        def make(nbytes=4096, depth=512, **options):
            context = stack.enter_context(rdma.Context(device, backend))
            pd = context.alloc_pd()
            cq, recv_cq = context.create_cq(depth), context.create_cq(depth)
            array = np.zeros(nbytes, np.uint8)
            return SimpleNamespace(
                context=context, pd=pd, cq=cq, recv_cq=recv_cq, qp=pd.create_qp(cq, recv_cq, **options), array=array, mr=pd.register(array)
            )  # fmt: skip

        yield make


@pytest.fixture
def linked(end):
    """Make two connected ends."""

    def make(nbytes=4096, connection=None, **options):
        a, b = end(nbytes, **options), end(nbytes, **options)
        a.qp.connect(b.qp.info(), **(connection or {}))
        b.qp.connect(a.qp.info(), **(connection or {}))
        return a, b

    return make


@pytest.fixture
def limits(device, backend):
    """What the device can do."""
    return next(d.limits for d in rdma.devices(backend) if d.name == device)
