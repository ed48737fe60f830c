"""What is said on the terminal, or to whatever collects it: nobody stops serving because nobody listens."""

from __future__ import annotations

import contextlib
import sys
from typing import TextIO


def say(text: str) -> None:
    """A line on standard error. Where that cannot be written, on a full disk or to a reader that has left, it is
    lost."""
    _write(f"sandarac-worker: {text}\n", sys.stderr)


def announce(text: str) -> None:
    """A line on standard output; the same holds."""
    _write(f"{text}\n", sys.stdout)


def _write(text: str, stream: TextIO | None) -> None:
    # None: it was closed before Python began.
    if stream is not None:
        with contextlib.suppress(OSError):
            stream.write(text)
            stream.flush()
