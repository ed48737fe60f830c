"""Shellac's three pages on two nodes with a shared tier: two more columns for the comparison of accelerators."""

import time

from .. import application, load, site
from ..line import Result
from . import stack as servers

_REQUESTS, _CLIENTS = 10000, 1000
_ROUNDS = 5


def pages(stack, options):
    """The pages from the node that fetched them, and from the other, which has them from the shared tier."""
    result = Result(f"Shellac's pages, ab -k -n {_REQUESTS} -c {_CLIENTS}: Apache, a node alone, and two nodes with a shared tier")
    files, database = site.build(stack.bench.working_directory("site"))
    for name, _, path, _ in application.PAGES:
        for turn in range(_ROUNDS):
            with stack.servers():
                _page(stack, result, (name, path), (files, database), turn)
    for name, *_ in application.PAGES:
        for row in ("first of two", "second of two"):
            ratio = result.ratio(f"{name}, {row}", f"{name}, alone", "per_second")
            result.notes.append(f"{name}: requests per second of the {row} / alone, median of the rounds: {ratio:.2f}")
    return result


def _page(stack, result, page, built, turn):
    name, path = page
    files, database = built
    apache = stack.adopt(stack.bench.start_apache(files, _CLIENTS, {"BENCH_DATABASE": str(database)}))
    memcached = stack.memcached(64)
    nodes = {
        "Apache": apache,
        "alone": stack.node(apache),
        "first of two": stack.node(apache, memcached, settings=servers.PATIENT),
        "second of two": stack.node(apache, memcached, settings=servers.PATIENT),
    }
    expected, _ = stack.body(apache, path)
    stack.body(nodes["alone"], path)
    stack.body(nodes["first of two"], path)
    deadline = time.monotonic() + 15
    while not servers.metric(nodes["first of two"], "tier_fills"):
        if time.monotonic() > deadline:
            raise load.LoadFailed(f"{name}: the first node does not fill the shared tier")
        time.sleep(0.02)
    body, status = stack.body(nodes["second of two"], path)
    result.check(body == expected, f"{name}: the body differs from Apache's")
    result.check(servers.FROM_TIER in status, f"{name}: the second node has the page not from the shared tier: {status}")
    for row in sorted(nodes, reverse=turn % 2):
        before = nodes[row].daemon.cpu_seconds()
        sample = load.ab(stack.client_core, nodes[row].port, path, _REQUESTS, _CLIENTS, True, servers.HOST)
        cpu = nodes[row].daemon.cpu_seconds() - before
        result.check(not sample["errors"], f"{name}, {row}: {sample['errors']} errors")
        figures = {figure: sample[figure] for figure in ("per_second", "p50_us", "p99_us")}
        result.add(f"{name}, {row}", cpu_us=cpu / max(1, sample["requests"]) * 1e6, **figures)
