"""Findings of mpiexec --check under a cell: both lines, the bytes as a picture of the window, and the repair."""

from html import escape

from gormapy.check.reports import about, line, title, where, who

_RED, _GREY, _FIRST, _SECOND = "#d0483a", "#7f8c8d", "#4c82bd", "#cf7016"
_CODE = "margin:1px 0 3px 0;padding:0;background:none;white-space:pre-wrap;overflow-wrap:anywhere"
_WIDTH, _LANE, _BOTH = 480, 12, 5  # pixels


def _picture(record):
    """Return a picture of a window's part: a lane for each access, and between them the bytes that both touch."""
    found = record["bytes"]
    if not found or not found.get("of") or len(record["accesses"]) < 2:
        return ""
    scale = _WIDTH / found["of"]

    def bar(start, stop, top, height, color):
        start, stop = max(start, 0), min(stop, found["of"])
        width = max((stop - start) * scale, 2)
        return f'<rect x="{start * scale:.1f}" y="{top}" width="{width:.1f}" height="{height}" fill="{color}"/>'

    height = 2 * _LANE + _BOTH + 4
    parts = [bar(found["start"], found["stop"], 2 + _LANE, _BOTH, _RED)]
    for number, (access, color) in enumerate(zip(record["accesses"], (_FIRST, _SECOND))):
        parts.append(bar(*access["span"], 2 + number * (_LANE + _BOTH), _LANE, color))
    frame = f'<rect x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}" fill="none" stroke="{_GREY}"/>'
    label = escape(f"the part of rank {found['rank']}: {found['of']} bytes", quote=True)
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {_WIDTH} {height}" '
        f'style="display:block;max-width:{_WIDTH}px;width:100%;margin:3px 0"><title>{label}</title>'
        f"{''.join(parts)}{frame}</svg>"
    )


def html(record):
    """Return a finding as HTML."""
    rows = []
    for access, color in zip(record["accesses"], (_FIRST, _SECOND)):
        rows.append(
            f'<div><span style="color:{color};font-weight:600">{escape(who(access))}</span>, '
            f'{escape(where(access))}</div><pre style="{_CODE}">{escape(line(access))}</pre>'
        )
    place = f"<div>{escape(about(record))}</div>" if record["window"] else ""
    return (
        f'<div class="gormapy-finding" data-class="{escape(record["class"], quote=True)}" style="border-left:3px solid '
        f'{_RED};margin:3px 0;padding:1px 0 1px 8px;font-size:13px;line-height:1.4">'
        f'<div><b style="color:{_RED}">{escape(title(record))}</b>: {escape(record["message"])}</div>'
        f"{''.join(rows)}{_picture(record)}{place}"
        f"<div>{escape(record['fix'])} <i>MPI 4.1, section {escape(record['section'])}</i></div></div>"
    )
