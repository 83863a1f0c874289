"""The line that is shown while a cell runs: for how long it has, and which rank does what."""

from .._resident.diagnosis import Report
from .._resident.errors import ranks_text


def line(seconds, sightings, silent=()):
    """Return the line for the last known states of the ranks; ``silent``: ranks that do not answer."""
    report = Report(sightings)
    groups = {}
    for rank, sighting in report.sightings.items():
        groups.setdefault(_does(report, rank, sighting, rank in silent), []).append(rank)
    parts = [f"{ranks_text(ranks)} {one if len(ranks) == 1 else many}" for (one, many), ranks in groups.items()]
    return f"{_duration(seconds)}: {'; '.join(parts)}"


def _duration(seconds):
    seconds = int(seconds)
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min {seconds % 60} s"


def _does(report, rank, sighting, silent):
    """Return what a rank does, and the same of several."""
    if sighting.failed:
        return ("has failed", "have failed")
    if not sighting.running:
        return ("has finished", "have finished")
    if silent or not sighting.answer:
        return ("does not answer", "do not answer")
    if sighting.wait is not None:
        targets, any_rank = report.targets[rank]
        who = f" for {'any of ' if any_rank and len(targets) > 1 else ''}{ranks_text(targets)}" if targets else ""
        rest = f"in {report.call(rank)}{who}"
        return (f"waits {rest}", f"wait {rest}")
    place = sighting.answer.get("place")
    rest = f" {place['label']}" if place else ""
    return (f"runs{rest}", f"run{rest}")
