"""%%mpi with ranks on several hosts."""

import pytest

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(300)]

pytest.importorskip("IPython")


def check(result):
    """Check what cells.py has printed."""
    assert result.status == 0, result
    text = result.output
    for rank in range(4):
        assert f"[{rank}] on host{rank // 2} 4" in text, result
    assert text.count("[3] line ") == 2000, result
    assert "Deadlock: ranks 0-3 wait for each other" in text, result
    assert "rank 0 in recv for rank 1" in text and "rank 3 in recv for rank 0" in text, result
    assert "CellTimeout: ranks 0-3 did not end within 1 s" in text, result
    assert "MPICellError: ValueError on rank 2" in text, result
    assert text.count("Communication was put back") == 3, result
    assert "[['still', 6], ['still', 6], ['still', 6], ['still', 6]]" in text, result
    assert "recorded messages 4 early 0" in text, result
    assert "RankDied: rank 3 was killed" in text, result
    assert "[0-3] again 4" in text or all(f"[{r}] again 4" in text for r in range(4)), result
    assert "4 ranks ended." in text, result


def test_hosts_of_the_cell(bed, engines, python, programs):
    bed.up(2)
    ssh = {"HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": str(bed.ssh)}
    path = f"PATH={engines['mpich']}:/usr/bin:/bin"
    check(bed.run(["env", path, python, programs / "cells.py", "-n 4 --hosts host0,host1"], **ssh))


def test_hosts_of_an_allocation(bed, slurm, python, programs):
    check(bed.run(["salloc", "-N2", "-n4", "--ntasks-per-node=2", python, programs / "cells.py", "-n 4"], **slurm))
