"""The tables on the terminal."""

from . import application

_GRAPH_WIDTH = 24
_APPLICATION_ROWS = {row.name for row in application.ROWS}

# Heading, figure of the median, and how it is printed.
_LOAD_COLUMNS = [
    ("CPU µs", "cpu_us", "{:.1f}"),
    ("× floor", "ratio", "{:.2f}"),
    ("× floor-pass", "pass_ratio", "{:.2f}"),
    ("req/s", "per_second", "{:.0f}"),
    ("MB/s", "bytes_per_second", None),
    ("p50 µs", "p50_us", "{:.0f}"),
    ("p99 µs", "p99_us", "{:.0f}"),
]
_IDLE_COLUMNS = [("RSS B", "rss", "{:.0f}"), ("Pss B", "pss", "{:.0f}"), ("private B", "private", "{:.0f}")]
_START_COLUMNS = [("ms", "milliseconds", "{:.1f}")]


def table(row, title, results, bars, aims):
    """The table of one row, its bars and aims below."""
    columns, graphed, descending = _LOAD_COLUMNS, "cpu_us", False
    if row in _APPLICATION_ROWS:
        graphed, descending = "per_second", True
    elif row == "idle":
        columns, graphed = _IDLE_COLUMNS, "rss"
    elif row == "start":
        columns, graphed = _START_COLUMNS, "milliseconds"
    measured = {name: result for name, result in results.items() if "median" in result}
    columns = [column for column in columns if any(column[1] in result["median"] for result in measured.values())]
    extras = [heading for heading in _EXTRAS if any(_EXTRAS[heading](result) for result in measured.values())]
    longest = max((result["median"][graphed] for result in measured.values()), default=0)
    order = sorted(measured, key=lambda name: measured[name]["median"][graphed], reverse=descending)
    lines = [["server", *(heading for heading, _, _ in columns), *extras, ""]]
    for name in order:
        median = measured[name]["median"]
        cells = [_cell(median.get(figure), form) for _, figure, form in columns]
        cells += [_EXTRAS[heading](measured[name]) for heading in extras]
        graph = "█" * round(_GRAPH_WIDTH * median[graphed] / longest) if longest else ""
        lines.append([name, *cells, graph])
    text = [f"\n{title}  [{row}]"]
    if measured:
        text += _aligned(lines)
    for name, result in results.items():
        if "left_out" in result:
            text.append(f"  {name}: left out, {result['left_out']}")
        text += [f"  {name}: {problem}" for problem in result.get("problems", [])]
    text += [f"  {'pass' if bar['met'] else 'FAIL'}  {bar['bar']}: {bar['value']}" for bar in bars]
    text += [f"  aim   {aim['bar']}: {aim['value']}{'' if aim['met'] else ', not reached'}" for aim in aims]
    return "\n".join(text)


def summary(rows):
    """How many bars were met, and which were not."""
    bars = [(name, bar) for name, row in rows.items() for bar in row["bars"]]
    if not bars:
        return "\nSandarac was not measured: no bars."
    missed = [f"  {name}: {bar['bar']}, is {bar['value']}" for name, bar in bars if not bar["met"]]
    return "\n".join([f"\n{len(bars) - len(missed)} of {len(bars)} bars met", *missed])


def _rounds(result):
    if "kept_rounds" not in result:
        return ""
    noisy = "" if result["kept_rounds"] else " noisy"
    return f"{result['kept_rounds']}/{len(result['rounds'])}{noisy}"


_EXTRAS = {
    "errors": lambda result: str(result["errors"]) if "errors" in result else "",
    "peak MiB": lambda result: f"{result['peak_mib']:.0f}" if "peak_mib" in result else "",
    "with application": lambda result: f"{result['median']['whole_mib']:.0f}" if "whole_mib" in result["median"] else "",
    "rounds": _rounds,
}


def _cell(value, form):
    if value is None:
        return "–"
    return form.format(value) if form else f"{value / 1e6:.1f}"


def _aligned(lines):
    widths = [max(len(line[index]) for line in lines) for index in range(len(lines[0]))]
    text = []
    for name, *cells, graph in lines:
        numbers = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths[1:]))
        text.append(f"  {name.ljust(widths[0])}  {numbers}  {graph}".rstrip())
    return text
