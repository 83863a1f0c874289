"""Jobs on several hosts, under the launchers of clusters."""

import pytest

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(300)]


@pytest.mark.parametrize("launcher", ["ours", "hydra", "open_mpi"])
@pytest.mark.parametrize("hosts, n", [(2, 2), (2, 4), (3, 4), (4, 8)])
def test_everything(bed, launchers, launcher, hosts, n, python, programs):
    bed.up(hosts)
    result = bed.run([*getattr(launchers, launcher)(hosts, n), python, programs / "everything.py"])
    assert result.status == 0, result
    used = hosts if launcher != "open_mpi" else -(-n // -(-n // hosts))  # it fills the slots of a host
    assert f"{n} ranks on {used} nodes: all went well" in result.output, result


def test_it_says_to_whom_it_hands_over(bed, launchers, python):
    bed.up(2)
    result = bed.run([*launchers.ours(2, 2), python, "-c", "import socket; print(socket.gethostname())"])
    assert result.status == 0, result
    assert "mpiexec: 2 ranks on several hosts: handing over to mpiexec.hydra (" in result.output, result
    assert "host0" in result.output and "host1" in result.output, result


def test_ranks_that_are_started_by_hand(bed, python, programs):
    """As torchrun, Ray and Kubernetes start them: each knows its rank, and where rank 0 is."""
    bed.up(2)
    where = {"WORLD_SIZE": 4, "GORMAPY_RENDEZVOUS": "10.77.0.1:29612", "GORMAPY_SECRET": "mellon"}
    jobs = [bed.begin([python, programs / "everything.py"], rank % 2, RANK=rank, **where) for rank in (3, 1, 0, 2)]
    results = [bed.finish(job) for job in jobs]
    assert [result.status for result in results] == [0] * 4, results
    assert "4 ranks on 2 nodes: all went well" in results[2].output, results[2]


@pytest.mark.parametrize("interface", ["pmi2", "pmix", "none"])
def test_slurm(bed, launchers, slurm, python, programs, interface):
    if interface not in bed.run(["srun", "--mpi=list"], **slurm).output.split():
        pytest.skip(f"this Slurm has no {interface}: apt-get install libpmix-dev")
    result = bed.run([*launchers.slurm(interface)(2, 4), python, programs / "everything.py"], **slurm)
    assert result.status == 0, result
    assert "4 ranks on 2 nodes: all went well" in result.output, result


def test_an_allocation_of_slurm(bed, slurm, python, programs):
    """Inside an allocation of several nodes mpiexec hands over to srun."""
    from support.mpirun import mpiexec

    result = bed.run(["salloc", "-N2", "-n4", mpiexec(), "-n", 4, python, programs / "everything.py"], **slurm)
    assert result.status == 0, result
    assert "handing over to srun" in result.output and "all went well" in result.output, result
