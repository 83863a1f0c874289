"""mpi4py's own demonstrations and tests, with gormapy's name in place of mpi4py's.

They have no annotations, so that most of what a checker says about them is about themselves. It may say no more with
gormapy's types than it says with mpi4py's stubs.
"""

import re

import pytest
import typecheckers

# Lines of the version that support.mpi4py names.
ACCEPTED = {
    ("test_objmodel.py", 338): "gormapy has no C interface of Cython",
    # Use attributes of executors that are private: mpi4py's stubs say nothing of them.
    ("demo_futures_test_futures.py", 410): "_pool",
    ("demo_futures_test_futures.py", 514): "_pool",
    ("demo_futures_test_futures.py", 515): "_pool",
}
# What a checker says of mix-ins for test cases, which are on most lines of the tests.
MIXIN = re.compile(r"""["'](BaseTest\w*|\w*Mixin)\*?["']""")


def copied(source, package, folder):
    """Copy the programs into a folder, with the name of a package; say how many they are."""
    folder.mkdir()
    programs = [*source.glob("demo/**/*.py"), *source.glob("test/*.py")]
    for path in programs:
        name = path.name
        if path.parent.name != "test":  # demonstrations in several folders have the same names
            name = "_".join(re.sub(r"\W", "_", part) for part in path.relative_to(source).with_suffix("").parts) + ".py"
        (folder / name).write_text(re.sub(r"\bmpi4py\b", package, path.read_text(encoding="utf-8")))
    return len(programs)


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_no_more_errors_than_with_mpi4py(checker, mpi4py_source, packages, tmp_path):
    errors = {}
    for package in ("mpi4py", "gormapy"):
        folder = tmp_path / f"demos-of-{package}"
        assert copied(mpi4py_source, package, folder) > 150
        found = typecheckers.CHECKERS[checker]().check(folder, getattr(packages, package), strict=False)
        about_calls = {place: [text for text in texts if not MIXIN.search(text)] for place, texts in found.items()}
        errors[package] = {place: texts for place, texts in about_calls.items() if texts}
    assert len(errors["mpi4py"]) < 1000  # of more than 30,000 lines
    more = {place: errors["gormapy"][place] for place in errors["gormapy"].keys() - errors["mpi4py"].keys()}
    unexpected = {place: texts for place, texts in more.items() if place not in ACCEPTED}
    assert not unexpected, typecheckers.report(unexpected)
