"""The certificate of servers with TLS."""

import subprocess

from . import tools

# The name of the certificate.
HOST = "bench.test"


def certificate(directory):
    """A self-signed certificate with a P-256 key: the files of the chain, of the key, and of both."""
    chain, key, pair = (directory / name for name in ("chain.pem", "key.pem", "pair.pem"))
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30"]
    command += ["-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}", "-out", chain, "-keyout", key]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        raise tools.Missing(f"openssl made no certificate: {done.stderr}")
    pair.write_text(chain.read_text() + key.read_text())
    for path in (chain, key, pair):
        # Some servers read their files as another user.
        path.chmod(0o644)
    return chain, key, pair
