"""A client that speaks ASGI: no socket, no thread, no waiting."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

PORT, TOKEN = 8421, "secret"
HOST = f"127.0.0.1:{PORT}"
GOOD = {"host": HOST, "origin": f"http://{HOST}", "content-type": "application/json"}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        """The objects of a stream."""
        return [json.loads(line) for line in self.body.splitlines()]


def ask(
    app: Any, path: str, body: Any = None, *, method: str = "POST", headers: Any = GOOD, chunks: Any = None
) -> Answer:
    """One request; `path` begins behind the token, unless it begins with a slash."""
    path = path if path.startswith("/") else f"/{TOKEN}/{path}"
    parts = chunks or [json.dumps({} if body is None else body).encode() if method == "POST" else b""]
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    sent: list[Any] = []
    last = len(parts) - 1
    waiting = [{"type": "http.request", "body": part, "more_body": k < last} for k, part in enumerate(parts)]

    async def receive() -> Any:
        return waiting.pop(0) if waiting else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return Answer(
        sent[0]["status"],
        {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]},
        b"".join(each.get("body", b"") for each in sent[1:]),
    )
