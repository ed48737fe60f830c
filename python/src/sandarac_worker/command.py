"""The command ``sandarac-worker``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from . import __version__
from .console import say
from .control import Plan
from .etcd import PASSWORD, Etcd
from .fields import Malformed, read_version
from .listener import Tcp
from .registry import Registry
from .resume import HISTORY, Settings
from .runner import NotStarted, Runner
from .zookeeper import ZooKeeper


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs it; returns the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        Settings(options.history, options.max_skill_age)
        if options.app_version is not None:
            read_version(options.app_version)
        if options.bind is not None:
            tcp = Tcp.parse(options.bind)
            if (options.zookeeper or options.etcd) and tcp.host in ("0.0.0.0", "::") and not options.advertise:
                parser.error(f"--bind {options.bind}: --advertise has to say by which name others reach this machine")
        registries = _registries(options)
    except Malformed as error:
        parser.error(f"--app-version: {error}")
    except ValueError as error:
        parser.error(str(error))
    except ImportError:
        parser.error("--zookeeper takes kazoo: pip install sandarac-worker[zookeeper]")
    plan = Plan(
        app=options.app,
        slot=0,
        directory=os.path.abspath(options.chdir),
        mode=options.mode,
        bind=options.bind or "",
        interface=options.interface,
        threads=options.threads,
        history=options.history,
        max_skill_age=options.max_skill_age,
        version=options.app_version,
        trace_log=options.trace_log if options.trace_log in (None, "-") else os.path.abspath(options.trace_log),
        max_requests=options.max_requests,
        max_body=options.max_body,
        drain_timeout=options.drain_timeout,
    )
    try:
        runner = Runner(
            plan,
            options.workers,
            sockets=None if options.bind else options.sockets,
            resumes=options.resumes,
            addresses=options.addresses and os.path.abspath(options.addresses),
            registries=registries,
            advertise=options.advertise,
        )
    except NotStarted as error:
        say(str(error))
        return 1
    return runner.run()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sandarac-worker",
        description="Runs a WSGI or ASGI application in worker processes, each behind a socket of its own, that tell "
        "Sandarac which requests they are best at.",
        epilog="SIGTERM drains; SIGHUP replaces the workers one after another.",
    )
    parser.add_argument("app", metavar="MODULE:APP", help="the application; MODULE:MAKE() calls what makes it")
    parser.add_argument(
        "--workers", type=_count, default=os.cpu_count() or 1, metavar="N", help="processes (one a core)"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--sockets", default="sockets", metavar="DIR", help="directory of the workers' sockets (sockets)"
    )
    where.add_argument("--bind", metavar="HOST:PORT", help="TCP instead: port 0, or the first of N in a row")
    parser.add_argument("--addresses", metavar="FILE", help="file that names the workers in service, for a balancer")
    parser.add_argument(
        "--zookeeper", metavar="HOSTS/PATH", help="register there, as in zk1:2181,zk2:2181/shop, and take settings"
    )
    parser.add_argument(
        "--etcd",
        metavar="URL/PREFIX",
        help="register there, as in http://USER@etcd1:2379,etcd2:2379/shop, and take settings; the password is "
        f"${PASSWORD}",
    )
    parser.add_argument("--advertise", metavar="HOST", help="host to register instead of that of --bind")
    parser.add_argument("--mode", type=_mode, default=0o660, help="permissions of the sockets, octal (660)")
    parser.add_argument("--interface", choices=("auto", "wsgi", "asgi"), default="auto", help="what the application is")
    parser.add_argument("--threads", type=_count, default=1, metavar="K", help="application threads a worker (1)")
    parser.add_argument("--chdir", default=".", metavar="DIR", help="where the application is, and runs (.)")
    parser.add_argument("--resumes", metavar="DIR", help="keep the workers' résumés in files there")
    parser.add_argument("--history", type=int, default=HISTORY, metavar="N", help=f"requests remembered ({HISTORY})")
    parser.add_argument(
        "--max-skill-age", type=int, metavar="N", help="requests until a skill is dropped (10 × history)"
    )
    parser.add_argument("--app-version", metavar="TEXT", help="announced, for pools that serve a single version")
    parser.add_argument(
        "--max-requests", type=_natural, default=0, metavar="N", help="replace a worker after so many (never)"
    )
    parser.add_argument(
        "--max-body", type=_natural, default=0, metavar="BYTES", help="longest body of a request, WSGI only (1 GiB)"
    )
    parser.add_argument(
        "--drain-timeout", type=_seconds, default=30.0, metavar="S", help="seconds to end what is in flight (30)"
    )
    parser.add_argument("--trace-log", metavar="FILE", help="five lines a request; - for standard error")
    parser.add_argument("--version", action="version", version=f"sandarac-worker {__version__}")
    return parser


def _registries(options: argparse.Namespace) -> dict[str, Registry]:
    """Raises ``ValueError``, and ``ImportError`` where kazoo is missing."""
    registries: dict[str, Registry] = {}
    if options.zookeeper is not None:
        registries["ZooKeeper"] = ZooKeeper(options.zookeeper)
    if options.etcd is not None:
        registries["etcd"] = Etcd(options.etcd)
    return registries


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _natural(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("not below 0")
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 86400:
        raise argparse.ArgumentTypeError("0 to 86400")
    return number


def _mode(text: str) -> int:
    number = int(text, 8)
    if not 0 <= number <= 0o777:
        raise argparse.ArgumentTypeError("000 to 777")
    return number
