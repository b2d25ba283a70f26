"""Superset's REST API, as its own pages use it: a session with a token against forged requests. Not a test itself."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.cookiejar import CookieJar
from typing import Any
from urllib.parse import urlencode

TIMEOUT_SECONDS = 120.0


class Refused(Exception):
    """Superset's answer is an error; `text` is what its page would show."""

    def __init__(self, status: int, body: str) -> None:
        self.status = status
        self.text = shown(body)
        super().__init__(f"{status}: {self.text}")


class Api:
    """A logged-in user; paths are below /api/v1/ unless they begin with a slash.

    Raises Refused where Superset answers with an error.
    """

    def __init__(self, base: str, user: str, password: str) -> None:
        self._base = base
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        self._headers = {"Referer": base}
        login = {"username": user, "password": password, "provider": "db", "refresh": True}
        self._headers["Authorization"] = f"Bearer {self.post('security/login', login)['access_token']}"
        token = self.get("security/csrf_token/")["result"]
        self._headers["X-CSRFToken"] = token
        form = urlencode({"username": user, "password": password, "csrf_token": token}).encode()
        self._opener.open(f"{base}/login/", form, timeout=TIMEOUT_SECONDS).close()  # pages outside of the REST API

    def get(self, path: str) -> Any:
        return self._ask("GET", path, None)

    def post(self, path: str, body: Mapping[str, object]) -> Any:
        return self._ask("POST", path, body)

    def put(self, path: str, body: Mapping[str, object]) -> Any:
        return self._ask("PUT", path, body)

    def _ask(self, method: str, path: str, body: Mapping[str, object] | None) -> Any:
        data, headers = None, self._headers
        if body is not None:
            data, headers = json.dumps(body).encode(), {**headers, "Content-Type": "application/json"}
        address = f"{self._base}{path}" if path.startswith("/") else f"{self._base}/api/v1/{path}"
        request = urllib.request.Request(address, data, headers, method=method)
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
                return json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            with error:
                raise Refused(error.code, error.read().decode()) from None


def shown(body: str) -> str:
    """The messages of an error's body."""
    try:
        found = json.loads(body)
    except ValueError:
        return body
    if isinstance(found, dict) and found.get("errors"):
        return "\n".join(str(error.get("message")) for error in found["errors"])
    return str(found.get("message") or found.get("error") or found) if isinstance(found, dict) else body
