"""Colours of terminals, as HTML or left out."""

import re
from html import escape

ESCAPE = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")
_DIGITS = 3
# Colours that can be read on white and on black; backgrounds are tints of them.
_BASE = ("#7a7a7a", "#d0483a", "#2e8b57", "#b7791f", "#4c7fc4", "#a85ab3", "#1f8a8a", "#888888")


def without_colors(text):
    """Return text without escape sequences."""
    return ESCAPE.sub("", text)


def to_html(text):
    """Return text as HTML, with its colours and bold type."""
    out, at, style = [], 0, {}
    for match in ESCAPE.finditer(text):
        out.append(_span(text[at : match.start()], style))
        at = match.end()
        if match[2] == "m":
            _apply(match[1], style)
    out.append(_span(text[at:], style))
    return "".join(out)


def _span(text, style):
    if not text:
        return ""
    css = ";".join(f"{k}:{v}" for k, v in style.items())
    return f'<span style="{css}">{escape(text, quote=False)}</span>' if css else escape(text, quote=False)


def _apply(codes, style):
    numbers = [_number(c) for c in codes.split(";")]
    i = 0
    while i < len(numbers):
        code = numbers[i]
        if code == 0:
            style.clear()
        elif code == 1:
            style["font-weight"] = "bold"
        elif code == 22:
            style.pop("font-weight", None)
        elif code in (30, 39):  # text on a background is black; without a background the page's colour is used
            style.pop("color", None)
        elif 31 <= code <= 37 or 90 <= code <= 97:
            style["color"] = _BASE[code % 10]
        elif 40 <= code <= 47:
            style["background"] = _BASE[code - 40] + "44"
        elif code == 49:
            style.pop("background", None)
        elif code in (38, 48):
            color, i = _extended(numbers, i)
            if color:
                style.update({"color": color} if code == 38 else {"background": color + "44"})
        i += 1


def _number(digits):
    """Return a parameter; one with more digits than any valid parameter is too large."""
    digits = digits.lstrip("0")
    return int(digits or "0") if len(digits) <= _DIGITS else 10**_DIGITS


def _extended(numbers, i):
    """Return the colour of 38;5;N or 38;2;R;G;B, and the index of its last number."""
    if numbers[i + 1 : i + 2] == [5] and len(numbers) > i + 2:
        n = numbers[i + 2]
        if n < 16:
            return _BASE[n % 8], i + 2
        if n >= 232:
            return None, i + 2  # greys: some of them can't be read on the page
        n -= 16
        return "#" + "".join(f"{(0, 75, 115, 155, 185, 215)[v]:02x}" for v in (n // 36, n // 6 % 6, n % 6)), i + 2
    if numbers[i + 1 : i + 2] == [2] and len(numbers) > i + 4:
        return "#" + "".join(f"{min(v, 255):02x}" for v in numbers[i + 2 : i + 5]), i + 4
    return None, len(numbers)
