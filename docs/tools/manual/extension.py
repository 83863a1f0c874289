"""What Sphinx asks of this package while it reads and resolves."""

import inspect
import re
from typing import ClassVar

from pygments.lexer import inherit
from pygments.lexers import PythonLexer
from pygments.lexers.configs import SingularityLexer
from pygments.token import Generic, Keyword, Operator, Text

from . import docstrings, names

_SELF = re.compile(r"^\((?:self|cls)(?:, /)?(?:, )?")


def setup(app):
    """Register with Sphinx."""
    for name in ("ipython", "ipython3"):
        app.add_lexer(name, CellLexer)
    app.add_lexer("singularity", ApptainerLexer)
    app.add_config_value("gormapy_sources", "", "env")  # another value has all pages read again
    app.add_role("gormapy", names.NameRole())
    app.add_post_transform(names.NearestName)
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("autodoc-process-signature", _signature)
    app.connect("missing-reference", names.resolve)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def _docstring(app, what, name, obj, options, lines):
    if what in ("attribute", "data") and not isinstance(obj, type):
        of_type = (inspect.getdoc(type(obj)) or "").strip().splitlines()
        if of_type and lines and lines[0].strip() == of_type[0].strip():
            lines.clear()  # what str is, say
    lines[:] = docstrings.converted(lines)


def _signature(app, what, name, obj, options, signature, result):
    """Leave out self, which the signatures at the beginning of docstrings have, and what protocols accept."""
    if getattr(obj, "_is_protocol", False):
        return "", None
    return (_SELF.sub("(", signature), result) if signature else None


def _skip(app, what, name, obj, skip, options):
    """Leave out classes of Python that are attributes of ours."""
    return True if isinstance(obj, type) and not obj.__module__.startswith("gormapy") else None


class CellLexer(PythonLexer):
    """Python with lines of magics: IPython's own lexer takes the rest of a %%mpi cell for text."""

    _magic = re.compile(r"^( *)(%{1,2}(?=\w)|!)(\w*)(.*\n?)", re.MULTILINE)

    def get_tokens_unprocessed(self, text, stack=("root",)):
        """Yield the tokens of the lines of magics, and what Python's lexer finds between them."""
        done = 0
        for line in self._magic.finditer(text):
            yield from self._python(text, done, line.start())
            for number, kind in enumerate((Text, Operator, Keyword, Text), start=1):
                if line[number]:
                    yield line.start(number), kind, line[number]
            done = line.end()
        yield from self._python(text, done, len(text))

    def _python(self, text, begin, end):
        for place, kind, value in PythonLexer.get_tokens_unprocessed(self, text[begin:end]):
            yield begin + place, kind, value


class ApptainerLexer(SingularityLexer):
    """Recipes with %arguments, which Pygments does not know: a section of Apptainer 1.2 and later."""

    tokens: ClassVar = {"root": [(r"^%arguments\b", Generic.Heading), inherit]}
