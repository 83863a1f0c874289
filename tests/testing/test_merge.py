"""One report of those of all ranks: cases that do not happen by themselves."""

from types import SimpleNamespace

import pytest

from gormapy.testing import merge


@pytest.mark.parametrize("result", [{}, {"failure": {"text": "ValueError: in the worker"}}], ids=["nothing", "error"])
def test_rank_that_reports_nothing(request, result):
    """A test does not pass because one rank has run nothing of it."""
    item, config = request.node, request.config

    def reported(when):
        report = pytest.TestReport(item.nodeid, item.location, {}, "passed", None, when)
        return {0: [config.hook.pytest_report_to_serializable(config=config, report=report)]}

    run = SimpleNamespace(
        reports={when: reported(when) for when in ("setup", "call", "teardown")},
        results={0: {"failed": False}, 1: result},
        output=SimpleNamespace(sections=lambda when: []),
        headline=lambda: "",
        ended_in=None,
        table="",
        stacks={},
        waited=[],
        said=[],
    )
    assert [(r.when, r.outcome) for r in merge.reports(config, item, run, 1)] == [
        ("setup", "passed"),
        ("call", "passed"),
        ("teardown", "passed"),
    ]
    setup, teardown = merge.reports(config, item, run, 2)
    assert (setup.when, setup.outcome) == ("setup", "failed") and (teardown.when, teardown.outcome) == (
        "teardown",
        "passed",
    )
    assert "rank 1:" in str(setup.longrepr)
    assert result.get("failure", {"text": "rank 1 has reported nothing"})["text"] in str(setup.longrepr)
