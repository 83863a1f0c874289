"""Hosts whose networks are not simple, for ranks that choose a transport themselves, and over libfabric."""

import contextlib
import re
import socket
import threading

import pytest

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(300)]


def everything(bed, launchers, python, programs, **env):
    result = bed.run([*launchers.ours(2, 4), python, programs / "everything.py"], **env)
    assert result.status == 0, result
    assert "all went well" in result.output, result


def ends(bed, launchers, python, **env):
    """Return the addresses of rank 0 and of a rank on the other host between which they communicate."""
    result = bed.run([*launchers.ours(2, 4), python, "-m", "gormapy", "info"], **env)
    told = re.search(r"to rank [23]: .*?(10\.\d+\.0\.\d+):\d+ to .*?(10\.\d+\.0\.\d+):\d+(.*)", result.output)
    assert told, result
    return told.groups()


def test_everything(bed, launchers, python, programs, network):
    bed.up(2)
    everything(bed, launchers, python, programs, **network)
    *addresses, more = ends(bed, launchers, python, **network)
    assert addresses == ["10.77.0.1", "10.77.0.2"]
    assert network["GORMAPY_FABRIC"] != "ofi" or "messages authenticated" in more


def test_interfaces_that_lead_nowhere(bed, launchers, python, programs, network):
    with bed.interfaces_that_lead_nowhere():
        everything(bed, launchers, python, programs, **network)
        everything(bed, launchers, python, programs, GORMAPY_TCP_IF="eth0", **network)


def test_one_of_two_networks(bed, launchers, python, programs, network):
    with bed.second_network():
        everything(bed, launchers, python, programs, **network)
        for name, subnet in (("eth0", "10.77"), ("eth1", "10.78")):
            found = ends(bed, launchers, python, GORMAPY_TCP_IF=name, **network)
            assert found[:2] == (f"{subnet}.0.1", f"{subnet}.0.2"), name


def test_an_interface_that_is_not_there(bed, launchers, python, programs, network):
    bed.up(2)
    result = bed.run([*launchers.ours(2, 2), python, programs / "everything.py"], GORMAPY_TCP_IF="ib7", **network)
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


def test_a_network_that_limits_each_connection(bed, launchers, python, programs):
    """Several connections carry more than one, which ranks measure, and none are made where it is no use."""

    def rate(more_than=0, **env):
        """Return the best rate of up to three runs, the first one that is enough."""
        best = 0
        for _ in range(3):
            result = bed.run([*launchers.ours(2, 2), python, programs / "stream.py", 4], **env)
            assert result.status == 0, result
            best = max(best, int(re.search(r"(\d+) MiB/s", result.output).group(1)))
            if best > more_than:
                break
        return best

    with bed.flows_limited_to("240mbit"):
        one = rate(GORMAPY_TCP_CONNECTIONS=1)
        rates = {c: rate(2 * one, GORMAPY_TCP_CONNECTIONS=c) for c in ("auto", "4", "8")}
    assert one < 32, "the limit is one"
    assert min(rates.values()) > 2 * one, (one, rates)
    assert rate(2 * one) > 2 * one, "without a limit one connection carries more"
