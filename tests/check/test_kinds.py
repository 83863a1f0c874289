"""The numbers of events and classes are the same in Go, in Python and in C."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHECK = ROOT / "gocore" / "check"


def constants(file, first):
    """Return the names of a list of constants that begins with a name, in capitals and with underscores."""
    lines = (CHECK / file).read_text().split(f"\t{first}", 1)[1].split("\n)")[0].splitlines()
    names = [first, *(line.split()[0] for line in lines[1:] if line.strip())]
    return [re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.rstrip("_")).upper() for name in names]


def test_kinds_of_events():
    from gormapy.check import kinds

    for number, name in enumerate(constants("events/kind.go", "Begin"), 1):
        assert getattr(kinds, name) == number
    for file, first in (("events/kind.go", "Fence"), ("events/kind.go", "Put")):
        for number, name in enumerate(constants(file, first)):
            assert getattr(kinds, name) == number


def test_classes():
    from gormapy.check import kinds

    found = [name.replace("_", "-").lower() for name in constants("class.go", "OriginReuse")]
    assert found == list(kinds.CLASSES)


def test_kinds_in_c():
    from gormapy.check import kinds

    text = (ROOT / "pybind" / "shim" / "check.h").read_text()
    events = text.split("CHECK_MOST_WORDS", 1)[1].split("}", 1)[0]
    found = dict(re.findall(r"CHECK_(\w+) = (\d+)", events))
    assert {"OP", "SYNC", "ACCESS", "LIMIT"} <= found.keys()
    assert {name: int(number) for name, number in found.items()} == {name: getattr(kinds, name) for name in found}
