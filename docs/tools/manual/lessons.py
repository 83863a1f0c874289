"""The lessons: executed notebooks, with links into the site."""

import json

from . import links

_LANGUAGE = {"name": "python", "pygments_lexer": "ipython3", "file_extension": ".py"}


def page(text, path, pages):
    """Return a notebook as the site shows it."""
    book = json.loads(text)
    # Which language its code is in: the repository's notebooks leave it to the kernel.
    book["metadata"]["language_info"] = _LANGUAGE
    for cell in book["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = links.rewrite("".join(cell["source"]), path, pages)
        else:
            cell["outputs"] = [_shown(output) for output in cell["outputs"]]
    return json.dumps(book, ensure_ascii=False, indent=1)


def _shown(output):
    """Return an output without the forms that the site does not show."""
    data = output.get("data", {})
    if "text/plain" in data and len(data) > 1:
        data = {kind: value for kind, value in data.items() if kind != "text/plain"}
        return {**output, "data": data}
    return output
