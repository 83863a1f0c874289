"""Write Sphinx's source folder: ``python -m manual COMMENTS FOLDER``; COMMENTS is what packagecomments printed."""

import json
import sys
from pathlib import Path

import gormapy

from . import ROOT, glossary, layers, lessons, links, measurements, reference, structure, tables

# Pages of the repository that are not in docs/.
_OUTSIDE = {"README.md": "index.md", "ARCHITECTURE.md": "ARCHITECTURE.md", "CHANGELOG.md": "CHANGELOG.md"}
_GRAPH = ("<!-- the graph is written", "<!-- end of the graph -->")


def sources():
    """Return the pages of the repository that are on the site: paths there, by paths in the repository."""
    inside = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md") if "tools" not in path.parts]
    lesson = [path.relative_to(ROOT).as_posix() for path in (ROOT / "notebooks").glob("*.ipynb")]
    return _OUTSIDE | {path: path for path in sorted([*inside, *lesson, "notebooks/README.md"])}


def contents(found):
    """Return what every page and picture of the site consists of, by its path there; `found` is for layers.py."""
    gormapy.rc.initialize = False
    from gormapy import MPI

    pages = sources()
    pages |= {f"docs/layers/{name}.md": f"docs/layers/{name}.md" for name in layers.TITLES}  # for links to them
    out = {}
    for path, there in sources().items():
        text = (ROOT / path).read_text(encoding="utf-8")
        if path.endswith(".ipynb"):
            out[there] = lessons.page(text, path, pages)
            continue
        if path == "docs/settings.md":
            text = tables.settings(text)
        elif path == "docs/measurements/README.md":
            text, sets, more = measurements.page(text)
            out |= more
            text += "\n" + structure.toctree(sets)
            pages |= {f"docs/measurements/{name}.md": f"docs/measurements/{name}.md" for name in sets}
        elif path == "docs/glossary.md":
            text = glossary.page(text)
        elif path == "ARCHITECTURE.md":
            begin, end = (text.index(mark) for mark in _GRAPH)
            text = text[:begin] + layers.overview(found) + text[end + len(_GRAPH[1]) :]
        out[there] = links.rewrite(text, path, pages)
    out |= {f"docs/layers/{name}.md": text for name, text in layers.pages(found).items()}
    out |= reference_pages(MPI)
    # The pages that only the site has, by the part that they belong to, with their subjects.
    made = {
        "Architecture": [
            (f"layers/{layer['name']}", lowered(layers.TITLES[layer["name"]][1])) for layer in found["layers"]
        ],
        "Reference": [
            ("reference/MPI/index", "classes, functions and constants of MPI"),
            *((page_of(name), lowered(reference.first_sentence(name))) for name in reference.MODULES),
            ("reference/mpiexec", "all options of the launcher, also those that it knows from others"),
            ("reference/hints", "keys of `info` for windows and files, their defaults and values"),
            ("reference/errors", "MPI's error classes and their texts"),
        ],
    }
    add_structure(out, pages, made)
    return out


def page_of(module):
    """Return the page of a module."""
    return f"reference/{module.removeprefix('gormapy.')}"


def lowered(sentence):
    """Return a sentence as a table has it: a small letter at the beginning, if it is no name, and no full stop."""
    text = sentence.removesuffix(".")
    return text[:1].lower() + text[1:] if text.split()[0][1:].islower() else text  # not NumPy


def reference_pages(mpi):
    """Return the pages of the reference."""
    declared = reference.stub()
    inner = [*declared.classes, "constants"]
    out = {"docs/reference/MPI/index.md": reference.mpi_page(mpi, declared) + "\n" + structure.toctree(inner)}
    for name in declared.classes:
        out[f"docs/reference/MPI/{name}.md"] = reference.class_page(mpi, declared, name)
    out["docs/reference/MPI/constants.md"] = reference.constants_page(declared)
    out |= {f"docs/{page_of(name)}.md": reference.module_page(name) for name in reference.MODULES}
    out["docs/reference/errors.md"] = tables.errors(mpi)
    out["docs/reference/hints.md"] = tables.hints(mpi)
    out["docs/reference/mpiexec.md"] = tables.launcher()
    return out


def add_structure(out, pages, made):
    """Add the pages of the parts, and what the navigation is made of."""
    tops = []
    for part in structure.parts():
        more = made.get(part.title, [])
        before, table, listed = links.rewrite(part.text, "docs/README.md", pages).partition("|---|---|\n")
        rows = "\n".join(f"| [{title(out[f'docs/{name}.md'])}]({name}.md) | {what} |" for name, what in more)
        names = [[page.removesuffix(".md") for page in part.pages], [name for name, _ in more]]
        tables_of = [listed, rows]
        if part.title == "Reference":  # the calls before what is about all of them
            names.reverse()
            tables_of.reverse()
        table += "\n".join(filter(None, tables_of))
        out[f"docs/{part.name}.md"] = (
            f"# {part.title}\n\n{before}{table}\n\n{structure.toctree([*names[0], *names[1]])}"
        )
        tops.append(f"docs/{part.name}")
    out["index.md"] += "\n" + structure.toctree(tops)
    out["docs/README.md"] = "---\norphan: true\n---\n\n" + out["docs/README.md"]
    lesson = [Path(path).stem for path in pages if path.endswith(".ipynb")]
    out["notebooks/README.md"] += "\n" + structure.toctree(lesson)


def title(text):
    """Return the title of a page."""
    return next(line[2:] for line in text.splitlines() if line.startswith("# "))


def main(comments, folder):
    """Write what has changed, and remove what is no page any more, so that Sphinx reads again only what it must."""
    folder = Path(folder)
    made = contents(json.loads(Path(comments).read_text(encoding="utf-8")))
    for path, text in made.items():
        file = folder / path
        data = text if isinstance(text, bytes) else text.encode()
        if not file.exists() or file.read_bytes() != data:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    for file in folder.rglob("*"):
        if file.is_file() and file.relative_to(folder).as_posix() not in made:
            file.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])
