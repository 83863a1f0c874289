"""MT19937-64 gives the numbers of C++, into any memory."""

import numpy as np
import pytest

from gormapy.mt19937 import MT19937_64, random_bytes
from gormapy.rdma import TypeMismatch

SEED = 0xB584035FABE6CE9B  # the first number of seed 0xabcdabcd987


@pytest.mark.parametrize(
    ("seed", "first", "xor", "total"),
    [
        (SEED, [0x186219B8A789CEC9, 0xCBDD7F5A8CAF8839, 0x4A96561381275D5E], 0xDDD1629D07692896, 0x3A6387643C917B24),
        (SEED + 1, [0xD97EAA4E4B9F0CDA, 0x7BA2057B4AAA6F98, 0xE6CFFD302A2AE36F], 0x944EA99F1D3CF0F8, 0x37287A7675A4F066),
    ],
)  # fmt: skip
def test_words_of_cxx(seed, first, xor, total):
    words = random_bytes(seed, 8 << 20).view("<u8")
    assert words[:3].tolist() == first
    assert int(np.bitwise_xor.reduce(words)) == xor
    assert int(words.sum()) == total


def test_seed_and_sample_of_cxx():
    rng = MT19937_64(0xABCDABCD987)
    assert rng.next() == SEED
    assert rng.sample(16, 8).tolist() == [1, 3, 4, 7, 12, 13, 14, 15]
    assert rng.next() == 0x816B0C827F989D24
    assert MT19937_64(1).sample(5, 9).tolist() == [0, 1, 2, 3, 4]
    assert MT19937_64(1).sample(0, 9).tolist() == []


def test_fill_takes_any_memory_and_goes_on_where_it_was():
    whole, rng = random_bytes(3, 80), MT19937_64(3)
    unaligned, some = bytearray(25), bytearray(56)
    rng.fill(memoryview(unaligned)[1:])
    assert unaligned[1:] + rng.fill(some) == whole.tobytes()
    assert unaligned[0] == 0


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seeds_are_words(seed):
    with pytest.raises(ValueError, match="a seed is"):
        MT19937_64(seed)


def test_what_cannot_be_filled():
    rng = MT19937_64(1)
    with pytest.raises(ValueError, match="9 bytes are no whole number"):
        rng.fill(bytearray(9))
    with pytest.raises(Exception, match="read-only"):
        rng.fill(bytes(8))
    with pytest.raises(TypeMismatch):
        rng.fill(8)
    with pytest.raises(ValueError, match="of 32 bits"):
        rng.sample(2**32, 1)
    assert rng.next() == MT19937_64(1).next()
