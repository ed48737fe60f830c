"""The chart of the README: CPU time per request as a multiple of the floor, drawn from a stored run."""

from html import escape

_ROWS = [("hit-1k", "hit, 1 KB"), ("pass-1k", "pass to the origin, 1 KB"), ("hit-100k", "hit, 100 KB")]
_SERVERS = {"sandarac": "Sandarac", "haproxy": "HAProxy", "nginx": "nginx", "varnish": "Varnish", "nginx-file": "nginx, file"}
_WIDTH = 760
_LEFT = 120
_RIGHT = 70
_BAR = 18
_GAP = 6
_GROUP = 44
# A card of its own colour, so that the text is legible whatever the page behind it is.
_STYLE = """
  .card { fill: #ffffff; stroke: #d0d7de }
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-size: 15px; font-weight: 600 }
  .group { font-weight: 600 }
  .note { font-size: 11px; fill: #59636e }
  .own { fill: #b45309 }
  .peer { fill: #8c959f }
  .floor { stroke: #59636e; stroke-dasharray: 3 3 }
  @media (prefers-color-scheme: dark) {
    .card { fill: #0d1117; stroke: #3d444d }
    text { fill: #f0f6fc }
    .note { fill: #9198a1 }
    .own { fill: #f59e0b }
    .peer { fill: #656c76 }
    .floor { stroke: #9198a1 }
  }
"""


def svg(run):
    """The chart of a run as SVG text; a run without the three rows of the floor has none (None)."""
    groups = [(label, _ratios(run["rows"][row]["servers"])) for row, label in _ROWS if row in run["rows"]]
    if len(groups) < len(_ROWS) or not all(groups):
        return None
    body, y = [], 62
    for label, ratios in groups:
        body.append(_text(_LEFT - 8, y, "group", f"{label} (× floor)", "start", x_offset=-_LEFT + 24))
        y += 12
        body += _bars(ratios, y)
        y += len(ratios) * (_BAR + _GAP) + _GROUP - 12
    machine = run["machine"]
    versions = ", ".join(
        f"{_SERVERS[name]} {machine['versions'][name]}" for name in _SERVERS if machine["versions"].get(name)
    )
    body.append(_text(16, y - 14, "note", f"Dashed: the responder itself. {run['date']}, {machine['cpu']}, one core. {versions}"))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}" role="img" aria-label="CPU per request">',
            f"<style>{_STYLE}</style>",
            f'<rect class="card" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{y - 1}" rx="8"/>',
            _text(16, 28, "title", "CPU time per request as a multiple of a bare epoll responder (less is better)"),
            *body,
            "</svg>",
            "",
        ]
    )


def _ratios(servers):
    """(server, ratio), the cheapest first."""
    found = [
        (name, servers[name]["median"]["ratio"])
        for name in _SERVERS
        if "ratio" in servers.get(name, {}).get("median", {})
    ]
    return sorted(found, key=lambda pair: pair[1])


def _bars(ratios, y):
    longest = max(ratio for _, ratio in ratios)
    scale = (_WIDTH - _LEFT - _RIGHT) / longest
    x = _LEFT + scale
    bottom = y + len(ratios) * (_BAR + _GAP) - 3
    parts = [f'<line class="floor" x1="{x:.1f}" y1="{y - 3}" x2="{x:.1f}" y2="{bottom}"/>']
    for name, ratio in ratios:
        own = name == "sandarac"
        parts.append(_text(_LEFT - 8, y + 14, "group" if own else "", _SERVERS[name], "end"))
        kind = "own" if own else "peer"
        parts.append(
            f'<rect class="{kind}" x="{_LEFT}" y="{y}" width="{ratio * scale:.1f}" height="{_BAR}" rx="2"/>'
        )
        parts.append(_text(_LEFT + ratio * scale + 6, y + 14, "", f"{ratio:.2f}"))
        y += _BAR + _GAP
    return parts


def _text(x, y, kind, text, anchor="start", x_offset=0):
    return f'<text class="{kind}" x="{x + x_offset:.1f}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
