"""The file is what the document "Trace Event Format" describes, and what Perfetto needs to draw arrows."""

import json
from collections import defaultdict

import pytest
from support.programs import beside

program = beside(__file__)


@pytest.fixture(scope="module")
def required():
    """What each phase must have."""
    every = {"ph", "name", "pid", "tid"}
    return {
        "X": every | {"ts", "dur", "cat", "args"},
        "s": every | {"ts", "id", "cat"},
        "f": every | {"ts", "id", "cat", "bp"},
        "i": every | {"ts", "s", "args"},
        "C": every | {"ts", "args"},
        "M": every | {"args"},
    }


@pytest.mark.parametrize("n", [1, 4])
def test_format(recorded, required, n):
    document = json.loads(recorded(n, program.messages_and_puts).path.read_text())
    assert set(document) == {"displayTimeUnit", "otherData", "traceEvents"}
    assert document["displayTimeUnit"] in ("ms", "ns")
    slices, flows, names = defaultdict(list), defaultdict(list), {}
    for event in document["traceEvents"]:
        assert required[event["ph"]] <= set(event), event
        assert isinstance(event["pid"], int) and 0 <= event["pid"] < n
        assert isinstance(event["tid"], int)
        if "ts" in event:
            assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] >= 0 and event["args"]["bytes"] >= 0
            slices[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        elif event["ph"] in "sf":
            flows[event["cat"], event["id"]].append(event)
        elif event["ph"] == "C":
            assert all(isinstance(value, int) for value in event["args"].values())
        elif event["ph"] == "M":
            names[event["name"], event["pid"], event["tid"]] = event["args"]
    assert {names["process_name", rank, 0]["name"] for rank in range(n)} == {f"rank {rank}" for rank in range(n)}
    # slices of a thread lie beside each other or in each other
    for spans in slices.values():
        open_until = []
        for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_until and open_until[-1] <= begin + 1e-9:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1e-9
            open_until.append(end)
    # every arrow has two ends, each inside of a slice of its thread, and does not go back in time
    for events in flows.values():
        assert [event["ph"] for event in events] == ["s", "f"]
        assert events[0]["ts"] <= events[1]["ts"]
        for event in events:
            assert any(begin <= event["ts"] <= end for begin, end in slices[event["pid"], event["tid"]]), event
    kinds = [category for category, _ in flows]
    assert kinds.count("message") == n
    assert kinds.count("one-sided") == 2 * n
    lost = [event for event in document["traceEvents"] if event["ph"] == "i"]
    assert len(lost) == n and all(event["args"]["tag"] == 99 for event in lost)
    totals = [event["args"] for event in document["traceEvents"] if event["ph"] == "C"]
    assert max(total["messages"] for total in totals) == 80
    assert max(total["one-sided"] for total in totals) == 80
