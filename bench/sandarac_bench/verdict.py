"""The bars each row is held against, whether what was measured meets them, and the aims, which are no condition."""

from . import application

SUBJECT = "sandarac"
# CPU time per request as a multiple of the floor.
_MAX_RATIO = {"hit-1k": 1.25, "pass-1k": 2.3, "hit-100k": 1.1, "hit-1m": 0.7}
# The same as a multiple of the floor of pass: a direction only, because that floor does not even look where a message ends.
_AIMED_PASS_RATIO = {"pass-1k": 1.15}
_FLOORS = ("floor", "floor-pass")
_MAX_IDLE_BYTES = 1.5 * 1024
_MAX_START_MS = 50
_SHELLAC_COLUMNS = [
    ("per_second", "requests/s", max),
    ("bytes_per_second", "transfer rate", max),
    ("peak_mib", "peak memory", min),
]


def bars(row, results):
    """The bars of a row as dicts of `bar`, `value` (both text) and `met`; empty when Sandarac was not measured."""
    own = results.get(SUBJECT)
    if own is None:
        return []
    if "median" not in own:
        return [_bar("measured", "no", False)]
    found = []
    if own["problems"]:
        found.append(_bar("does what the row says", "no", False))
    median = own["median"]
    if row == "idle":
        found.append(_bar("RSS ≤ 1.5 KiB", f"{median['rss'] / 1024:.2f} KiB", median["rss"] <= _MAX_IDLE_BYTES))
    elif row == "start":
        found.append(_bar("< 50 ms", f"{median['milliseconds']:.1f} ms", median["milliseconds"] < _MAX_START_MS))
    else:
        found.append(_bar("no errors", str(own["errors"]), own["errors"] == 0))
        found += _load_bars(row, results, median)
    return found


def aims(row, results):
    """What a row should come near to, as dicts like those of `bars`; the exit status does not depend on them."""
    ratio = results.get(SUBJECT, {}).get("median", {}).get("pass_ratio")
    if row not in _AIMED_PASS_RATIO or ratio is None:
        return []
    limit = _AIMED_PASS_RATIO[row]
    return [_bar(f"CPU ≤ {limit} × floor-pass", f"{ratio:.2f}", ratio <= limit)]


def _load_bars(row, results, median):
    rivals = {
        name: result["median"]
        for name, result in results.items()
        # An error is answered sooner than a page: who made errors is no measure.
        if name not in (SUBJECT, *_FLOORS) and "median" in result and not result["problems"] and not result["errors"]
    }
    if row in {each.name for each in application.ROWS}:
        return [] if results[SUBJECT]["errors"] else _shellac_bars(rivals, median)
    found = []
    if row in _MAX_RATIO:
        limit = _MAX_RATIO[row]
        found.append(_bar(f"CPU ≤ {limit} × floor", f"{median['ratio']:.2f}", median["ratio"] <= limit))
    elif "nginx" in rivals and not row.endswith("-paced"):
        limit = rivals["nginx"]["cpu_us"]
        found.append(_bar(f"CPU ≤ nginx's {limit:.1f} µs", f"{median['cpu_us']:.1f}", median["cpu_us"] <= limit))
    if rivals:
        best = min(rivals, key=lambda name: rivals[name]["p99_us"])
        limit = rivals[best]["p99_us"]
        value = f"{median['p99_us']:.0f} ({_p99_context(results, best)})"
        found.append(_bar(f"p99 ≤ {best}'s {limit:.0f} µs", value, median["p99_us"] <= limit))
    return found


def _p99_context(results, best):
    """How far the rounds agree on who has the shorter tail, and how long that of the floor is, which does nothing: what is of the
    client and the machine is in all of them."""
    own, other = ([sample["p99_us"] for sample in results[name]["rounds"]] for name in (SUBJECT, best))
    ratios = sorted(mine / theirs for mine, theirs in zip(own, other) if theirs)
    text = f"by round {ratios[0]:.2f} to {ratios[-1]:.2f} ×" if ratios else "no rounds in common"
    floor = results.get("floor", {}).get("median")
    return f"{text}; the floor has {floor['p99_us']:.0f}" if floor else text


def _shellac_bars(rivals, median):
    found = []
    rivals = {name: rivals[name] for name in application.RIVALS if name in rivals}
    for figure, label, better in _SHELLAC_COLUMNS:
        if rivals:
            best = better(rivals, key=lambda name: rivals[name][figure])
            limit = rivals[best][figure]
            met = better(median[figure], limit) == median[figure]
            found.append(_bar(f"first in {label} (else {best}, {_short(limit)})", _short(median[figure]), met))
    return found


def _short(number):
    return f"{number / 1e6:.1f}M" if number >= 1e6 else f"{number:.0f}"


def _bar(bar, value, met):
    return {"bar": bar, "value": value, "met": bool(met)}
