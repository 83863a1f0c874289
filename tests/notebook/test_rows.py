"""Lines that are rewritten: what is kept is what a terminal shows at the end."""

import random
import re

import pytest

from gormapy.magic.rows import Cursor
from gormapy.magic.transcript import Text, Transcript


def shown(*pieces):
    """Return what is kept of pieces of text."""
    cursor, text = Cursor(), ""
    for piece in pieces:
        text = cursor.add(text, piece)
    return text


CASES = {
    "plain \n text\n": "plain \n text\n",
    "a\r\nb\r\n": "a\nb\n",
    "abc\rX": "Xbc",
    "50 %\r51 %\r": "51 %",
    "long line\r         \rshort\n": "short\n",
    "abc\b\bX": "aXc",
    "\b\bX": "X",
    "one\ntwo\x1b[A\rONE\n\nthree": "ONE\ntwo\nthree",
    "one\ntwo\n\x1b[2AONE\x1b[B\rTWO\n": "ONE\nTWO\n",
    "\x1b[9A\rtop": "top",
    "abcdef\x1b[3D\x1b[K": "abc",
    "abcdef\x1b[2GX\x1b[2CY": "aXcdYf",
    "abcdef\x1b[2K\rX": "X",
    "abcdef\x1b[3G\x1b[1K": "   def",
    "red: \x1b[31mabc\x1b[0m!\r\x1b[5Cz": "red: z\x1b[31mbc\x1b[0m!",
    "a\x1b[9999Cb": "a" + " " * 1000 + "b",
}


@pytest.mark.parametrize("text", CASES)
def test_what_a_terminal_would_show(text):
    assert shown(text) == CASES[text]
    assert shown(*text) == CASES[text]  # one character after the other


def test_text_may_come_in_any_pieces():
    chance = random.Random(8)
    parts = [
        "ab",
        "c",
        " ",
        "\r",
        "\n",
        "\x1b[A",
        "\x1b[2B",
        "\b",
        "\x1b[K",
        "\x1b[4G",
        "\x1b[31m",
        "\x1b[0m",
        "\x1b[2C",
    ]
    for _ in range(1000):
        text = "".join(chance.choices(parts, k=30))
        cuts = sorted(chance.sample(range(1, len(text)), 5))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)])]
        plain = [re.sub(r"\x1b\[[0-9]*m", "", t).split("\n") for t in (shown(text), shown(*pieces))]
        kept = [[line.rstrip() for line in lines] for lines in plain]
        assert kept[0] == kept[1], repr(text)


def test_a_line_that_is_rewritten_very_often():
    assert shown("".join(f"\r{i}" for i in range(300_000))) == "299999"
    text = Text("stdout", 1000)
    for i in range(5000):
        text.add(f"\r{i}" + "." * 100)
    assert text.text() == "4999" + "." * 100 and not text.dropped[0]
    text = Text("stdout", 1000)
    text.add("".join(f"{i}\n" for i in range(5000)) + "bar 1\rbar 2")
    assert text.text().startswith("0\n1\n") and text.text().endswith("\n4999\nbar 2") and text.dropped[0]


def test_a_bar_stays_where_it_began():
    seen = Transcript(1000)
    for i in range(5):
        seen.write(0, "stderr", f"\rbar {i}")
        seen.write(0, "stdout", f"step {i}\n")
    seen.write(0, "stderr", "\rbar 5\n")
    seen.write(0, "stderr", "a warning\n")
    assert seen.text() == "[0] bar 5\n" + "".join(f"[0] step {i}\n" for i in range(5)) + "[0] a warning"
    seen = Transcript(1000)
    seen.write(0, "stderr", "\rbar")
    seen.write(0, "stderr", "\r   \r")
    assert seen.text() == "" and "gormapy-rank" not in seen.html()
