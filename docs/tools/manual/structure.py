"""The parts of the site: the sections of docs/README.md, in their order."""

import re
from dataclasses import dataclass

from . import DOCS

# A row of a part's table begins with a link to a page.
_ROW = re.compile(r"^\| \[([^]]+)\]\(([^)\s]+)\)", re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """A section of docs/README.md: a part of the site."""

    title: str
    text: str  # with its table
    pages: tuple[str, ...]  # as docs/README.md names them

    @property
    def name(self):
        """The part's page, without its ending."""
        return self.title.lower()


def parts(text=None):
    """Return the parts."""
    text = (DOCS / "README.md").read_text(encoding="utf-8") if text is None else text
    sections = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    return [
        Part(title, body.strip("\n"), tuple(page for _, page in _ROW.findall(body)))
        for title, body in zip(sections[::2], sections[1::2])
    ]


def toctree(pages, *, hidden=True, caption=None):
    """Return a list of pages for the navigation of the site."""
    options = [":hidden:"] if hidden else []
    options += [f":caption: {caption}"] if caption else []
    return "\n".join(["```{toctree}", *options, "", *pages, "```", ""])
