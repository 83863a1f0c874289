"""The glossary: the table of docs/glossary.md as terms that pages can name."""

import re

_ROW = re.compile(r"^\| \*\*(.+?)\*\* \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)
_OTHER = re.compile(r"(?<!\*)\*([^*]+)\*(?!\*)")


def page(text):
    """Return the page with a definition for each row of its table."""
    head, _, table = text.partition("\n| term |")
    rows = _ROW.findall(table)
    if len(rows) != text.count("\n| **"):
        raise SystemExit("docs/glossary.md: a row of the table is not **term**, meaning, nearest term, places")
    terms = {term.lower() for term, *_ in rows}
    lines = [head.rstrip(), "", "````{glossary}"]
    for term, meaning, nearest, places in rows:
        lines += ["", term, f"  {_named(meaning, terms)}", "", f"  *Elsewhere:* {nearest}. *In the code:* {places}."]
    return "\n".join([*lines, "````", ""])


def _named(meaning, terms):
    """Make references of the terms in italics."""
    return _OTHER.sub(
        lambda other: f"{{term}}`{other[1]} <{_key(other[1], terms)}>`" if _key(other[1], terms) else other[0], meaning
    )


def _key(name, terms):
    return next((term for term in (name.lower(), name.lower().removesuffix("s")) if term in terms), None)
