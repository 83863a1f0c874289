"""What makes the site's pages: structure, links, docstrings, tables."""

import ast
import builtins
import importlib
import inspect
import pkgutil
import re
import textwrap
from pathlib import Path

import pytest
from manual import docstrings, glossary, links, measurements, reference, structure

ROOT = Path(__file__).resolve().parents[2]
PARTS = ["Start", "Tutorial", "How-to", "Reference", "Architecture", "Measurements"]


def test_each_page_belongs_to_one_part():
    parts = structure.parts()
    assert [part.title for part in parts] == PARTS
    named = [(ROOT / "docs" / page).resolve() for part in parts for page in part.pages]
    assert len(named) == len(set(named))
    assert {page for page in named if page.parent == ROOT / "docs"} == set((ROOT / "docs").glob("*.md")) - {
        ROOT / "docs" / "README.md"
    }
    assert all(page.exists() for page in named)


def test_links_out_of_the_site_become_text():
    pages = {"README.md": "index.md", "docs/a.md": "docs/a.md", "docs/b.md": "docs/b.md"}
    text = "[b](b.md#x) [start](../README.md) [the tests](../tests/README.md) [gocore/](../gocore) [out](https://a.b/c)"
    there = "[b](b.md#x) [start](../index.md) the tests (`tests/README.md`) `gocore` [out](https://a.b/c)"
    assert links.rewrite(text, "docs/a.md", pages) == there


def test_links_in_code_stay():
    text = "`[a](x.go)` and\n\n```python\n[a](x.go)\n```\n\n[`a`](x.go)"
    assert links.rewrite(text, "docs/a.md", {}) == text.replace("[`a`](x.go)", "`a` (`docs/x.go`)")


def converted(doc):
    return "\n".join(docstrings.converted(inspect.cleandoc(doc).splitlines())).strip()


def test_a_docstring_is_plain_text():
    assert (
        converted("""Put(self, origin: BufSpec) -> None

        Copy *args, 2 * 3 of name_ and a|b.""")
        == r"Copy \*args, 2 \* 3 of name\_ and a\|b."
    )
    assert converted("The `rank`s and *all* of ``x * y``.") == r"The `rank`\ s and *all* of ``x * y``."
    assert converted("A `b\nc` d.\ne") == "A `b c` d.\ne"


def test_an_indented_block_is_a_program():
    text = converted("""Do it:

            import gormapy

            gormapy.reset()

        Then rest.""")
    program = ".. code-block:: python\n\n   import gormapy\n\n   gormapy.reset()"
    assert text == f"Do it:\n\n{program}\n\nThen rest."
    lines = ["Run", "", "    mpiexec -n 4 python a.py", "", "and see."]
    program = [".. code-block:: shell", "", "   mpiexec -n 4 python a.py"]
    assert docstrings.converted(lines) == ["Run", "", *program, "", "and see.", ""]
    assert converted("A.\n\n>>> 2 * 3\n6\n\nB.") == "A.\n\n.. code-block:: pycon\n\n   >>> 2 * 3\n   6\n\nB."
    assert docstrings.language("a ── b") == "text"


def test_headings_lists_and_named_items():
    assert converted("A.\n\nParameters\n----------\nsize : int\n    Its size.") == (
        "A.\n\n.. rubric:: Parameters\n\nsize : int\n    Its size."
    )
    assert converted("A.\n\n# More\n\nText.") == "A.\n\n.. rubric:: More\n\nText."
    assert converted("Keys:\n- one\n- two") == "Keys:\n\n- one\n- two"
    assert converted("A.\n\ncalls: one,\n    two.\nends: three.") == (
        "A.\n\ncalls\n    one,\n    two.\nends\n    three."
    )
    assert converted("One line\n  and its end.") == "One line\nand its end."


def test_a_summary_is_the_first_sentence():
    assert docstrings.summary("f(a: int) -> None\n\nGive it\n  back. Then more.\n\nRest.") == "Give it back."
    assert docstrings.summary("group: Group\n\nThe group.") == "The group."
    assert docstrings.summary("Measurements: ``python -m x``.\n\nMore.") == "Measurements: ``python -m x``."
    assert docstrings.summary("See section 1.2 of it; no more") == "See section 1.2 of it; no more"


def test_every_module_has_a_page():
    import gormapy

    there = {f"gormapy.{module.name}" for module in pkgutil.iter_modules(gormapy.__path__) if module.name[0] != "_"}
    # MPI has many pages; docs/programs.md has the examples, docs/notebooks.md the magic.
    assert there == {name for name in reference.MODULES if name.count(".") == 1} | {
        "gormapy.MPI",
        "gormapy.examples",
        "gormapy.magic",
    }


def test_constants_have_the_texts_of_the_stub():
    found = reference.stub('A: Final[int]\n"""First.\n\nMore."""\nB: Final[int]\nC: Final[int]\nD: Final[Op]\n')
    assert found.constants == {"int": ["A", "B", "C"], "Op": ["D"]}
    page = reference.constants_page(found)
    assert ".. py:data:: A\n\n   First.\n\n   More.\n" in page
    assert ".. py:data:: B\n             C\n" in page


def test_the_glossary_names_its_own_terms():
    text = "# G\n\n| term | meaning | nearest | places |\n|---|---|---|---|\n"
    text += "| **a b** | It has *C*s, no *d*. | x | `y` |\n| **C** | Z. | x | `y` |\n"
    page = glossary.page(text)
    assert "\na b\n  It has {term}`C <c>`s, no *d*." in page and "\nC\n  Z." in page
    with pytest.raises(SystemExit):
        glossary.page(text + "| **d** | too few | x |\n")


def test_recipes_have_a_lexer_that_knows_them():
    """A word that the lexer does not know is a warning of Sphinx, which ends make docs."""
    extension = pytest.importorskip("manual.extension")
    text = (ROOT / "docs" / "containers" / "gormapy.def").read_text(encoding="utf-8")
    tokens = list(extension.ApptainerLexer().get_tokens(text))
    assert [value for kind, value in tokens if "Error" in str(kind)] == []
    headings = [value for kind, value in tokens if "Heading" in str(kind)]
    assert headings == ["%arguments", "%files", "%post", "%runscript"]


def test_measurements_are_read_as_they_were_printed():
    found = {path.name: measurements.read(path) for path in measurements.FOLDER.glob("*.txt")}
    assert len(found) > 10
    for name, run in found.items():
        text = (measurements.FOLDER / name).read_text(encoding="utf-8")
        assert name.endswith(f"-{run.n}.txt")
        shown = float(re.search(r"geometric means of the ratios, .*: all ([\d.]+)", text)[1])
        assert abs(run.mean - shown) < 0.02, name


# Examples in docstrings


def modules():
    """Return the modules of the package that need nothing else."""
    import gormapy

    found = [gormapy]
    for module in pkgutil.walk_packages(gormapy.__path__, "gormapy."):
        if not re.search(r"__main__|_alias|examples|\.numba|_gormapy|_fast|magic|bench", module.name):
            found.append(importlib.import_module(module.name))
    return found


def documented():
    """Return the docstrings of the package: where they are, and their texts."""
    seen = {}
    for module in modules():
        for owner, prefix in [(module, module.__name__)] + [
            (value, f"{module.__name__}.{name}")
            for name, value in vars(module).items()
            if inspect.isclass(value) and value.__module__.startswith("gormapy")
        ]:
            for name, value in [("", owner), *vars(owner).items()]:
                doc = inspect.getdoc(value) if callable(value) or isinstance(value, property) or not name else None
                if doc and str(getattr(value, "__module__", "gormapy")).startswith("gormapy"):
                    seen.setdefault(doc, f"{prefix}.{name}".rstrip("."))
    return {where: doc for doc, where in seen.items()}


def examples():
    """Return the programs in docstrings, by where they are and their numbers."""
    found = {}
    for where, doc in documented().items():
        blocks = "\n".join(docstrings.converted(doc.splitlines())).split(".. code-block:: python\n")[1:]
        for number, block in enumerate(blocks):
            lines = re.match(r"(?:\s*\n|   .*\n?)*", block)[0]
            found[f"{where}-{number}"] = textwrap.dedent(lines).strip("\n")
    return found


def is_complete(code):
    """Say whether a program gives all names that it uses, so that it can run as it stands."""
    tree = ast.parse(code)
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    given = {node.id for node in names if not isinstance(node.ctx, ast.Load)} | set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            given |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            given.add(node.name)
            given |= {argument.arg for argument in ast.walk(node) if isinstance(argument, ast.arg)}
    return "import" in code and all(node.id in given for node in names) and "await" not in code


def test_complete_examples_of_docstrings_run(mpirun):
    """Those that use names of their reader's program are read only, as Python: docstrings.language has seen to that."""
    whole = {where: code for where, code in examples().items() if is_complete(code)}
    assert "gormapy.rdma-0" in whole
    for where, code in whole.items():
        print(where)
        mpirun(2, code, timeout=60)
