"""The portable representation external32 (MPI 4.1, section 14.5.2), and Fortran's types of a precision and range."""

import pytest
from support.programs import beside

program = beside(__file__)


def test_every_type_by_hand(ranks):
    ranks(1, program.every_type_by_hand)


@pytest.mark.parametrize("seed", range(4))
def test_random_types_against_numpy(ranks, seed):
    ranks(1, program.random_types_against_numpy, seed)


def test_values_that_do_not_fit(ranks):
    ranks(1, program.values_that_do_not_fit)


def test_wrong_arguments(ranks):
    ranks(1, program.wrong_arguments)


def test_memory_that_faults(ranks):
    ranks(1, program.memory_that_faults)


def test_other_threads_run(ranks):
    ranks(1, program.other_threads_run)


@pytest.mark.parametrize("n", (1, 2, 4))
def test_packed_data_travels(ranks, n):
    ranks(n, program.packed_data_travels)


def test_fortran_types(ranks):
    ranks(2, program.fortran_types)


def test_fortran_types_that_do_not_exist(ranks):
    ranks(1, program.fortran_types_that_do_not_exist)
