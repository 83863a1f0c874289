"""Hosts whose networks are not simple."""

import contextlib
import socket
import threading

import pytest

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(300)]


def everything(bed, launchers, python, programs, **env):
    result = bed.run([*launchers.ours(2, 4), python, programs / "everything.py"], **env)
    assert result.status == 0, result
    assert "all went well" in result.output, result


def test_interfaces_that_lead_nowhere(bed, launchers, python, programs):
    """docker0 has the same address on every host, and aaa0 an address that no other host reaches."""
    bed.up(2)
    for host in range(2):
        for name, address in (("aaa0", f"192.168.77.{host + 1}/32"), ("docker0", "172.17.0.1/16")):
            bed.on(host, "ip", "link", "add", name, "type", "bridge")
            bed.on(host, "ip", "addr", "add", address, "dev", name)
            bed.on(host, "ip", "link", "set", name, "up")
    try:
        everything(bed, launchers, python, programs)
        everything(bed, launchers, python, programs, GORMAPY_TCP_IF="eth0")
    finally:
        for host in range(2):
            bed.on(host, "sh", "-c", "ip link del docker0; ip link del aaa0")


def test_an_interface_that_is_not_there(bed, launchers, python, programs):
    bed.up(2)
    result = bed.run([*launchers.ours(2, 2), python, programs / "everything.py"], GORMAPY_TCP_IF="ib7")
    assert result.status != 0, result
    assert 'interface "ib7" of host host' in result.output and "eth0" in result.output, result


@contextlib.contextmanager
def everything_that_passes():
    """Record the packets of this machine, by whose bridge the hosts reach each other."""
    packets = []
    every_protocol = 3
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(every_protocol)) as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        wire.settimeout(0.1)
        over = threading.Event()

        def listen():
            while not over.is_set():
                with contextlib.suppress(TimeoutError):
                    packets.append(wire.recv(1 << 16))

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield packets
        finally:
            over.set()
            thread.join()


WORD = b"mellon-on-the-way"  # of programs/marker.py


@pytest.mark.parametrize(
    ("env", "readable"), [({}, True), ({"GORMAPY_TCP_MAC": "0"}, True), ({"GORMAPY_TLS": "1"}, False)], ids=str
)
def test_what_can_be_read_on_the_way(bed, launchers, python, programs, env, readable):
    bed.up(2)
    with everything_that_passes() as packets:
        result = bed.run([*launchers.ours(2, 2), python, programs / "marker.py"], **env)
    assert result.status == 0, result
    assert "sent" in result.output, result
    assert sum(map(len, packets)) > 100_000
    assert any(WORD in p for p in packets) == readable


def test_everything_is_encrypted(bed, launchers, python, programs):
    bed.up(2)
    everything(bed, launchers, python, programs, GORMAPY_TLS="1")
