"""Registration in ZooKeeper, with kazoo: ``sandarac-worker[zookeeper]``."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

from .registry import LEASE, Entry, Live, Registry, Unavailable

#: Seconds that ZooKeeper may take to answer.
_PATIENCE = 3.0


class ZooKeeper(Registry):
    """``address`` is ``HOST:PORT[,HOST:PORT…]/PATH``. Raises ``ValueError`` where it is not, and ``ImportError`` where
    kazoo is missing."""

    def __init__(self, address: str) -> None:
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
        self._registered: frozenset[Entry] = frozenset()

    def keep(self, entries: frozenset[Entry]) -> Live:
        try:
            return self._keep(entries)
        except self._failures as error:
            raise Unavailable(f"ZooKeeper: {error or type(error).__name__}") from error

    def close(self) -> None:
        # Ends the session, and with it what is registered.
        self._client.stop()
        self._client.close()

    def _keep(self, entries: frozenset[Entry]) -> Live:
        if not self._started:
            # From here on it connects by itself, whenever it can.
            self._started = True
            self._client.start_async().wait(_PATIENCE)
        if not self._client.connected:
            raise Unavailable("ZooKeeper: not connected")
        data = self._read()
        session = self._client.client_id[0]
        if session != self._session:
            self._session, self._registered = session, frozenset()
        for entry in self._registered - entries:
            self._delete(entry)
            self._registered -= {entry}
        for entry in entries - self._registered:
            self._create(entry)
            self._registered |= {entry}
        return Live.read(data)

    def _read(self) -> bytes:
        try:
            data, _ = self._client.get_async(self._path).get(timeout=_PATIENCE)
        except self._absent:
            return b""
        return bytes(data)

    def _create(self, entry: Entry) -> None:
        path = self._node(entry)
        for _ in range(2):
            made = self._client.create_async(path, entry.data, ephemeral=True, makepath=True)
            try:
                made.get(timeout=_PATIENCE)
                return
            except self._exists:
                # Of an earlier session, which is about to expire: the address is ours now.
                self._delete(entry)
        raise Unavailable(f"ZooKeeper: someone else registers {entry.name}")

    def _delete(self, entry: Entry) -> None:
        with contextlib.suppress(self._absent):
            self._client.delete_async(self._node(entry)).get(timeout=_PATIENCE)

    def _node(self, entry: Entry) -> str:
        return f"{self._path}/providers/{entry.name}"
