"""One report of a phase from those of all ranks.

A phase has failed if it has on one rank, has passed if it has on one and failed on none, and is skipped if it is on
all.
Tracebacks that end in the same place are shown once.
"""

from __future__ import annotations

import copy
import re

import pytest
from _pytest._code.code import ExceptionChainRepr, ReprEntryNative, ReprFileLocation, ReprTraceback

from gormapy.check.reports import text as as_text

from .._resident.errors import ranks_text
from .testrun import PHASES

_ADDRESS = re.compile("0x[0-9a-f]+")
_KIND = re.compile(r"[\w.]+(?=:|$)", re.MULTILINE)
_STRICT = "[XPASS(strict)]"


def reports(config, item, run, size):
    """Return the reports of a test, one of each phase."""
    serial = config.hook.pytest_report_from_serializable
    made, sections = [], []
    every = {
        when: {rank: [serial(config=config, data=d) for d in data] for rank, data in sorted(by_rank.items())}
        for when, by_rank in run.reports.items()
    }
    if not run.headline():
        _add_silent(item, run, size, every)
    # A phase with subtests has several reports, of which the last may be none of a failure.
    phases = {
        when: {rank: next(filter(_is_own_failure, found), found[-1]) for rank, found in every.get(when, {}).items()}
        for when in PHASES
    }
    to_blame = [when for when in PHASES if _own_failures(phases[when]) or (when == run.ended_in and run.headline())]
    for when, reported in phases.items():
        found = reported
        ended = run.headline() if when == run.ended_in else ""
        sections += _logs(reported) + run.output.sections(when)
        if to_blame and when not in to_blame:
            # Ranks that were interrupted here have not failed: they waited for those that have failed elsewhere.
            found = {rank: report for rank, report in found.items() if not report.failed}
            if when == "call" and to_blame[0] == "setup":
                continue
        if found or ended:
            made.append(_merged(item, when, found, run, size, ended, to_blame[:1] == [when], every.get(when, {})))
            made[-1].sections = list(sections)
    if made and made[-1].when != "teardown":  # a rank has died
        made.append(_report(item, "teardown", "passed", None))
    return made


def _add_silent(item, run, size, every):
    """Count it as a failure that a rank has run nothing of a test, whatever the others say."""
    heard = {rank for by_rank in every.values() for rank in by_rank}
    for rank in set(range(size)) - heard:
        told = run.results.get(rank, {}).get("failure") or {}
        text = told.get("text") or f"rank {rank} has reported nothing of the test"
        every.setdefault("setup", {})[rank] = [_report(item, "setup", "failed", text)]


def failure(item, when, text):
    """Return a report of a failure without a traceback."""
    return _report(item, when, "failed", _chain([], [f"{text.rstrip()}\n"], item, text.partition("\n")[0]))


def checked(item, reports, found):
    """Return the reports of a test in which mpiexec --check has found something: it has failed."""
    text = "\n".join(map(as_text, found))
    call = next((report for report in reports if report.when == "call"), None)
    if call is not None and not call.failed:
        failed = failure(item, "call", text)
        failed.sections, failed.duration = call.sections, call.duration
        return [failed if report is call else report for report in reports]
    (call or reports[0]).sections.append(("mpiexec --check", text))
    return reports


def at_the_end(item, found):
    """Return the report of what mpiexec --check has found when the ranks of a test ended, after their last one."""
    return failure(item, "teardown", "when the ranks ended: " + "\n".join(map(as_text, found)))


def _report(item, when, outcome, longrepr):
    keywords = dict.fromkeys(item.keywords, 1)
    return pytest.TestReport(item.nodeid, item.location, keywords, outcome, longrepr, when)


def _own_failures(found):
    """Return the reports of ranks that have failed and were not interrupted."""
    return {rank: report for rank, report in found.items() if _is_own_failure(report)}


def _is_own_failure(report):
    return report.failed and not getattr(report, "gormapy_interrupted", False)


def _merged(item, when, found, run, size, ended, first, every):
    own = _own_failures(found)
    expected = _expected(found)
    if expected is not None and not (ended and not _all_there(found, size)):
        merged = copy.copy(expected)
        merged.outcome = "skipped"
    elif ended or any(report.failed for report in found.values()):
        merged = copy.copy(next((every[rank][-1] for rank in own), None) or _first(item, when, found))
        merged.outcome = "failed"
        merged.__dict__.pop("wasxfail", None)
        merged.longrepr = _longrepr(item, own, run, ended, when, first, every)
    else:
        passed = [report for report in found.values() if report.passed]
        merged = copy.copy(passed[0] if passed else _first(item, when, found))
    merged.when = when
    merged.keywords = {**merged.keywords, **dict.fromkeys(item.keywords, 1)}
    if found:
        merged.start = min(report.start for report in found.values())
        merged.stop = max(report.stop for report in found.values())
        merged.duration = max(report.duration for report in found.values())
    merged.__dict__.pop("gormapy_interrupted", None)
    return merged


def _first(item, when, found):
    return next(iter(found.values()), None) or _report(item, when, "failed", None)


def _all_there(found, size):
    return len(found) == size


def _expected(found):
    """Return a report of a failure that was expected (xfail), if there is one and no other failure."""
    expected = None
    for report in found.values():
        if hasattr(report, "wasxfail") and report.skipped:
            expected = expected or report
        elif report.failed and not str(report.longrepr).startswith(_STRICT):
            return None
    return expected


def _logs(found):
    """Return the sections of reports that this phase has added (captured logs), once for ranks that have the same."""
    groups = {}
    for rank, report in found.items():
        for name, text in report.sections:
            if name.endswith(f" {report.when}"):
                groups.setdefault((name, text), []).append(rank)
    return [(f"{name}, {ranks_text(ranks)}", text) for (name, text), ranks in groups.items()]


def _longrepr(item, own, run, ended, when, first, every):
    groups = {}
    for rank in own:
        for report in filter(_is_own_failure, every[rank]):
            groups.setdefault(_place(report.longrepr), {})[rank] = report.longrepr
    chain = []
    for group in groups.values():
        chain += _group(group)
    notes = []
    if ended:
        notes += [run.table or f"{ended}\n"]
        notes += [f"{_heading(ranks)}\n{text}" for text, ranks in _by_text(run.stacks).items()]
    if first:
        notes += ["\n".join(run.waited) + "\n"] if run.waited else []
        notes += [f"{text}\n" for text in run.said]
    if not chain and not notes:
        notes.append(f"interrupted in {when}\n")
    text = next((text for group in groups.values() for text in group.values()), None)
    return _chain(chain, notes, item, ended or _message(text), None if ended else getattr(text, "reprcrash", None))


def _heading(ranks):
    return f"{ranks_text(ranks)}:"


def _by_text(texts):
    groups = {}
    for rank, text in sorted(texts.items()):
        groups.setdefault(text, []).append(rank)
    return groups


def _place(longrepr):
    """Return what failures in the same place have in common."""
    if not hasattr(longrepr, "reprtraceback"):
        return str(longrepr)
    chain = getattr(longrepr, "chain", None) or [(longrepr.reprtraceback, longrepr.reprcrash, None)]
    kind = _KIND.match(_message(longrepr))  # a bare assertion has none
    key = [kind[0] if kind else ""]
    for traceback, _, _ in chain:
        for entry in traceback.reprentries:
            where = getattr(entry, "reprfileloc", None)
            key.append((where.path, where.lineno) if where is not None else tuple(entry.lines))
    return tuple(key)


def _message(longrepr):
    crash = getattr(longrepr, "reprcrash", None)
    return crash.message if crash is not None else str(longrepr or "").strip().rpartition("\n")[2]


def _same(message):
    """Return a message without the addresses of objects, which differ between ranks."""
    return _ADDRESS.sub("0x", message)


def _group(group):
    """Return the links of a chain for ranks that have failed in the same place: the traceback of the first."""
    longrepr = next(iter(group.values()))
    message = _message(longrepr)
    others = {r: _message(text) for r, text in group.items() if _same(_message(text)) != _same(message)}
    shown = [r for r in group if r not in others]
    links = [(_text([]), None, _heading(shown))]
    if hasattr(longrepr, "reprtraceback"):
        links += getattr(longrepr, "chain", None) or [(longrepr.reprtraceback, longrepr.reprcrash, None)]
    else:
        links.append((_text([f"{longrepr}\n"]), None, None))
    if others:
        texts = [f"{ranks_text(ranks)}, in the same place: {text}\n" for text, ranks in _by_text(others).items()]
        links.append((_text(["\n", *texts]), None, None))
    return links


def _text(lines):
    return ReprTraceback(reprentries=[ReprEntryNative(lines)] if lines else [], extraline=None, style="native")


def _chain(links, notes, item, message, crash=None):
    """Return a representation that pytest can show and pass on; the last link is what its summary shows."""
    line = item.location[1]
    crash = crash or ReprFileLocation(str(item.path), (line or 0) + 1, message)
    notes = [(_text(["\n", note]), None, None) for note in notes]
    return ExceptionChainRepr([*links, *notes, (_text([]), crash, None)])
