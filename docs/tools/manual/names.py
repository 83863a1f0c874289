"""What annotations and docstrings name: our classes by their short names, and what is not ours.

The site is built without a network, so there are no links to other projects' references. A name that is not ours has
to be one of Python's or NumPy's, though: Sphinx warns of any other.
"""

import importlib
import re

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxRole

_OURS = ("gormapy.typing.", "gormapy.MPI.", "gormapy.")
_FOREIGN = (
    "builtins",
    "typing",
    "typing_extensions",
    "collections.abc",
    "concurrent.futures",
    "os",
    "threading",
    "types",
    "ctypes",
    "numpy",
    "numpy.typing",
)
# A name in a docstring that may be one of a class or a call: Win.Put, MPI.SUM, gormapy.reset().
_NAME = re.compile(r"^(?:gormapy\.[\w.]+|MPI\.\w+(?:\.\w+)?|[A-Z]\w*(?:\.\w+)*)(?:\(\))?$")

_TYPE_VARIABLE = re.compile(r"^_?[A-Z](?:\.args|\.kwargs)?$")


class NameRole(SphinxRole):
    """A name in backticks: a reference if there is something of this name, else code."""

    def run(self):
        """Make a reference of what looks like one of our names."""
        code = nodes.literal(self.rawtext, self.text, classes=["xref", "py"])
        if not _NAME.match(self.text):
            return [nodes.literal(self.rawtext, self.text)], []
        where = {key: self.env.ref_context.get(key) for key in ("py:module", "py:class")}
        reference = addnodes.pending_xref(
            self.rawtext,
            code,
            refdomain="py",
            reftype="obj",
            reftarget=self.text.removesuffix("()"),
            refdoc=self.env.docname,
            refexplicit=True,
            **where,
            **{"gormapy:name": True},
        )
        return [reference], []


class NearestName(SphinxPostTransform):
    """Before Sphinx searches: of several things of one name, the one of this class or module, else that of MPI."""

    default_priority = 5

    def run(self, **kwargs):
        """Complete the names that references give."""
        objects = self.env.domains["py"].objects
        for node in self.document.findall(addnodes.pending_xref):
            if node.get("refdomain") != "py":
                continue
            target = node["reftarget"].removeprefix("np.")
            module, cls = node.get("py:module") or "", node.get("py:class") or ""
            within = (f"{module}.{cls}.", f"{module}.")
            for name in (*(prefix + target for prefix in within), *(prefix + _short(target) for prefix in _OURS)):
                if name in objects:
                    node["reftarget"] = name
                    break


def _short(target):
    return target.removeprefix("MPI.")


def resolve(app, env, node, contnode):
    """Answer Sphinx's event missing-reference: what is not ours stays text."""
    if node.get("refdomain") == "py" and (node.get("gormapy:name") or is_foreign(node["reftarget"])):
        return contnode
    return None


def is_foreign(target):
    """Say whether Python or NumPy has this name."""
    if _TYPE_VARIABLE.match(target.rpartition("typing.")[2]):
        return True
    module, _, name = re.sub(r"^np\.", "numpy.", target).rpartition(".")
    for place in [module] if module else _FOREIGN:
        if place.partition(".")[0] == "gormapy":
            continue
        try:
            if hasattr(importlib.import_module(place), name):
                return True
        except ImportError:
            pass
    return False
