"""The docstrings of gormapy.MPI teach: sentence, buffers, completion, errors, examples that run, section of the standard.

`pytest -s` prints how many objects have what.
"""

import ast
import importlib.util
import inspect
import pydoc
import re
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from support.programs import beside

program = beside(__file__)

# Calls in which all ranks of a communicator, a window or a file, or both groups, take part.
COLLECTIVE = """
Win.Create Win.Allocate Win.Allocate_shared Win.Create_dynamic Win.Free Win.Set_info Win.Fence
Comm.*arrier* Comm.*cast* Comm.*ather* Comm.*catter* Comm.*toall* Comm.*educe* Intracomm.*can Intracomm.*can_init
Comm.Clone Comm.Dup* Comm.Idup* Comm.Create Comm.Split* Comm.Free Comm.Disconnect Comm.Set_info Comm.Agree Comm.Iagree Comm.*hrink
Intracomm.Create_* Intracomm.Spawn* Intracomm.Accept Intracomm.Connect Intercomm.Create_from_groups Intercomm.Merge
Topocomm.*eighbor_all* Cartcomm.Sub
File.Open File.Close File.Set_size File.Preallocate File.Set_info File.Set_view File.Seek_shared File.Set_atomicity
File.Sync File.*_all File.*_begin File.*_end File.*_ordered
Init Init_thread Finalize
""".split()
NOT_COLLECTIVE = ["Intracomm.Create_keyval", "Intracomm.Create_errhandler", "Comm.Create_keyval"]

# Names of arguments that an operation reads or writes, and what says until when, or that it is done.
BUFFERS = {"buf", "origin", "result", "sendbuf", "recvbuf", "obj", "sendobj", "inbuf", "outbuf", "inoutbuf"}
UNTIL = re.compile(
    r"(may|must not) be (changed|touched|reused)|undefined, and must not|has the data|is copied|are copied|are pickled"
    r"|is pickled|the message that came is there|The data must not be|which the buffer keeps alive"
)
# These are over when they return, and start nothing.
AT_ONCE = ["Datatype.*", "Op.*", "buffer.*", "Pickle.*", "*.recv", "*.irecv", "Grequest.complete"]

SECTION = re.compile(r"MPI 4\.1, sections? \d+(\.\d+)*(, \d+(\.\d+)*)*( and \d+(\.\d+)*)?\.$")
NOT_OF_MPI = re.compile(r"MPI has no such|not in MPI 4\.1|one of MPI 5\.0|For packages that work on mpi4py")
# Attributes and calls of these classes are gormapy's and mpi4py's own.
NOT_CLASSES_OF_MPI = ["buffer", "buffer.*", "Pickle", "Pickle.*"]


# Their docstrings have the same form. That of numba is checked where Numba is installed.
MODULES = """
gormapy gormapy.slots gormapy.rdma gormapy.notify gormapy.futures gormapy.aio gormapy.launch gormapy.run gormapy.info
gormapy.trace gormapy.plot gormapy.shared gormapy.mt19937 gormapy.util.dtlib gormapy.util.pkl5 gormapy.util.pool
gormapy.util.sync gormapy.typing gormapy.magic
""".split()


def named(name, patterns):
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def live(mpi, name):
    """Return what has the docstring of a name, as CLASS.MEMBER, CLASS or FUNCTION."""
    owner, _, member = name.rpartition(".")
    return inspect.getattr_static(getattr(mpi, owner), member) if owner else getattr(mpi, name)


@pytest.fixture(scope="module")
def mpi():
    from gormapy import MPI

    return MPI


@pytest.fixture(scope="module")
def docstrings(mpi):
    """{name: docstring without signature} of what has one: classes, functions, and members by the class that has them."""
    from gormapy.MPI.texts import TEXTS

    found = {}
    for owner, texts in TEXTS.items():
        for member, text in texts.items():
            name = member if owner in ("", "class") else f"{owner}.{member}"
            found[name] = text if owner == "class" else text.partition("\n\n")[2]
            documented = live(mpi, name)
            assert getattr(documented, "__func__", documented).__doc__ == text, name
    assert len(found) > 600
    return found


@pytest.fixture(scope="module")
def constants(mpi):
    """{name: docstring} of all constants."""
    from gormapy.MPI.constanttexts import CONSTANTS

    vars(mpi).pop("constanttexts", None)  # as if it had not been imported; another test may have had it imported before
    return CONSTANTS


def calls(mpi, docstrings):
    """Yield name, docstring and names of parameters of each call."""
    for name, doc in docstrings.items():
        obj = live(mpi, name)
        if not inspect.isclass(obj) and not isinstance(obj, property):
            yield name, doc, set(inspect.signature(getattr(obj, "__func__", obj)).parameters)


def test_the_first_sentence(docstrings):
    for name, doc in docstrings.items():
        first, _, rest = doc.partition("\n\n")
        assert re.match(r"[A-Z].*\.$", first) and "\n" not in first, name
        assert doc.endswith("."), name
        assert rest or named(name, ["buffer.*", "Pickle.*"]), f"{name} has its sentence only"
        assert not re.search("[^ -~\n]", doc), f"{name} has other characters than those of ASCII"


def test_calls_begin_with_an_imperative(mpi, docstrings):
    for name, doc, _ in calls(mpi, docstrings):
        verb = doc.split()[0].strip(":,")
        assert not verb.endswith(("ing", "ed")) and verb not in ("The", "A", "An", "As", "Whether"), f"{name}: {verb}"


def test_collective_calls_say_so(docstrings):
    told = {name for name, doc in docstrings.items() if re.search(r"(^|\.\s+)Collective\s+over", doc)}
    expected = {name for name in docstrings if named(name, COLLECTIVE) and not named(name, NOT_COLLECTIVE)}
    assert expected - told == set()
    assert told - expected == set()


def test_buffers_may_be_touched_from_when_on(mpi, docstrings):
    for name, doc, parameters in calls(mpi, docstrings):
        if parameters & BUFFERS and not named(name, AT_ONCE):
            assert UNTIL.search(doc.replace("\n", " ")), name


def test_the_section_of_the_standard(docstrings):
    for name, doc in docstrings.items():
        if not named(name, NOT_CLASSES_OF_MPI):
            assert SECTION.search(doc) or NOT_OF_MPI.search(doc.replace("\n", " ")), name


def test_errors_by_class(mpi, docstrings):
    classes = {name for name in vars(mpi) if name.startswith("ERR_")}
    for name, doc in docstrings.items():
        assert set(re.findall(r"\bERR_[A-Z_]+", doc)) <= classes | {"ERR_"}, name
    for name, doc, _ in calls(mpi, docstrings):
        if named(name, COLLECTIVE) or name.startswith("Win."):
            assert "Errors: " in doc or named(name, ["Init", "Finalize", "Comm.free", "File.free"]), name


def test_examples_use_what_they_are_of(docstrings):
    for name, doc in docstrings.items():
        _, found, example = doc.partition(">>> ")
        owner, _, member = name.rpartition(".")
        if found and owner and not member.startswith("__"):
            assert re.search(rf"\b{member}\b", example), name


def test_examples_give_what_they_show(mpirun):
    assert int(mpirun(1, program.examples_give_what_they_show, ["gormapy.MPI"]).lines[0]) > 60


@pytest.mark.shm("executors spawn processes, which communicate through shared memory")
def test_examples_of_other_modules_give_what_they_show(mpirun):
    assert int(mpirun(1, program.examples_give_what_they_show, MODULES).lines[0]) > 3


def test_docstrings_of_other_modules(mpirun):
    modules = MODULES + ["gormapy.numba"] * (importlib.util.find_spec("numba") is not None)
    lines = mpirun(1, program.docstrings_have_the_form, modules).lines
    assert [line for line in lines if not line.isdecimal()] == []
    assert max(int(line) for line in lines) > 250


def test_errors_are_those_of_the_docstrings(mpirun, docstrings):
    raised = [line.split() for line in mpirun(1, program.errors_are_raised).lines]
    assert len(raised) > 70
    errors = {name: docstrings[name].partition("Errors: ")[2].partition(">>> ")[0] for name, _ in raised}
    assert [f"{name}: {error}" for name, error in raised if not re.search(rf"\b{error}\b", errors[name])] == []


def test_constants_have_docstrings(mpi, constants):
    public = {name for name, value in vars(mpi).items() if not name.startswith("_")}
    public -= {name for name in public if inspect.isclass(getattr(mpi, name)) or inspect.isroutine(getattr(mpi, name))}
    assert set(constants) == public
    for name, text in constants.items():
        first, _, section = text.replace(".\n\n", ".\n\n\n").partition("\n\n\n")
        assert first[0].isupper() and first.endswith("."), name
        assert not section or SECTION.match(section), name
        value = getattr(mpi, name)
        if isinstance(value, (mpi.Comm, mpi.Op, mpi.Win, mpi.Datatype, mpi.Info)) and name not in mpi_aliases(mpi):
            assert value.__doc__ == text, name
    assert not hasattr(mpi, "constanttexts")
    assert mpi.Intracomm(mpi.COMM_SELF).__doc__ == mpi.Intracomm.__doc__  # no constant


def mpi_aliases(mpi):
    """Return the names of objects that have another name, too."""
    seen = Counter(id(value) for value in vars(mpi).values())
    return {name for name, value in vars(mpi).items() if seen[id(value)] > 1}


def test_the_stub_has_the_docstrings(mpi, docstrings, constants):
    body = ast.parse(Path(mpi.__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    found = attributes(body)
    for node in body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = ast.get_docstring(node)
            found |= {f"{node.name}.{member}": doc for member, doc in attributes(node.body).items()}
    for name, doc in (docstrings | constants).items():
        assert found[name] == doc, name


def attributes(body):
    """Return the docstrings of functions and variables in a body by their names."""
    found = {}
    for node, following in zip(body, [*body[1:], None]):
        if isinstance(node, ast.FunctionDef):
            found[node.name] = ast.get_docstring(node)
        elif isinstance(node, ast.AnnAssign) and isinstance(following, ast.Expr):
            found[node.target.id] = inspect.cleandoc(following.value.value)
    return found


def test_help_shows_them(mpi):
    def shown(obj):
        return pydoc.render_doc(obj, renderer=pydoc.plaintext)

    assert "`origin` may be changed after Flush_local" in shown(mpi.Win.Put)
    assert "Operation: the sum." in shown(mpi.SUM)
    assert "Communicator of one group of ranks." in shown(mpi.Intracomm(mpi.COMM_SELF))


def test_ipython_shows_them(mpi):
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    shell.push({"MPI": mpi})
    assert "`origin` may be changed after Flush_local" in shell.object_inspect("MPI.Win.Put")["docstring"]
    assert shell.object_inspect("MPI.SUM")["docstring"].startswith("Operation: the sum.")


def test_how_much_docstrings_say(mpi, docstrings, constants):
    """Print how many objects have what."""
    table = Counter()
    for doc in docstrings.values():
        flat = doc.replace("\n", " ")
        table["classes, calls and attributes"] += 1
        table["more than a sentence"] += "\n\n" in doc
        table["section of MPI 4.1"] += bool(SECTION.search(doc))
        table["beyond MPI 4.1, which they say"] += not SECTION.search(doc)
        table["errors by class"] += "Errors: " in doc
        table["example that runs"] += ">>> " in doc
        table["collective"] += "Collective over" in flat
    parameters = [parameters for _, _, parameters in calls(mpi, docstrings)]
    table["calls"] = len(parameters)
    table["calls with buffers or objects"] = sum(bool(names & BUFFERS) for names in parameters)
    table["constants"] = len(constants)
    print(*(f"\n{count:5} {what}" for what, count in table.items()))
    assert table["more than a sentence"] > 580
