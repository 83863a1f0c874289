"""Jobs on several hosts, under the launchers of clusters."""

import pytest

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(300)]


@pytest.mark.parametrize("launcher", ["ours", "hydra"])
@pytest.mark.parametrize("hosts, n", [(2, 2), (2, 4), (3, 4), (4, 8)])
def test_everything(bed, launchers, launcher, hosts, n, python, programs):
    bed.up(hosts)
    result = bed.run([*getattr(launchers, launcher)(hosts, n), python, programs / "everything.py"])
    assert result.status == 0, result
    assert f"{n} ranks on {hosts} nodes: all went well" in result.output, result


def test_it_says_to_whom_it_hands_over(bed, launchers, python):
    bed.up(2)
    result = bed.run([*launchers.ours(2, 2), python, "-c", "import socket; print(socket.gethostname())"])
    assert result.status == 0, result
    assert "mpiexec: 2 ranks on several hosts: handing over to mpiexec.hydra (" in result.output, result
    assert "host0" in result.output and "host1" in result.output, result


def test_slurm(bed, launchers, slurm, python, programs):
    result = bed.run([*launchers.slurm("pmi2")(2, 4), python, programs / "everything.py"], **slurm)
    assert result.status == 0, result
    assert "4 ranks on 2 nodes: all went well" in result.output, result


def test_an_allocation_of_slurm(bed, slurm, python, programs):
    """Inside an allocation of several nodes mpiexec hands over to srun."""
    from support.mpirun import mpiexec

    result = bed.run(["salloc", "-N2", "-n4", mpiexec(), "-n", 4, python, programs / "everything.py"], **slurm)
    assert result.status == 0, result
    assert "handing over to srun" in result.output and "all went well" in result.output, result
