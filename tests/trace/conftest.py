"""Jobs that are recorded."""

import pytest

from gormapy.trace import load


@pytest.fixture
def recorded(mpirun, tmp_path):
    """Run a program by mpiexec --trace and return its Trace; what the job wrote is `job` of it."""

    def run(n, source, *args, launcher=(), **options):
        path = tmp_path / f"out{len(list(tmp_path.glob('out*')))}.json"
        job = mpirun(n, source, *args, launcher=("--trace", str(path), *launcher), **options)
        trace = load(path)
        trace.path, trace.job = path, job
        return trace

    return run
