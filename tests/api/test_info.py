"""python -m gormapy info, the table of settings, and GORMAPY_LOG."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.mpirun import ANY, WITHOUT_COPIES, Runner, arguments, environment, mpiexec
from support.programs import beside

import gormapy

program, states = beside(__file__), beside(__file__, "states")

ROOT = Path(__file__).resolve().parents[2]
INFO = (sys.executable, "-m", "gormapy", "info")


def info(*args, env=None, status=0):
    """Run gormapy info without a launcher."""
    done = subprocess.run([*INFO, *args], env=environment(env), capture_output=True, text=True, timeout=30)
    assert done.returncode == status, done
    return done


@pytest.fixture(scope="module")
def of_three(tmp_path_factory):
    """The report of three ranks, as JSON."""
    runner = Runner(tmp_path_factory.mktemp("info"))
    return json.loads(runner.command(3, *INFO, "--json").finish().stdout)


def test_report_of_a_singleton():
    found = json.loads(info("--json").stdout)
    assert found["gormapy"]["version"] == gormapy.__version__
    assert found["python"]["version"] == ".".join(map(str, sys.version_info[:3]))
    assert found["core"]["go"].startswith("go1.")
    assert found["core"]["version"] == gormapy.__version__
    assert found["machine"]["kernel"] == f"Linux {os.uname().release}"
    assert found["machine"]["libc"].startswith("glibc 2.")
    assert found["machine"]["cores_usable"] == len(os.sched_getaffinity(0))
    assert found["mpiexec"]["own"] == mpiexec() or not found["mpiexec"]["own"]
    assert found["state"] == "initialized" and found["error"] == ""
    assert (found["job"]["launcher"], found["job"]["rank"], found["job"]["size"]) == ("none", 0, 1)
    # verbs and ofi are there if the machine has their libraries
    usable = {row["name"]: row["usable"] for row in found["transports"] if row["name"] in ("self", "shm", "tcp")}
    assert usable == {"self": True, "shm": True, "tcp": True}
    assert all(row["text"] for row in found["transports"])


def test_text_has_what_a_bug_report_needs():
    text = info().stdout
    for word in (gormapy.__version__, "go1.", "glibc", os.uname().release, "launcher", "shm", "tcp", "--config"):
        assert word in text, f"{word} is not in:\n{text}"
    assert max(map(len, text.splitlines())) < 200


@pytest.mark.shm("it names the ways of shared memory")
def test_ranks_and_their_ways(of_three):
    assert (of_three["job"]["launcher"], of_three["job"]["size"]) == ("mpiexec", 3)
    assert of_three["missing"] == {}
    ranks = of_three["ranks"]
    assert [row["rank"] for row in ranks] == [0, 1, 2]
    assert len({row["pid"] for row in ranks}) == 3
    for row in ranks:
        others = [r for r in range(3) if r != row["rank"]]
        assert row["transports"][row["rank"]] == "self"
        assert all(row["transports"][r] == "shm" for r in others)
        assert row["ways"]["Allocate"] == row["ways"]["Allocate_shared"] == ["direct"] * 3
        expected = "message" if row["refusals"] else "copy"
        assert row["ways"]["Create"] == ["direct" if r == row["rank"] else expected for r in range(3)]


@pytest.mark.shm("it names the ways of shared memory")
def test_report_is_printed_once(mpirun):
    result = mpirun.command(4, *INFO).finish()
    assert result.stdout.count(f"gormapy {gormapy.__version__}\n") == 1
    rows = re.findall(r"^ +(\d) +(\d+) +\S+ +\d+ +(self|shm) ", result.stdout, re.MULTILINE)
    assert [row[0] for row in rows] == list("0123"), str(result)
    assert result.stderr == ""


@pytest.mark.shm("it names the ways of shared memory")
@pytest.mark.parametrize("forbidden", ["setting", "seccomp"])
def test_why_ranks_cannot_copy(mpirun, tmp_path, forbidden):
    """The way is that of messages, and the reason is the real one."""
    command, env, reason = INFO, {}, "GORMAPY_ONE_COPY=0"
    if forbidden == "setting":
        env = {"GORMAPY_ONE_COPY": "0"}
    else:
        command, reason = (sys.executable, WITHOUT_COPIES, *INFO), "seccomp"
    result = mpirun.command(2, *command, "--json", env=env).finish(expect=ANY)
    if result.status == 77:
        pytest.skip("this kernel installs no seccomp filter")
    assert result.status == 0, str(result)
    found = json.loads(result.stdout)
    for row in found["ranks"]:
        other = 1 - row["rank"]
        assert row["ways"]["Create"][other] == "message"
        assert reason in row["refusals"][str(other)]
    assert reason in next(row["text"] for row in found["transports"] if row["name"] == "shm")


def test_launcher_that_cannot_be_joined():
    env = {"PMIX_NAMESPACE": "prterun-host-1@1", "PMIX_RANK": "0"}
    done = info(env=env, status=1)
    assert "join the job of PRRTE" in done.stdout
    assert "PMIX_NAMESPACE" in done.stdout and "glibc" in done.stdout
    found = json.loads(info("--json", env=env, status=1).stdout)
    assert found["state"] == "not usable" and "join the job of PRRTE" in found["error"]
    assert [row["name"] for row in found["transports"]][:2] == ["self", "shm"]
    # the report is rank 0's; the others say in a line what keeps them
    other = info(env={**env, "PMIX_RANK": "1"}, status=1)
    assert other.stdout == "" and "join the job of PRRTE" in other.stderr


@pytest.mark.slow
def test_rank_that_runs_something_else_is_named(mpirun):
    choose = 'if [ "$GORMAPY_JOB_RANK" = 1 ]; then exec "$0" -c "from gormapy import MPI; import time; time.sleep(60)"; fi; exec "$0" -m gormapy info'
    result = mpirun.command(3, "sh", "-c", choose, sys.executable, timeout=60).finish(expect=1)
    assert re.search(r"NOT HERE: rank 1 \(pid \d+\): running, in no MPI call", result.stdout), str(result)
    assert re.search(r"^ +2 +\d+ ", result.stdout, re.MULTILINE), str(result)


@pytest.mark.one_node("several nodes meet when all ranks have begun MPI")
def test_rank_that_ended_is_named(mpirun):
    choose = 'if [ "$GORMAPY_JOB_RANK" = 1 ]; then exit 0; fi; exec "$0" -m gormapy info'
    result = mpirun.command(2, "sh", "-c", choose, sys.executable, timeout=60).finish(expect=1)
    assert "NOT HERE: rank 1: ended (exit status 0)" in result.stdout, str(result)


def test_report_in_any_state(mpirun):
    mpirun(1, states.report_in_any_state)


def test_child_of_a_rank_says_that_it_is_none(mpirun):
    mpirun(
        2,
        program.child_of_a_rank_says_that_it_is_none,
    )


def test_wrong_usage():
    done = info("--nonsense", status=2)
    assert "usage: python -m gormapy info" in done.stderr


# Settings
# --------


def settings(env=None):
    """Return the table and what is wrong."""
    return json.loads(info("--config", "--json", env=env).stdout)


def test_config_lists_name_default_value_and_meaning():
    rows = settings({"GORMAPY_LOG": "info"})["table"]
    row = next(row for row in rows if row["name"] == "GORMAPY_LOG")
    assert (row["default"], row["value"], row["given"]) == ("warn", "info", True)
    text = info("--config", env={"GORMAPY_LOG": "info"}).stdout
    for row in rows:
        assert row["meaning"] and row["reader"]
        assert re.search(rf"^{row['name']}$", text, re.MULTILINE), text
    assert "info (from the environment)" in text


def test_config_is_printed_once_under_a_launcher(mpirun):
    result = mpirun.command(3, *INFO, "--config").finish()
    assert result.stdout.count("GORMAPY_ONE_COPY\n") == 1


def names_in_sources():
    """Return the names of settings in what is shipped, with a file for each."""
    found = {}
    files = [ROOT / "README.md", ROOT / "Makefile", ROOT / "pyproject.toml"]
    for folder in ("gocore", "pybind", "python/gormapy"):
        for file in (ROOT / folder).rglob("*"):
            generated = any(part.startswith(("_gopy-", "vendor", "__pycache__")) for part in file.parts)
            if (
                file.suffix in (".go", ".py", ".pyi", ".c", ".h")
                and not file.name.endswith("_test.go")
                and not generated
            ):
                files.append(file)
    for file in files:
        for name in re.findall(r"\bGORMAPY_[A-Z0-9_]*[A-Z0-9]\b", file.read_text(encoding="utf-8")):
            found.setdefault(name, file)
    return {name: file for name, file in found.items() if not name.endswith("_H")}  # those are include guards


@pytest.mark.skipif(not (ROOT / "gocore").is_dir(), reason="there are no sources beside the tests")
def test_every_setting_is_in_the_table():
    found = settings()
    table = {row["name"] for row in found["table"]}
    used = {name: file for name, file in names_in_sources().items() if not name.startswith(tuple(found["marks"]))}
    assert set(used) >= {"GORMAPY_ONE_COPY", "GORMAPY_LOG", "GORMAPY_BUILD_TOOLCHAIN"}, "nothing was searched"
    for name, file in used.items():
        assert name in table, f"{file} names {name}, which gocore/settings does not list"
    for name in table:
        assert name in used, f"gocore/settings lists {name}, which nothing reads"
    readers = "".join(file.read_text() for file in ROOT.glob("gocore/**/*.go") if not file.name.endswith("_test.go"))
    assert not re.search(r'Getenv\("GORMAPY_(?!JOB_)', readers), "settings are read through gocore/settings"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("GORMAPY_LOGG", "GORMAPY_LOG"),
        ("gormapy_log", "GORMAPY_LOG"),
        ("GORMAPY_ONECOPY", "GORMAPY_ONE_COPY"),
        ("GORMPY_ONE_COPY", "GORMAPY_ONE_COPY"),
        ("GORMAPY_QUANTUM_FOAM", None),
    ],
)
def test_variable_that_is_no_setting(name, near):
    env = {name: "1"}
    assert settings(env)["unknown"] == {name: near}
    warning = re.search(r"WARNING: (.*)", info(env=env).stdout)[1]
    assert name in warning and (near or "") in warning


def test_value_that_a_setting_cannot_have(mpirun):
    found = info(env={"GORMAPY_ONE_COPY": "maybe"})
    assert "WARNING: GORMAPY_ONE_COPY" in found.stdout and '"maybe"' in found.stdout
    result = mpirun(2, program.value_that_a_setting_cannot_have, env={"GORMAPY_LOG": "verbose"})
    assert result.stderr.count("GORMAPY_LOG") == 1, "rank 0 says it, once"
    assert "error, warn, info, debug" in result.stderr


# GORMAPY_LOG
# -----------

LINE = re.compile(r"^gormapy \d\d:\d\d:\d\d\.\d{6} (?:rank \d+|pid \d+) (error|warn|info|debug) (\w+): (.+)$")


@pytest.mark.shm("it names the ways of shared memory")
def test_log_tells_what_the_core_decides(mpirun):
    result = mpirun(2, program.program, env={"GORMAPY_LOG": "debug"})
    lines = result.stderr.splitlines()
    assert all(LINE.match(line) for line in lines), str(result)
    for rank in (0, 1):
        mine = "\n".join(line for line in lines if f" rank {rank} " in line)
        for decision in (
            rf"info boot: rank {rank} of 2, of a job started by mpiexec",
            r"debug boot: claimed rank",
            r"debug fabric: transport shm leads to 1 of 2",
            r"debug engine: progress engine .* start",
            r"debug rma: window \d+ made by Win.Create of 2 ranks, 16 bytes .* direct to 1, (copy|message) to 1",
            r"debug rma: window \d+ made by Win.Allocate .* direct to 2",
            r"debug rma: window \d+ freed",
            r"info mpi: reset to generation 2 begun",
            r"info mpi: reset to generation 2 done",
            r"debug mpi: finalized",
        ):
            assert re.search(decision, mine), f"{decision} is not in the lines of rank {rank}:\n{mine}"


@pytest.mark.slow
def test_log_names_peers_that_end(mpirun, tmp_path):
    file = tmp_path / "log.txt"
    # Of a rank on another node that was the last of it, only the end of the node is known.
    said = r"rank 1 info engine: rank 0( \(pid \d+\))? (has ended|can't be reached any more)"
    source = f"""
        import os, re, time
        from gormapy import MPI
        if MPI.COMM_WORLD.rank == 0:
            os._exit(0)
        end = time.monotonic() + 20
        while time.monotonic() < end and not re.search({said!r}, open({str(file)!r}).read()):
            time.sleep(0.02)
    """
    result = mpirun(2, source, env={"GORMAPY_LOG": "info", "GORMAPY_LOG_FILE": str(file)})
    assert re.search(said, file.read_text()), f"{result}\n{file.read_text()}"


@pytest.mark.parametrize("level", [None, "error", "warn", "info"])
def test_log_levels(mpirun, level):
    result = mpirun(2, program.program, env={"GORMAPY_LOG": level})
    levels = {LINE.match(line)[1] for line in result.stderr.splitlines()}
    assert levels == ({"info"} if level == "info" else set()), str(result)


def test_log_file(mpirun, tmp_path):
    file = tmp_path / "log.txt"
    result = mpirun(3, program.program, env={"GORMAPY_LOG": "DEBUG", "GORMAPY_LOG_FILE": str(file)})
    assert result.stderr == ""
    lines = file.read_text().splitlines()
    assert all(LINE.match(line) for line in lines), lines
    assert {line.split()[3] for line in lines} == {"0", "1", "2"}
    result = mpirun(1, program.program, env={"GORMAPY_LOG_FILE": str(tmp_path / "no" / "folder")})
    assert "can't be opened" in result.stderr


def test_log_with_standard_error_closed(mpirun, tmp_path):
    """A line that nobody can read is no reason to end."""
    command = ["sh", "-c", 'exec "$0" "$@" 2>&-', sys.executable, *arguments(program.program, tmp_path)]
    result = mpirun.command(2, *command, env={"GORMAPY_LOG": "debug"})
    assert result.finish().stderr == ""
