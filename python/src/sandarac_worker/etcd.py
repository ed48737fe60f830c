"""Registration in etcd (3.4 or later), by its HTTP gateway."""

from __future__ import annotations

import base64
import http.client
import json
import math
import os
import re
import urllib.error
import urllib.request
from typing import Any

from .registry import LEASE, Entry, Registry, Unavailable

#: Seconds that etcd may take to answer.
_PATIENCE = 3.0
#: Keys that are asked for at a time: etcd takes 128 by default.
_AT_ONCE = 100
#: Where the password of the user is, as command lines are for all to see.
PASSWORD = "SANDARAC_ETCD_PASSWORD"

_URL = re.compile(r"http://(?:(?P<user>[^@/]+)@)?(?P<hosts>[^@/]+)(?P<prefix>/.*[^/])/?")


class Etcd(Registry):
    """``url`` is ``http://[USER@]HOST:PORT[,HOST:PORT…]/PREFIX``; raises ``ValueError`` where it is not."""

    def __init__(self, url: str, environment: dict[str, str] | None = None) -> None:
        super().__init__()
        found = _URL.fullmatch(url)
        if found is None:
            raise ValueError(f"not http://[USER@]HOST:PORT[,HOST:PORT…]/PREFIX: {url}")
        self._endpoints = found["hosts"].split(",")
        self._prefix: str = found["prefix"]
        self._user: str | None = found["user"]
        self._password = (os.environ if environment is None else environment).get(PASSWORD, "")
        self._token: str | None = None
        self._lease: str | None = None
        # Its proxies are for the web.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def renew(self) -> bool:
        if self._lease is not None and self._is_kept_alive():
            return True
        self._lease = str(self._call("lease/grant", {"TTL": math.ceil(LEASE)})["ID"])
        return False

    def look(self, entries: list[Entry]) -> tuple[bytes, set[Entry]]:
        keys = [_encode(f"{self._prefix}/settings".encode()), *map(self._key, entries)]
        settings, *found = self._values(keys)
        return settings or b"", {entry for entry, value in zip(entries, found) if value is not None}

    def add(self, entry: Entry) -> None:
        self._call("kv/put", {"key": self._key(entry), "value": _encode(entry.data), "lease": self._lease})

    def remove(self, entry: Entry) -> None:
        self._call("kv/deleterange", {"key": self._key(entry)})

    def close(self) -> None:
        if self._lease is not None:
            self._call("lease/revoke", {"ID": self._lease})

    def _is_kept_alive(self) -> bool:
        answer = self._call("lease/keepalive", {"ID": self._lease})
        # A lease that has expired has no time to live, which JSON leaves out.
        return int(answer.get("result", {}).get("TTL", 0)) > 0

    def _values(self, keys: list[str]) -> list[bytes | None]:
        """What each key has, in few requests."""
        values: list[bytes | None] = []
        for first in range(0, len(keys), _AT_ONCE):
            asked = [{"request_range": {"key": key}} for key in keys[first : first + _AT_ONCE]]
            answers = self._call("kv/txn", {"success": asked}).get("responses", [])
            if len(answers) != len(asked):
                raise Unavailable("etcd: not as many values as were asked for")
            for answer in answers:
                found = answer.get("response_range", {}).get("kvs") or [None]
                values.append(found[0] and base64.b64decode(found[0].get("value", "")))
        return values

    def _key(self, entry: Entry) -> str:
        return _encode(f"{self._prefix}/providers/{entry.name}".encode())

    def _call(self, method: str, message: dict[str, Any]) -> dict[str, Any]:
        """Asks one endpoint after another. What is asked may be done twice, which makes no difference."""
        complaint = ""
        for _ in self._endpoints:
            try:
                return self._ask(method, message)
            except urllib.error.HTTPError as error:
                complaint = _complaint(error)
                self._token = None
            except (OSError, http.client.HTTPException, ValueError) as error:
                complaint = str(error)
                self._token = None
            # The one that failed is the last to be asked again.
            self._endpoints.append(self._endpoints.pop(0))
        raise Unavailable(f"etcd: {complaint}")

    def _ask(self, method: str, message: dict[str, Any]) -> dict[str, Any]:
        if self._user is None:
            return self._post(method, message)
        is_new = self._token is None
        if is_new:
            self._authenticate()
        try:
            return self._post(method, message)
        except urllib.error.HTTPError as error:
            # Tokens expire.
            if error.code != 401 or is_new:
                raise
        self._authenticate()
        return self._post(method, message)

    def _authenticate(self) -> None:
        self._token = None
        answer = self._post("auth/authenticate", {"name": self._user, "password": self._password})
        self._token = str(answer.get("token", ""))

    def _post(self, method: str, message: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(
            f"http://{self._endpoints[0]}/v3/{method}",
            json.dumps(message).encode(),
            {"Content-Type": "application/json", **({"Authorization": self._token} if self._token else {})},
        )
        with self._opener.open(request, timeout=_PATIENCE) as response:
            answer = json.loads(response.read())
        if not isinstance(answer, dict):
            raise ValueError("this is no answer of etcd")
        return answer


def _complaint(error: urllib.error.HTTPError) -> str:
    with error:
        try:
            return str(json.loads(error.read())["error"])
        except (OSError, ValueError, LookupError, TypeError):
            return str(error)


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
