"""Numbers of 16 bits with the exponent of float32: arrays of ml_dtypes, DLPack, and reductions."""

import pytest
from support.programs import beside

pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed: it has no wheel for this Python")

program = beside(__file__)


def test_arrays_of_ml_dtypes(ranks):
    ranks(2, program.arrays_of_ml_dtypes)


def test_reductions_round_to_nearest_even(ranks):
    ranks(2, program.reductions_round_to_nearest_even)


def test_what_is_not_finite(ranks):
    ranks(2, program.what_is_not_finite)


def test_accumulates(ranks):
    ranks(2, program.accumulates)


def test_arrays_by_dlpack(ranks):
    ranks(2, program.arrays_by_dlpack)


def test_errors_name_the_datatype(ranks):
    ranks(1, program.errors_name_the_datatype)
