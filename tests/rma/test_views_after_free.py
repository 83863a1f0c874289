"""Memory of windows that the program shows stays, whatever becomes of the window."""

import pytest
from support.programs import beside

program = beside(__file__)


@pytest.mark.parametrize("kind", program.keys_of("WINDOWS"))
@pytest.mark.parametrize("n", [1, 2, 4, 7])
def test_views_after_free(ranks, n, kind):
    ranks(n, program.views_after_free, kind, n == 2)


@pytest.mark.parametrize("kind", program.keys_of("WINDOWS"))
def test_views_after_free_on_two_nodes(ranks, kind):
    ranks(4, program.views_after_free, kind, False, env={"GORMAPY_JOB_NODES": "2"})


@pytest.mark.parametrize("kind", program.keys_of("WINDOWS"))
@pytest.mark.parametrize("n", [1, 3])
def test_each_view_alone(ranks, n, kind):
    ranks(n, program.each_view_alone, kind)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_what_nothing_shows_is_given_back(mpirun, n):
    mpirun(n, program.what_nothing_shows_is_given_back)


@pytest.mark.parametrize("n", [1, 2])
def test_a_view_outlives_its_buffer(ranks, n):
    ranks(n, program.a_view_outlives_its_buffer)
