"""Random one-sided operations of ranks on several hosts against a serial model, and jobs of many ranks."""

import os
import random
from pathlib import Path

import pytest

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(1000)]

MODEL = Path(__file__).parents[1] / "rma" / "programs" / "model.py"
OPERATIONS = int(os.environ.get("HOSTS_OPERATIONS", "1000"))


@pytest.mark.parametrize("flavour", ["create", "allocate", "dynamic"])
@pytest.mark.parametrize("hosts, n", [(2, 4), (3, 7)])
def test_random_operations(bed, launchers, python, flavour, hosts, n):
    """HOSTS_OPERATIONS=100000 pytest -m hosts tests/hosts/test_random.py"""
    bed.up(hosts)
    seed = random.SystemRandom().randrange(1 << 30)
    command = [*launchers.ours(hosts, n), python, MODEL, seed, OPERATIONS, flavour]
    result = bed.run(command, limit=900)
    assert result.status == 0, result


def test_64_ranks(bed, launchers, python, programs):
    bed.up(4)
    result = bed.run([*launchers.ours(4, 64), python, programs / "everything.py"], limit=900)
    assert result.status == 0, result
    assert "64 ranks on 4 nodes: all went well" in result.output, result
