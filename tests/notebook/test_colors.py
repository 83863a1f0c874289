"""Whatever ranks print, the kernel shows it: escape sequences become HTML, or nothing."""

import html
import random
import re

from gormapy.magic.ansi import to_html, without_colors

PIECES = ["\x1b[", "\x1b", "\x1b]", "\x07", "\x1b\\", "m", "K", ";", ";;", "[", "0", "1", "7", "38;5;", "48;2;", "38", "48", "5;",
          "255", "256", "999", "1" * 5000, "0" * 5000 + "31", "<b>&", "é", "\u0663", "text", "\n", "\0"]  # fmt: skip


def test_a_parameter_of_any_length():
    for digits in (3, 4, 4300, 5000, 10**6):
        text = "a\x1b[" + "1" * digits + "mb"
        assert without_colors(text) == "ab"
        assert to_html(text) == "ab"
        for command in ("38;5;", "38;2;1;2;", "48;5;", "0;"):
            to_html(f"a\x1b[{command}{'1' * digits}mb")
    assert to_html("\x1b[00031mred") == to_html("\x1b[31mred") != "red"


def test_any_sequence():
    chance = random.Random(15)
    for _ in range(5000):
        text = "".join(chance.choices(PIECES, k=chance.randrange(1, 40)))
        shown = re.sub(r"</?span[^>]*>", "", to_html(text))
        assert html.unescape(shown) == without_colors(text), repr(text)
        assert "<b" not in shown


def test_many_sequences_take_time_in_proportion():
    for piece in ("\x1b]", "\x1b[", "\x1b[1;", "\x1b[31m", "\x1b]8;;", "\x1b[38;2;"):
        text = piece * 100_000
        to_html(text)  # minutes, if each were looked for to the end
        without_colors(text)
