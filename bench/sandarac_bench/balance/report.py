"""Tables, medians, and the bars."""

import statistics

from .cases import HASHING

# Heading, figure, and how it is printed.
_COLUMNS = [
    ("loads/page", "loads_per_page", "{:.4f}"),
    ("requests/s", "per_second", "{:.0f}"),
    ("p50 ms", "p50_ms", "{:.1f}"),
    ("p99 ms", "p99_ms", "{:.1f}"),
    ("worker CPU ms", "worker_cpu_ms", "{:.3f}"),
    ("balancer CPU ms", "balancer_cpu_ms", "{:.3f}"),
    ("overlap", "overlap", "{:.0%}"),
    ("fairness", "fairness", "{:.3f}"),
    ("others", "others", "{:.0%}"),
]
#: The bars: fewer loads than `least_requests`, by the memory that there is, and more throughput.
_FEWER_LOADS = {0.5: 0.60, 1.0: 0.90, 2.0: 0.90}
_THROUGHPUT = 1.45
_P99_UNEQUAL = 1.3


def summarise(rounds):
    """Medians over the rounds of one algorithm, the rounds beside them; errors are added up."""
    median = {figure: statistics.median(each[figure] for each in rounds) for _, figure, _ in _COLUMNS}
    return {"median": median, "errors": sum(each["errors"] for each in rounds), "rounds": rounds}


def table(title, results):
    """The table of one case."""
    lines = [["algorithm", *(heading for heading, _, _ in _COLUMNS), "errors"]]
    for name, result in results.items():
        cells = [form.format(result["median"][figure]) for _, figure, form in _COLUMNS]
        lines.append([name, *cells, str(result["errors"])])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    text = [f"\n{title}"]
    for name, *cells in lines:
        text.append("  ".join([name.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells, widths[1:]))]))
    for name, result in results.items():
        text += [f"  {name}: {problem}" for each in result["rounds"] for problem in each["problems"]]
    return "\n".join(text)


def bars(case, results):
    """What `resume` is held to in a case: dicts of `bar`, `value` and `met`."""
    errors = sum(result["errors"] for result in results.values())
    found = [_bar("no errors", str(errors), errors == 0)]
    if "resume" not in results:
        return found
    own = results["resume"]["median"]
    if "least_requests" in results:
        other = results["least_requests"]["median"]
        if not case.unequal:
            wanted = _FEWER_LOADS[case.memory]
            fewer = 1 - own["loads_per_page"] / other["loads_per_page"]
            found.append(_bar(f"≥ {wanted:.0%} fewer loads than least_requests", f"{fewer:.1%}", fewer >= wanted))
        ratio = own["per_second"] / other["per_second"]
        found.append(_bar(f"≥ {_THROUGHPUT} × the throughput of least_requests", f"{ratio:.2f}", ratio >= _THROUGHPUT))
    rivals = {name: results[name]["median"] for name in HASHING if name in results}
    if rivals:
        found += _against_hashing(case, own, rivals)
    return found


def _against_hashing(case, own, rivals):
    """Against the best factor for each figure."""
    loads, best = min((each["loads_per_page"], name) for name, each in rivals.items())
    found = [_bar(f"no more loads than {best}, {loads:.4f}", f"{own['loads_per_page']:.4f}", own["loads_per_page"] <= loads)]
    rate, best = max((each["per_second"], name) for name, each in rivals.items())
    found.append(_bar(f"no less throughput than {best}, {rate:.0f}/s", f"{own['per_second']:.0f}/s", own["per_second"] >= rate))
    slowest, best = min((each["p99_ms"], name) for name, each in rivals.items())
    factor = _P99_UNEQUAL if case.unequal else 1.0
    bar = f"p99 {factor} × better than {best}, {slowest:.1f} ms" if case.unequal else f"p99 no worse than {best}, {slowest:.1f} ms"
    found.append(_bar(bar, f"{own['p99_ms']:.1f} ms", own["p99_ms"] * factor <= slowest))
    return found


def verdicts(found):
    """The bars of a case as lines."""
    return "\n".join(f"  {'pass' if bar['met'] else 'FAIL'}  {bar['bar']}: {bar['value']}" for bar in found)


def _bar(bar, value, met):
    return {"bar": bar, "value": value, "met": bool(met)}
