"""A picture of the waits, as SVG: ranks on a circle, an arrow from each waiting rank to the one that it waits for."""

import math
from html import escape

_FILL = {"waiting": "#f5b041", "running": "#58b368", "finished": "#b8bec5", "failed": "#e06c75", "unknown": "#d7bde2"}
_WORDS = {"waiting": "waits", "running": "runs", "finished": "has finished", "failed": "failed", "unknown": "no answer"}
_NODE = 26.0


def draw(states, edges, title):
    """Return the SVG text.

    states: for each rank its state, one of waiting, running, finished, failed and unknown;
    edges: (from, to, label, in a circle, any) for each wait, where "any" is drawn dashed.
    """
    ranks = sorted(states)
    radius = max(95.0, len(ranks) * 22.0) if len(ranks) > 1 else 0.0
    side = 2 * (radius + _NODE)
    wide, margin = side + 240, 40
    cx, cy = wide / 2, margin + _NODE + radius + 18
    height = cy + radius + _NODE + 52
    at = {}
    for i, r in enumerate(ranks):
        # two ranks are side by side, more begin at the top
        angle = 2 * math.pi * i / len(ranks) + (math.pi if len(ranks) == 2 else -math.pi / 2)
        at[r] = (cx + radius * math.cos(angle), cy + radius * math.sin(angle))
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="gormapy-picture" width="{wide:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {wide:.0f} {height:.0f}" font-family="sans-serif" font-size="13" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{wide:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        "<defs>"
        + "".join(
            f'<marker id="gormapy-head-{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="12" '
            f'markerHeight="12" markerUnits="userSpaceOnUse" orient="auto">'
            f'<path d="M0 0L10 5L0 10z" fill="{color}"/></marker>'
            for name, color in (("c", "#c0392b"), ("p", "#566573"))
        )
        + "</defs>",
        f'<text x="{wide / 2:.0f}" y="22" text-anchor="middle" font-weight="bold" fill="#222">{escape(title)}</text>',
    ]
    labels = []
    pairs = {(a, b) for a, b, *_ in edges}
    for a, b, label, circle, any_rank in edges:
        arrow, (lx, ly) = _arrow(at[a], at[b], (cx, cy), (b, a) in pairs)
        color, head, width = ("#c0392b", "c", 2.4) if circle else ("#566573", "p", 1.5)
        dash = ' stroke-dasharray="5 4"' if any_rank else ""
        out.append(
            f'<path class="gormapy-edge" data-from="{a}" data-to="{b}" d="{arrow}" fill="none" stroke="{color}" '
            f'stroke-width="{width}"{dash} marker-end="url(#gormapy-head-{head})"/>'
        )
        if label:
            labels.append((lx, ly, label, color))
    for r in ranks:
        x, y = at[r]
        out.append(
            f'<g class="gormapy-node" data-rank="{r}"><circle cx="{x:.1f}" cy="{y:.1f}" r="{_NODE}" '
            f'fill="{_FILL[states[r]]}" stroke="#333"/><text x="{x:.1f}" y="{y + 5:.1f}" text-anchor="middle" '
            f'font-weight="bold" fill="#111">{r}</text></g>'
        )
    for middle, y, label, color in labels:
        half = 3.6 * len(label) + 3
        x = min(max(middle, half), wide - half)
        out.append(
            f'<rect x="{x - half:.1f}" y="{y - 10:.1f}" width="{2 * half:.1f}" height="16" rx="3" fill="#fff" '
            f'fill-opacity="0.88"/><text x="{x:.1f}" y="{y + 2.5:.1f}" text-anchor="middle" font-size="12" '
            f'fill="{color}">{escape(label)}</text>'
        )
    x = 12.0
    for state in dict.fromkeys(states[r] for r in ranks):
        out.append(
            f'<circle cx="{x + 6:.0f}" cy="{height - 16:.0f}" r="6" fill="{_FILL[state]}" stroke="#333"/>'
            f'<text x="{x + 17:.0f}" y="{height - 11.5:.1f}" fill="#333">{_WORDS[state]}</text>'
        )
        x += 34 + 7 * len(_WORDS[state])
    out.append("</svg>")
    return "".join(out)


def _arrow(start, end, centre, both):
    """Return the path of an arrow between two nodes, and the place of its label."""
    (ax, ay), (bx, by) = start, end
    if start == end:  # the rank waits for itself
        return (
            f"M{ax - 12:.1f} {ay - 24:.1f}C{ax - 42:.1f} {ay - 78:.1f} "
            f"{ax + 42:.1f} {ay - 78:.1f} {ax + 13:.1f} {ay - 26:.1f}",
            (ax, ay - 62),
        )
    dx, dy = bx - ax, by - ay
    length = math.hypot(dx, dy)
    ux, uy = dx / length, dy / length
    # Arrows of both directions bend away from each other.
    bend = 30.0 if both else 0.0
    mx, my = (ax + bx) / 2 + bend * -uy, (ay + by) / 2 + bend * ux
    sx, sy = _edge_point(ax, ay, mx, my)
    ex, ey = _edge_point(bx, by, mx, my, 2.0)
    # The label is nearer to the start: arrows to one rank converge at their ends.
    t = 0.5 if both else 0.42
    lx = (1 - t) ** 2 * sx + 2 * t * (1 - t) * mx + t * t * ex
    ly = (1 - t) ** 2 * sy + 2 * t * (1 - t) * my + t * t * ey
    return f"M{sx:.1f} {sy:.1f}Q{mx:.1f} {my:.1f} {ex:.1f} {ey:.1f}", (lx, ly)


def _edge_point(x, y, tx, ty, gap=0.0):
    length = math.hypot(tx - x, ty - y) or 1.0
    return x + (tx - x) / length * (_NODE + gap), y + (ty - y) / length * (_NODE + gap)
