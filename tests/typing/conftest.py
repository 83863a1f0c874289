"""What the tests of types share: the stubs of mpi4py, and where checkers find packages."""

import shutil
from types import SimpleNamespace

import pytest
import typecheckers
from support import mpi4py


@pytest.fixture(scope="session")
def mpi4py_source(tmp_path_factory):
    """Return the folder of mpi4py's source distribution."""
    return mpi4py.unpacked(tmp_path_factory.mktemp("mpi4py"))


@pytest.fixture(scope="session")
def packages(mpi4py_source, tmp_path_factory):
    """Return, for mpi4py and gormapy, the folders in which a checker finds them: of mpi4py, only stubs are there."""
    folder = tmp_path_factory.mktemp("stubs")
    stubs = mpi4py_source / "src" / "mpi4py"
    for path in [*stubs.rglob("*.pyi"), stubs / "py.typed"]:
        target = folder / "mpi4py" / path.relative_to(stubs)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return SimpleNamespace(stubs=folder / "mpi4py", mpi4py=[folder], gormapy=[typecheckers.ROOT / "python"])
