"""Links of a page that lead to files of the repository that the site does not have.

They become text with the path of the file, because there is no address at which the repository could be read.
"""

import posixpath
import re

# Code, which is left alone, or a link.
_CODE_OR_LINK = re.compile(
    r"(?P<fence>^(?P<marks>`{3,}|~{3,}).*?^(?P=marks)`*\s*?$)|(?P<code>(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))"
    r"|(?<!!)\[(?P<text>(?:[^][`]|`[^`]*`)*)\]\((?P<target>[^)\s]+)\)",
    re.MULTILINE | re.DOTALL,
)


def rewrite(text, page, pages):
    """Return a page's text with such links replaced; `pages` maps paths in the repository to paths on the site."""

    def replaced(match):
        target = match["target"]
        if target is None or "://" in target or target.startswith(("#", "mailto:")):
            return match[0]
        path, hash_, anchor = target.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
        if path in pages:
            there = posixpath.relpath(pages[path], posixpath.dirname(pages.get(page, page)) or ".")
            return f"[{match['text']}]({there}{hash_}{anchor})"
        named = match["text"].strip("`").rstrip("/")
        return f"`{path}`" if path.endswith(named) else f"{match['text']} (`{path}`)"

    return _CODE_OR_LINK.sub(replaced, text)
