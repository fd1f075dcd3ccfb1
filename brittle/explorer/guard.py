"""Who may come in: this machine, by this machine's name, from the explorer's own page, with the token."""

import json
import secrets
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 256 * 1024
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Guard:
    """Stands before `app`; `token` is the first part of every path, `port` the one that is listened on."""

    app: ASGIApp
    token: str
    port: int

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of this machine: any other is a stranger's that was made to point here."""
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # a websocket that nobody accepts is refused
        refusal = self._refusal(scope)
        if refusal is not None:
            await _answer(send, *refusal)
            return
        limited = _Limited(receive)
        inner = dict(scope, path=scope["path"][len(self.token) + 1 :])
        await self.app(inner, limited, _with_headers(send))

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if headers.get("host") not in self.hosts:
            return 403, f"this is {self.hosts[0]}, and another host was asked for"
        origin = headers.get("origin")
        own = [f"http://{host}" for host in self.hosts]
        if (scope["method"] not in ("GET", "HEAD") or origin is not None) and origin not in own:
            return 403, "only the explorer's own page may ask"
        _, _, rest = scope["path"].partition("/")
        token, slash, _ = rest.partition("/")
        if not secrets.compare_digest(token.encode(), self.token.encode()) or not slash:
            return 403, "the token is missing: open the address that the terminal shows"
        if scope["method"] == "POST" and headers.get("content-type", "").split(";")[0] != "application/json":
            return 415, "the content must be application/json"
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > LARGEST_BODY:
            return 413, f"the request is longer than {LARGEST_BODY} bytes"
        return None


class TooLong(Exception):
    """The body goes on and on, whatever its header said."""


@dataclass(eq=False)
class _Limited:
    """A body of limited length."""

    receive: Receive
    seen: int = 0

    async def __call__(self) -> Message:
        message = await self.receive()
        self.seen += len(message.get("body", b""))
        if self.seen > LARGEST_BODY:
            raise TooLong
        return message


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *_encoded(HEADERS)]
        await send(message)

    return sending


def _encoded(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


async def _answer(send: Send, status: int, message: str) -> None:
    body: Any = json.dumps({"error": message}).encode()
    headers = HEADERS | {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
    await send({"type": "http.response.start", "status": status, "headers": _encoded(headers)})
    await send({"type": "http.response.body", "body": body})
