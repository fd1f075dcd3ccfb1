"""The server: on 127.0.0.1 only, until the process is told to end."""

import secrets
import socket
import sys
import threading
from collections.abc import Callable

import uvicorn

from brittle.common.errors import InputError
from brittle.explorer.app import ExplorerSubject, application

HOST = "127.0.0.1"
GRACE = 0.5  # seconds for open connections


def listening(port: int | None) -> socket.socket:
    """A socket of this machine alone; any free port unless one is asked for."""
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if sys.platform != "win32":  # there it would let two programs have the same port
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind((HOST, port or 0))
        door.listen(64)
    except OSError as error:
        door.close()
        why = error.strerror or str(error)
        raise InputError(f"--port is {port}; it cannot be listened on ({why}): take another, or none") from None
    return door


def serve(subject: ExplorerSubject, door: socket.socket, opened: Callable[[str], None], state: str = "") -> None:
    """Answer until a signal ends it; `opened` is told the address, `state` is what the page begins with."""
    port, token = door.getsockname()[1], secrets.token_urlsafe(24)
    options = uvicorn.Config(
        application(subject, token, port),
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
        http="h11",
        loop="asyncio",
        ws="none",
        limit_concurrency=32,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(options)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [door]}, daemon=True)
    thread.start()
    try:
        opened(f"http://{HOST}:{port}/{token}/" + (f"#{state}" if state else ""))
        while thread.is_alive():
            thread.join(1.0)
    finally:
        server.should_exit = True
        thread.join(GRACE)
