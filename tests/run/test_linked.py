"""What needs the C library of an MPI says so when it is imported by `python -m gormapy.run`."""

import shutil
import subprocess
import sys
import sysconfig

import pytest
from support.mpirun import environment

from gormapy import _linked

SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


@pytest.fixture
def imports(tmp_path):
    """Return a function that imports a name by gormapy.run with a folder on the path, and returns what is printed."""

    def run(name, then=""):
        code = f"try:\n    import {name}\nexcept ImportError as error:\n    print(type(error).__name__, error)\n{then}"
        command = [sys.executable, "-m", "gormapy.run", "-c", code]
        env = environment({"PYTHONPATH": f"{environment()['PYTHONPATH']}:{tmp_path}"})
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


def package(folder, name, **files):
    """Make a package, with files of these names and bytes."""
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text("print('imported')\n")
    for file, content in files.items():
        (folder / name / file).with_suffix(SUFFIX).write_bytes(content)


@pytest.mark.parametrize("name", _linked.PACKAGES)
def test_a_package_that_calls_a_c_library(imports, tmp_path, name):
    package(tmp_path, name)
    said = imports(name)
    assert said.startswith(f"ImportError {name} calls the C library of an MPI"), said
    assert "with mpi4py" in said


@pytest.mark.parametrize("name", _linked.PACKAGES)
def test_a_package_that_is_not_installed(imports, name):
    assert imports(name) == f"ModuleNotFoundError No module named '{name}'"


def test_a_part_of_a_package(imports, tmp_path):
    package(tmp_path, "petsc4py", PETSc=b"")
    assert imports("petsc4py.PETSc").startswith("ImportError petsc4py calls the C library of an MPI")


def test_parallel_h5py(imports, tmp_path):
    package(tmp_path, "h5py", h5p=b"...mpi4py.MPI...")
    said = imports("h5py")
    assert said.startswith("ImportError h5py calls the C library of an MPI"), said
    assert "built without MPI" in said


def test_serial_h5py(imports, tmp_path):
    package(tmp_path, "h5py", h5p=b"...")
    assert imports("h5py") == "imported"


ASKS = """
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "asks", NULL, -1, NULL};
PyMODINIT_FUNC PyInit_asks(void) {
  PyObject *MPI = PyImport_ImportModule("mpi4py.MPI"), *capi = MPI ? PyObject_GetAttrString(MPI, "__pyx_capi__") : NULL;
  return capi ? PyModule_Create(&module) : NULL; /* as Cython's code does */
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_library_that_asks_for_the_c_interface_of_mpi4py(imports, tmp_path):
    (tmp_path / "asks.c").write_text(ASKS)
    cc = ["cc", "-shared", "-fPIC", "-w", f"-I{sysconfig.get_path('include')}"]
    subprocess.run([*cc, "-o", tmp_path / "asks.so", tmp_path / "asks.c"], check=True)
    assert "calls the C library of an MPI" in imports("asks")


@pytest.mark.parametrize("name", ["__pyx_capi__", "no_such_name"])
def test_a_program_that_looks_for_a_name(imports, name):
    assert imports("mpi4py.MPI", f"print(hasattr(mpi4py.MPI, {name!r}))") == "False"


MODULE = """
#include <Python.h>
extern int MPI_Init(int *, char ***);
void *volatile called = CALLED;
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "linked", TEXT, -1, NULL};
PyMODINIT_FUNC PyInit_linked(void) { return PyModule_Create(&module); }
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize(
    ("text", "called", "refused"),
    [("of mpi4py.MPI", "(void *)MPI_Init", True), ("", "(void *)MPI_Init", False), ("of mpi4py.MPI", "NULL", False)],
    ids=["mpi4py over an MPI", "an MPI", "mpi4py"],
)
def test_an_extension_module(imports, tmp_path, text, called, refused):
    (tmp_path / "mpi.c").write_text("int MPI_Init(int *a, char ***b) { return 0; }\n")
    (tmp_path / "linked.c").write_text(MODULE.replace("TEXT", f'"{text}"').replace("CALLED", called))
    cc = ["cc", "-shared", "-fPIC", "-w", f"-I{sysconfig.get_path('include')}", "-Wl,--as-needed"]
    library = [tmp_path / "linked.c", f"-L{tmp_path}", f"-Wl,-rpath,{tmp_path}", "-lmpi"]
    subprocess.run([*cc, "-o", tmp_path / "libmpi.so", tmp_path / "mpi.c"], check=True)
    subprocess.run([*cc, "-o", tmp_path / f"linked{SUFFIX}", *library], check=True)
    assert (b"libmpi.so" in _linked.needed(tmp_path / f"linked{SUFFIX}")) == (called != "NULL")
    said = imports("linked")
    assert said.startswith("ImportError linked calls the C library of an MPI") if refused else said == "", said


def test_what_is_no_elf_file_needs_nothing(tmp_path):
    for content in (b"", b"\x7fELF", b"\x7fELF\x02\x01" + bytes(100), b"text" * 100):
        (tmp_path / "file").write_bytes(content)
        assert _linked.needed(tmp_path / "file") == []
    assert _linked.needed(tmp_path / "nowhere") == []
