"""The command line of `bench/tls`."""

from .. import lines
from .attack import attack
from .idle import idle
from .stack import Stack
from .work import handshake, hit

LINES = {
    "hit-1k": hit(1024, 0.65),
    "hit-100k": hit(102400, 0.55),
    "handshake": handshake("handshake, X25519", 0.65),
    "resumed": handshake("handshake resumed by a ticket, X25519", 0.9, resumed="yes"),
    # OpenSSL has the group since 3.5.
    "hybrid": handshake("handshake, X25519MLKEM768", names=("floor", "sandarac"), group="hybrid"),
    "idle": idle,
    "attack": attack,
}
_KIND = "-tls"


def main(arguments=None):
    """Runs the lines; the exit status is that of `lines.main`."""
    description = (
        "Measures TLS to clients beside a bare rustls responder, nginx and HAProxy: CPU time of the server per request and per "
        "handshake, memory of idle connections, and a victim's tail while another client makes handshakes."
    )
    parser = lines.parser("bench/tls", description, LINES, _KIND)
    parser.add_argument("--suite", choices=("aes128", "aes256"), default="aes128", help="the suite, with GCM (default: %(default)s)")
    options = lines.options(parser, LINES, arguments)
    return lines.main(options, LINES, _KIND, ["cc", "openssl", "nginx", "haproxy"], {"cc", "openssl"}, Stack)
