"""What a line returns, and its table."""

import statistics
from dataclasses import dataclass, field

# Heading, figure, and how it is printed.
_COLUMNS = [
    ("CPU µs", "cpu_us", "{:.1f}"),
    ("req/s", "per_second", "{:.0f}"),
    ("bytes each", "bytes_each", "{:.0f}"),
    ("p50 µs", "p50_us", "{:.0f}"),
    ("p95 µs", "p95_us", "{:.0f}"),
    ("p99 µs", "p99_us", "{:.0f}"),
    ("max µs", "max_us", "{:.0f}"),
    ("waited", "late", "{:.0f}"),
    ("handshakes/s", "handshakes_per_second", "{:.0f}"),
    ("MiB", "mib", "{:.1f}"),
    ("instructions", "instructions", "{:.0f}"),
    ("origin requests", "origin_requests", "{:.0f}"),
    ("per object", "per_object", "{:.2f}"),
    ("from the tier", "from_tier", "{:.0%}"),
]


@dataclass
class Result:
    """A line as it was measured. `rows` has a list of samples, one for each round, for each that took part."""

    title: str
    rows: dict = field(default_factory=dict)
    bars: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    problems: list = field(default_factory=list)

    def add(self, row, **figures):
        self.rows.setdefault(row, []).append(figures)

    def median(self, row, figure):
        return statistics.median(sample[figure] for sample in self.rows[row])

    def ratio(self, row, other, figure):
        """The median over the rounds of the ratio of a figure."""
        pairs = zip(self.rows[row], self.rows[other])
        return statistics.median(mine[figure] / theirs[figure] for mine, theirs in pairs if theirs[figure])

    def bar(self, text, value, met):
        self.bars.append({"bar": text, "value": value, "met": bool(met)})

    def check(self, is_right, problem):
        if not is_right and problem not in self.problems:
            self.problems.append(problem)

    def check_played(self, row, played, tier_share=None):
        """That all answers were right, and that so many at least came from the shared tier, as a share."""
        self.check(not played.errors, f"{row}: {played.errors} errors {played.complaints}")
        share = played.from_tier / max(1, played.answered)
        if tier_share is not None:
            self.check(share >= tier_share, f"{row}: only {share:.1%} of the answers came from the shared tier")

    def as_dict(self):
        """The result as it is kept, with medians."""
        rows = {
            name: {"median": {figure: self.median(name, figure) for figure in samples[0]}, "rounds": samples}
            for name, samples in self.rows.items()
        }
        return {"title": self.title, "rows": rows, "bars": self.bars, "notes": self.notes, "problems": self.problems}


def table(name, result):
    """The table of a line, its bars below."""
    rows = result.as_dict()["rows"]
    columns = [column for column in _COLUMNS if any(column[1] in row["median"] for row in rows.values())]
    lines = [["", *(heading for heading, _, _ in columns)]]
    for row, figures in rows.items():
        median = figures["median"]
        lines.append([row, *(form.format(median[figure]) if figure in median else "" for _, figure, form in columns)])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    text = [f"\n{result.title}  [{name}]"]
    for row, *cells in lines if rows else []:
        text.append(f"  {row.ljust(widths[0])}  " + "  ".join(cell.rjust(width) for cell, width in zip(cells, widths[1:])))
    text += [f"  {note}" for note in result.notes]
    text += [f"  PROBLEM {problem}" for problem in result.problems]
    text += [f"  {'pass' if bar['met'] else 'FAIL'}  {bar['bar']}: {bar['value']}" for bar in result.bars]
    return "\n".join(text)
