"""Registration in ZooKeeper, with kazoo: ``sandarac-worker[zookeeper]``."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any

from .registry import LEASE, Entry, Live, Registry, Unavailable

#: Seconds that ZooKeeper may take to answer.
_PATIENCE = 3.0


class ZooKeeper(Registry):
    """``address`` is ``HOST:PORT[,HOST:PORT…]/PATH``. Raises ``ValueError`` where it is not, and ``ImportError`` where
    kazoo is missing."""

    def __init__(self, address: str) -> None:
        super().__init__()
        hosts, slash, path = address.partition("/")
        self._path = "/" + path.strip("/")
        if not hosts or not slash or self._path == "/":
            raise ValueError(f"not HOST:PORT[,HOST:PORT…]/PATH: {address}")
        from kazoo.client import KazooClient
        from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError
        from kazoo.handlers.threading import KazooTimeoutError

        # What is amiss is said by the registrar, once.
        logging.getLogger("kazoo").setLevel(logging.CRITICAL)
        self._client: Any = KazooClient(hosts=hosts, timeout=LEASE)
        self._failures = (KazooException, KazooTimeoutError, OSError)
        self._exists, self._absent = NodeExistsError, NoNodeError
        self._started = False
        #: The session that owns what is registered.
        self._session: int | None = None

    def keep(self, entries: frozenset[Entry], now: float, say: Callable[[str], None]) -> Live:
        try:
            return super().keep(entries, now, say)
        except self._failures as error:
            raise Unavailable(f"ZooKeeper: {error or type(error).__name__}") from error

    def renew(self) -> bool:
        if not self._started:
            # From here on it connects by itself, whenever it can, and keeps the session alive.
            self._started = True
            self._client.start_async().wait(_PATIENCE)
        if not self._client.connected:
            raise Unavailable("ZooKeeper: not connected")
        last, self._session = self._session, self._client.client_id[0]
        return self._session == last

    def look(self, entries: list[Entry]) -> tuple[bytes, set[Entry]]:
        settings = self._client.get_async(self._path)
        asked = [(entry, self._client.exists_async(self._node(entry))) for entry in entries]
        there = {entry for entry, answer in asked if answer.get(timeout=_PATIENCE) is not None}
        try:
            data, _ = settings.get(timeout=_PATIENCE)
        except self._absent:
            data = b""
        return bytes(data), there

    def add(self, entry: Entry) -> None:
        path = self._node(entry)
        for _ in range(2):
            made = self._client.create_async(path, entry.data, ephemeral=True, makepath=True)
            try:
                made.get(timeout=_PATIENCE)
                return
            except self._exists:
                # Of an earlier session, which is about to expire: the address is ours now.
                self.remove(entry)
        raise Unavailable(f"ZooKeeper: someone else registers {entry.name}")

    def remove(self, entry: Entry) -> None:
        with contextlib.suppress(self._absent):
            self._client.delete_async(self._node(entry)).get(timeout=_PATIENCE)

    def close(self) -> None:
        # Ends the session, and with it what is registered.
        self._client.stop()
        self._client.close()

    def _node(self, entry: Entry) -> str:
        return f"{self._path}/providers/{entry.name}"
