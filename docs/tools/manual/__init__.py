"""Make the documentation site from the pages, the lessons, the docstrings and the tables of the code.

``python -m manual COMMENTS FOLDER`` writes Sphinx's source folder. It has copies of the project's pages, in the places
where they lie in the tree, so that their links lead to each other, and pages that only the site has:

- structure.py: the parts of the site, which are the sections of docs/README.md
- links.py: links that lead out of the site
- lessons.py: the notebooks
- reference.py: calls, from the stub and the docstrings
- tables.py: settings, error classes, hints, options of the launcher, from their tables
- layers.py: the core's packages, from their comments, which docs/tools/packagecomments prints
- measurements.py: tables and pictures of what `make compare` has printed
- glossary.py: terms that other pages can name
- classes.py: programs and reports of docs/checking-classes.md, which `make checking-classes` writes

docstrings.py makes reStructuredText of docstrings while Sphinx runs, and names.py finds what annotations name.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
