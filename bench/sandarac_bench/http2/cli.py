"""The command line of `bench/http2`."""

from .. import lines
from .attack import ATTACKS, attacks
from .idle import idle
from .stack import Stack
from .work import forward, hit

LINES = {
    "hit-clear": hit(False, {"nginx": 0.6, "haproxy": 1.0, "h2o": 1.0}),
    "hit-tls": hit(True, {"nginx": 0.6}),
    "pass": forward,
    "idle": idle,
    "attack": attacks,
}
_KIND = "-http2"
_PROGRAMS = ["cc", "openssl", "curl", "h2load", "nginx", "haproxy", "h2o", "nghttpx"]


def main(arguments=None):
    """Runs the lines; the exit status is that of `lines.main`."""
    description = (
        "Measures HTTP/2 from clients beside nginx, HAProxy, h2o and nghttpx: CPU time of the server per request, memory of idle "
        "connections, and a victim's tail during attacks."
    )
    parser = lines.parser("bench/http2", description, LINES, _KIND)
    parser.add_argument("--attack-rounds", type=int, default=3, help="rounds of each attack (default: %(default)s)")
    parser.add_argument("--attacks", default="", help=f"comma-separated attacks (default: all): {', '.join(each.kind for each in ATTACKS)}")
    options = lines.options(parser, LINES, arguments)
    options.attacks = [name for name in options.attacks.split(",") if name]
    unknown = set(options.attacks) - {attack.kind for attack in ATTACKS}
    if unknown:
        parser.error(f"no attack {', '.join(sorted(unknown))}")
    return lines.main(options, LINES, _KIND, _PROGRAMS, {"cc", "openssl", "curl", "h2load"}, Stack)
