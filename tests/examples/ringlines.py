"""What every form of the ring prints."""


def ring_lines(size, turns=5):
    """Return the lines of all ranks, sorted."""
    return sorted(
        f"[iter {turn}] rank {rank} got {(rank - 1) % size + 100 * turn} from {(rank - 1) % size}"
        for rank in range(size)
        for turn in range(turns)
    )
