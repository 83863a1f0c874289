"""The checker on the programs with labels: each bad one is found, with its class and its lines; no clean one is."""

import json

import labels
import pytest
from support.mpirun import ANY

pytestmark = [
    pytest.mark.one_node("mpiexec --check needs ranks on one host"),
    pytest.mark.shm("the tests choose what ranks are reached by"),
]

# What the checker does not find, or not in each run: why.
MISSED = {
    "aliases:bytearray_stored": "memory that is not NumPy's is not watched",
    "aliases:array_of_python_loaded": "memory that is not NumPy's is not watched",
    "algorithms:sum_loaded_before_all_have_added": "the lock orders all, if rank 0 is the last to get it",
    "hybrid:barrier_in_one_iteration_and_load_in_another": "the lock of a pool orders the two in this run",
    "orders:exposure_tested_and_loaded_anyway": "a message orders the load before the put",
    "memory:shared_memory_loaded_after_the_free": "another rank's part is not watched once the window is freed",
}


def alone(label):
    """Return whether a program needs a job of its own: it hangs or fails, or leaves something open."""
    return bool(label.flags & {"hangs", "raises", "leaves"})


def together():
    """Return programs of one module and number of ranks that run in one job, as parameters."""
    groups = {}
    for label in labels.every():
        if not alone(label):
            groups.setdefault((label.file, label.n), []).append(label)
    return [pytest.param(n, group, id=f"{file.stem}-{n}") for (file, n), group in groups.items()]


def check(mpirun, tmp_path, n, names, file, timeout=60, fabric="shm"):
    """Run programs in a job that is checked, and return what was found."""
    out = tmp_path / "findings.json"
    driver = labels.PROGRAMS.parent / "driver.py"
    launcher = [f"--check=exact,json:{out}"]
    env = {"GORMAPY_FABRIC": fabric}
    result = mpirun(n, driver, str(file), *names, launcher=launcher, expect=ANY, timeout=timeout, env=env)
    assert "Exception ignored" not in result.stderr, result  # of the checker's functions that the shim calls
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert records[0] == {"gormapy_check": 1, "ranks": n}
    assert records[-1]["end"]
    return [record for record in records if "class" in record and not record.get("contested")]


def of(label, findings):
    """Return the findings that are about the lines of a program."""
    lines = [other.line for other in labels.of(label.file) if other.line > label.line]
    end = min(lines, default=1 << 30)
    inside = [
        finding
        for finding in findings
        if any(
            access["file"] == str(label.file) and label.line < access["line"] < end for access in finding["accesses"]
        )
    ]
    return inside


def is_of_label(label, finding):
    """Return whether a finding names the lines that a label marks."""
    named = [access["line"] for access in finding["accesses"]]
    first, second = label.lines(1), label.lines(2)
    if finding["class"] == "collective-mismatch":  # which of the two is wrong, nobody can say
        return set(named) <= {*first, *second}
    if finding["kind"] == "misuse":
        return named[0] in first
    pairs = [(a, b) for a in first for b in (second or first)]
    return tuple(named) in pairs or tuple(named[::-1]) in pairs


def judge(label, findings):
    """Compare what was found in a program with its label; return what is wrong, or None."""
    found = of(label, findings)
    short = [(f["class"], [(a["call"], a["line"]) for a in f["accesses"]]) for f in found]
    if label.verdict == "clean":
        return f"{label} is clean: {short}" if found else None
    if label.verdict == "contested":
        return None
    hits = [finding for finding in found if finding["class"] in label.classes]
    if str(label) in MISSED:
        return None
    if not hits:
        return f"{label} is {label.classes}: {short}"
    if not any(is_of_label(label, finding) for finding in hits):
        return f"{label}: lines {label.lines(1)} and {label.lines(2)}: {short}"
    others = [s for s, finding in zip(short, found) if finding["class"] not in label.classes]
    return f"{label}: {others} besides" if others else None


@pytest.mark.parametrize(("n", "group"), together())
def test_programs(mpirun, tmp_path, n, group):
    findings = check(mpirun, tmp_path, n, [label.name for label in group], group[0].file)
    wrong = [said for label in group if (said := judge(label, findings))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("n", "group"), together())
def test_programs_over_tcp(mpirun, tmp_path, n, group):
    findings = check(mpirun, tmp_path, n, [label.name for label in group], group[0].file, fabric="tcp")
    # a load of a page on which data has just arrived is not seen, but nothing arrives in an origin
    seen = [label for label in group if of(label, findings) or label.classes == ("origin-reuse",)]
    wrong = [said for label in seen if (said := judge(label, findings))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("label", [pytest.param(label, id=str(label)) for label in labels.every() if alone(label)])
def test_program(mpirun, tmp_path, label):
    findings = check(mpirun, tmp_path, label.n, [label.name], label.file, timeout=40)  # those that hang are ended
    wrong = judge(label, findings)
    assert not wrong, wrong
