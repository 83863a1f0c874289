"""Fixtures for tests of gormapy.futures."""

import sys

import pytest


@pytest.fixture
def serve(mpirun):
    """Run a function of a program at rank 0, with the other ranks as workers of its executors."""

    def start(n, program, *args, **options):
        return mpirun.command(
            n, sys.executable, "-m", "gormapy.futures", program.file, program.function, *args, **options
        )

    def run(n, program, *args, expect=0, **options):
        return start(n, program, *args, **options).finish(expect)

    run.start = start
    return run


@pytest.fixture(params=[1, 2, 4])
def n(request):
    """Numbers of ranks: a thread, one worker, several."""
    return request.param
