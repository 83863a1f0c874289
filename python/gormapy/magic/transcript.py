"""The output of a cell's ranks, grouped by rank, as HTML and as text."""

import base64
import itertools
from html import escape

from .._resident.errors import ranges, ranks_text
from .ansi import to_html, without_colors
from .rows import Cursor

# Colours of the ranks' bars; they have no meaning but guide the eye. They are visible on white and on black, and none
# is the red of a failure.
_COLORS = ("#4c82bd", "#cf7016", "#429b4a", "#a866a0", "#7a74d6", "#2f9690", "#a0745a", "#85807c")
_NEAR = 20  # how many pieces of output may come after the first line of a progress bar while it is rewritten
_IMAGES = ("image/png", "image/jpeg", "image/gif")
_COLUMNS = "display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,320px),1fr));gap:0 12px"
_PRE = (
    "margin:0;padding:0;border:0;background:none;white-space:pre-wrap;overflow-wrap:anywhere;font-size:inherit;"
    "line-height:1.4;font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace)"
)


class Text:
    """Text of one stream; its middle is dropped when it gets too long."""

    def __init__(self, stream, limit):
        self.stream = stream
        self.head = limit // 4
        self.tail = limit - self.head
        self.dropped = [0, 0]  # characters, lines
        self._start, self._end = "", ""
        self._cursor = Cursor()
        self._new, self._size = [], 0  # text since the last refresh

    def add(self, text):
        """Append text; it can rewrite lines, as progress bars do."""
        self._new.append(text)
        self._size += len(text)
        if self._size > self.tail:
            self._merge()

    def _merge(self):
        text = "".join(self._new)
        self._new, self._size = [], 0
        if self._end:
            self._end = self._cursor.add(self._end, text)
        else:
            text = self._cursor.add(self._start, text)
            cut = len(text)
            if cut > self.head and (self._cursor.at_end or cut > self.head + self.tail):
                cut = text.rfind("\n", 0, self.head) + 1 or self.head
            self._start, self._end = text[:cut], text[cut:]
        over = len(self._end) - self.tail
        if over > 0:
            cut = self._end.find("\n", over) + 1 or over
            gone, self._end = self._end[:cut], self._end[cut:]
            self.dropped[0] += len(gone)
            self.dropped[1] += gone.count("\n")

    @property
    def open(self):
        """Whether the text ends with a line that is being rewritten."""
        self._merge()
        return not self._cursor.at_end

    def text(self):
        """Return the kept text, with a line about the dropped part."""
        self._merge()
        if not self.dropped[0]:
            return self._start + self._end
        note = f"[... {self.dropped[0]:,} characters ({self.dropped[1]:,} lines) are not shown ...]"
        return f"{self._start}{note}\n{self._end}"


class Bundle:
    """A MIME bundle that a rank displayed."""

    def __init__(self, data, display_id):
        self.data, self.display_id = data, display_id

    @property
    def picture(self):
        """Whether a browser shows a picture."""
        return "text/html" not in self.data and any(mime in self.data for mime in ("image/svg+xml", *_IMAGES))

    def text(self):
        """Return the plain form."""
        return str(self.data.get("text/plain", f"<{', '.join(self.data)}>")) + "\n"

    def html(self):
        """Return the best form that a browser shows."""
        data = self.data
        if "text/html" in data:
            return f'<div class="gormapy-html">{data["text/html"]}</div>'
        if "image/svg+xml" in data:
            return f'<div class="gormapy-image">{data["image/svg+xml"]}</div>'
        for mime in _IMAGES:
            if mime in data:
                value = data[mime]
                coded = base64.b64encode(value).decode() if isinstance(value, bytes) else str(value).strip()
                alt = escape(str(data.get("text/plain", "")), quote=True)
                return (
                    f'<div class="gormapy-image"><img alt="{alt}" style="max-width:100%" '
                    f'src="data:{mime};base64,{coded}"></div>'
                )
        if "text/latex" in data:
            return f'<div class="gormapy-latex">{escape(str(data["text/latex"]))}</div>'
        return f'<pre class="gormapy-result" style="{_PRE}">{to_html(self.text().rstrip())}</pre>'


class Transcript:
    """All output of the ranks in one cell."""

    def __init__(self, limit):
        self.limit = limit
        self.items = {}  # by rank
        self.errors = []  # (rank, text)
        self.clearing = set()
        self.changed = False
        self.before, self.since = None, ""  # what came before the cell, and since when

    def __bool__(self):
        return any(self.items.values()) or bool(self.errors) or bool(self.before)

    def earlier(self, since):
        """Return a Transcript for what the ranks have printed since an earlier cell, such as In [3]."""
        self.before, self.since, self.changed = Transcript(self.limit), since, True
        return self.before

    def _list(self, rank):
        if rank in self.clearing:
            self.clearing.discard(rank)
            self.items[rank] = []
        return self.items.setdefault(rank, [])

    def write(self, rank, stream, text):
        """Take text that a rank wrote to "stdout" or "stderr"."""
        items = self._list(rank)
        self.changed = True
        bar = next((i for i in reversed(items[-_NEAR:]) if isinstance(i, Text) and i.stream == stream), None)
        if bar is not None and bar is not items[-1] and bar.open:
            bar.add(text)  # a progress bar stays where it is, whatever comes after it in other ways
            return
        if not items or not isinstance(items[-1], Text) or items[-1].stream != stream:
            # A rank that often changes its stream gets no more room than others.
            used = sum(i.head + i.tail for i in items if isinstance(i, Text) and i.dropped[0])
            items.append(Text(stream, max(2000, self.limit - used)))
        items[-1].add(text)
        if len(items) > 400:
            del items[200:300]
            items.insert(200, _note("[... 100 pieces of output are not shown ...]\n"))

    def display(self, rank, data, display_id, update):
        """Take a MIME bundle; update: in place of those with the same display_id."""
        self.changed = True
        if update:
            for item in self.items.get(rank, ()):
                if isinstance(item, Bundle) and item.display_id == display_id:
                    item.data = data
            return
        self._list(rank).append(Bundle(data, display_id))

    def clear(self, rank, wait):
        """Clear the output of a rank, at once or at its next output."""
        if wait:
            self.clearing.add(rank)
        else:
            self.items[rank] = []
        self.changed = True

    def fail(self, rank, text):
        """Take the traceback of a rank."""
        self.errors.append((rank, text))
        self.changed = True

    def _groups(self, merge):
        """Yield (ranks, their items), in the order of ranks; merge: ranks with the same output together."""
        groups = {}
        for rank in sorted(self.items):
            items = [
                i for i in self.items[rank] if not isinstance(i, Text) or i.text()
            ]  # a bar may have removed itself
            if not items:
                continue
            key = rank
            if merge and all(isinstance(i, Text) for i in items):
                key = tuple((i.stream, i.text()) for i in items)
            groups.setdefault(key, ([], items))[0].append(rank)
        return groups.values()

    def _failures(self):
        groups = {}
        for rank, text in self.errors:
            groups.setdefault(without_colors(text), ([], text))[0].append(rank)
        return groups.values()

    def html(self, merge=False):
        """Return all of it as HTML."""
        out = ['<div class="gormapy-output" style="font-size:13px">']
        if self.before is not None:
            out += _blocks(self.before._groups(merge), self.since)
        out += _blocks(self._groups(merge))
        for ranks, text in self._failures():
            body = f'<pre class="gormapy-traceback" style="{_PRE}">{to_html(text.rstrip())}</pre>'
            out.append(_block(ranks, body, failed=True))
        out.append("</div>")
        return "".join(out)

    def text(self, merge=False):
        """Return all of it as lines that begin with "[rank]"."""
        lines = []
        both = [(f", after {self.since}", self.before), ("", self)] if self.before is not None else [("", self)]
        for mark, transcript in both:
            for ranks, items in transcript._groups(merge):
                body = "".join(i.text() for i in items)
                lines += [f"[{ranges(ranks)}{mark}] {line}" for line in without_colors(body).rstrip("\n").split("\n")]
        for ranks, text in self._failures():
            lines += [f"[{ranges(ranks)}] {line}" for line in without_colors(text).rstrip("\n").split("\n")]
        return "\n".join(lines)


def _note(text):
    note = Text("stdout", len(text) * 2 + 8)
    note.add(text)
    return note


def _item_html(item):
    if isinstance(item, Bundle):
        return item.html()
    text = item.text().rstrip("\n")
    tint = ";background:rgba(224,108,117,.14)" if item.stream == "stderr" else ""
    return f'<pre class="gormapy-{item.stream}" style="{_PRE}{tint}">{to_html(text)}</pre>'


def _blocks(groups, since=""):
    """Return the blocks of ranks; neighbours with pictures have columns, as many as the page is wide."""

    def drawn(group):
        return any(isinstance(item, Bundle) and item.picture for item in group[1])

    out = []
    for pictures, some in itertools.groupby(groups, drawn):
        bodies = [(ranks, "".join(_item_html(i) for i in items)) for ranks, items in some]
        columns = pictures and len(bodies) > 1
        blocks = [_block(ranks, body, since=since, column=columns) for ranks, body in bodies]
        out += [f'<div class="gormapy-columns" style="{_COLUMNS}">{"".join(blocks)}</div>'] if columns else blocks
    return out


def _block(ranks, body, failed=False, since="", column=False):
    color = "#d0483a" if failed else _COLORS[ranks[0] % len(_COLORS)] if len(ranks) == 1 else "#7f8c8d"
    kind = "gormapy-rank gormapy-failed" if failed else "gormapy-rank gormapy-earlier" if since else "gormapy-rank"
    after = f'<div style="font-weight:400;font-style:italic">after {since}</div>' if since else ""
    outer, inner = (";flex-direction:column;min-width:0", ";overflow-x:auto") if column else ("", "")
    return (
        f'<div class="{kind}" data-ranks="{ranges(ranks)}" style="display:flex{outer};border-left:3px solid {color};'
        f'margin:2px 0;padding:1px 0 1px 8px"><div class="gormapy-label" style="flex:0 0 auto;min-width:5.2em;'
        f'padding-right:.8em;line-height:1.4;font-weight:600;color:{color}">{ranks_text(ranks)}{after}</div>'
        f'<div class="gormapy-body" style="flex:1 1 auto;min-width:0{inner}">{body}</div></div>'
    )
