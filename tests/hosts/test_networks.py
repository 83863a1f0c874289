"""Hosts whose networks are not simple."""

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
