"""The explorer as an ASGI application: pages, and one address for every question."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from brittle import __version__
from brittle.common.errors import InputError
from brittle.common.result import jsonable
from brittle.data import Data
from brittle.explorer import papers, points
from brittle.explorer.guard import Guard, TooLong
from brittle.explorer.papers import frames
from brittle.explorer.plane import JUMPS, Memory, plane
from brittle.explorer.python_lines import paper_lines, python_lines
from brittle.explorer.requests import JsonQuery
from brittle.explorer.start import LOSSES, WIDEST
from brittle.explorer.walk import NetworkWalk
from brittle.networks import PARTS as STARTS

LOGGER = logging.getLogger("brittle.explorer")
MOST_WAITING = 8  # questions
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
Answer = Callable[[JsonQuery], Any]


@dataclass(frozen=True, eq=False)
class ExplorerSubject:
    """What was named on the command line: a network to `walk` through, and one's `own` points for the laboratory."""

    walk: NetworkWalk | None = None
    own: Data | None = None


@dataclass(eq=False)
class Desk:
    """One question at a time, in a thread of its own; a queue that is too long is refused."""

    worker: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "explorer"))
    waiting: int = 0

    async def ask(self, work: Callable[..., Any], *arguments: Any) -> Any:
        if self.waiting >= MOST_WAITING:
            raise InputError("too many questions at once; wait for the answers")
        self.waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.worker, work, *arguments)
        finally:
            self.waiting -= 1


def application(subject: ExplorerSubject, token: str, port: int) -> ASGIApp:
    """The explorer of this subject, behind its guard."""
    desk = Desk()
    answers: dict[str, Answer] = {
        "points": lambda asked: {"points": points.preset(asked, subject.own)},
        "plane": partial(plane, Memory()),
        "python": lambda asked: {"lines": python_lines(asked)},
        "paper-python": lambda asked: {"lines": paper_lines(asked)},
    }
    streams: dict[str, Callable[[JsonQuery], Iterator[Any]]] = {"flow": frames, "paper": papers.paper}
    if subject.walk is not None:
        walk = subject.walk
        answers |= {"example": walk.example, "ray": walk.ray, "slice": walk.slice, "universal": walk.universal}
        answers |= {"walk-python": walk.python}
        answers["examples"] = lambda asked: walk.about()
    about = jsonable(describe_explorer(subject))
    routes = [
        Route("/", _file("index.html")),
        Route("/about", _answering(desk, lambda asked: about), methods=["POST"]),
        *(Route(f"/static/{path.name}", _file(path.name)) for path in _static().iterdir() if _kind(path.name)),
        *(Route(f"/{name}", _answering(desk, answer), methods=["POST"]) for name, answer in answers.items()),
        *(Route(f"/{name}", _streaming(desk, stream), methods=["POST"]) for name, stream in streams.items()),
    ]
    return Guard(Starlette(routes=routes), token, port)


def describe_explorer(subject: ExplorerSubject) -> dict[str, Any]:
    """What the page has to know before it asks anything."""
    return {
        "version": __version__,
        "walk": None if subject.walk is None else subject.walk.title,
        "presets": [*points.PRESETS, *(["own"] if subject.own is not None else [])],
        "jumps": {name: label for name, (label, _) in JUMPS.items()},
        "starts": list(STARTS),
        "losses": list(LOSSES),
        "papers": papers.describe_papers(),
        "most": {"points": points.MOST, "width": WIDEST},
    }


def _static() -> Any:
    return files("brittle.explorer") / "static"


def _kind(name: str) -> str | None:
    return KINDS.get(name[name.rfind(".") :])


def _file(name: str) -> Callable[[Request], Any]:
    content, kind = (_static() / name).read_bytes(), _kind(name)

    async def serve(request: Request) -> Response:
        return Response(content, media_type=kind)

    return serve


def _answering(desk: Desk, answer: Answer) -> Callable[[Request], Any]:
    async def serve(request: Request) -> Response:
        try:
            found = await desk.ask(answer, JsonQuery.of(await _json(request)))
            return JSONResponse(jsonable(found))
        except Exception as error:
            return _failure(error)

    return serve


def _streaming(desk: Desk, stream: Callable[[JsonQuery], Iterator[Any]]) -> Callable[[Request], Any]:
    """One JSON object per line; a page that leaves ends the work."""

    async def serve(request: Request) -> Response:
        try:
            steps = stream(JsonQuery.of(await _json(request)))
            first = await desk.ask(next, steps, None)
        except Exception as error:
            return _failure(error)
        return StreamingResponse(_lines(desk, first, steps), media_type="application/x-ndjson")

    return serve


async def _lines(desk: Desk, first: Any, steps: Iterator[Any]) -> AsyncIterator[str]:
    found = first
    while found is not None:
        yield json.dumps(jsonable(found)) + "\n"
        try:
            found = await desk.ask(next, steps, None)
        except Exception as error:
            yield json.dumps(json.loads(bytes(_failure(error).body))) + "\n"
            return


async def _json(request: Request) -> Any:
    body = await request.body()
    try:
        return json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise InputError("the request is no JSON") from None


def _failure(error: Exception) -> Response:
    if isinstance(error, InputError):
        return JSONResponse({"error": str(error)}, 400)
    if isinstance(error, TooLong):
        return JSONResponse({"error": "the request is too long"}, 413)
    LOGGER.exception("the explorer failed", exc_info=error)
    return JSONResponse({"error": f"this should not happen ({type(error).__name__}); the terminal says more"}, 500)
