"""Sphinx's configuration of the documentation site: `make docs`."""

import hashlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "tools"), str(HERE.parent / "python")]

import gormapy  # noqa: E402

gormapy.rc.initialize = False  # the reference is of what is there, and needs no ranks

project = "gormapy"
author = "the authors of gormapy"
copyright = author
version = release = gormapy.__version__
root_doc = "index"

extensions = ["myst_nb", "sphinx.ext.autodoc", "manual.extension"]

# A docstring may have changed: Sphinx knows of the files of its own source folder only.
sources = sorted([*(HERE / "tools").rglob("*.py"), *(HERE.parent / "python" / "gormapy").rglob("*.py")])
gormapy_sources = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()

# Every reference has to lead somewhere; make docs lets warnings fail.
nitpicky = True

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # make notebooks executes them
nb_merge_streams = True
suppress_warnings = ["mystnb.unknown_mime_type"]

highlight_language = "text"
smartquotes = False  # --trace has two hyphens
default_role = "gormapy"
python_display_short_literal_types = True
python_maximum_signature_line_length = 88
add_module_names = False
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"exclude-members": "__weakref__, __init__, __new__"}
toc_object_entries = False

html_theme = "pydata_sphinx_theme"
html_title = "gormapy"
html_static_path = ["static"]
html_css_files = ["manual.css"]
html_copy_source = True
html_sourcelink_suffix = ""
html_show_sphinx = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_depth": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc", "sourcelink"],
    "search_bar_text": "Search",
}
