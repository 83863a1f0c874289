"""The parallel I/O of a course: the calls of its lecture, and its output."""

from support.programs import beside

program = beside(__file__)


def test_explicit_offsets(ranks):
    result = ranks(
        4,
        program.explicit_offsets,
    )
    assert result.lines == [f"Rank {r} read [{' '.join(str(10 * r + i) for i in range(5))}]" for r in range(4)]


def test_rows_of_a_matrix(ranks):
    """A header of two integers, then a matrix of which every rank writes and reads a block of rows."""
    result = ranks(
        4,
        program.rows_of_a_matrix,
    )
    assert result.lines == [
        *(f"[read] rank {r}: block (3, 10), i0={3 * r}, ok=True" for r in range(4)),
        "[write] Wrote 12x10 (rows_per_rank=3) to rows_fixed.bin",
    ]
