"""A headless Chromium driven over its debugging pipe: no driver, no port, no network."""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)


def chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page:
    """One tab; `events` are all messages that came unasked."""

    def __init__(self, into: int, out: int) -> None:
        self.into, self.out = os.fdopen(into, "wb", 0), os.fdopen(out, "rb", 0)
        self.count, self.rest = 0, b""
        self.session: str | None = None
        self.events: list[dict[str, Any]] = []

    def ask(self, method: str, **params: Any) -> Any:
        self.count += 1
        message: dict[str, Any] = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.into.write(json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self.count:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _read(self) -> Any:
        while b"\0" not in self.rest:
            part = self.out.read(65536)
            assert part, "the browser has gone"
            self.rest += part
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def open(self, path: Path) -> None:
        seen = len(self.events)
        self.ask("Page.navigate", url=path.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events[seen:]):
            self.events.append(self._read())

    def evaluate(self, script: str) -> Any:
        result = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def look(self, width: int, height: int, dark: bool = False, phone: bool = False) -> None:
        """A screen of this size, by day or by night."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, width: int, height: int) -> bytes:
        """The top of the page as PNG."""
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(shot["data"])

    def press(self, key: str) -> None:
        """A key, as from a keyboard."""
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def addresses(self) -> list[str]:
        """Everything that the page asked for."""
        sent = [event for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def complaints(self) -> list[str]:
        return [
            json.dumps(event["params"])
            for event in self.events
            if event["method"] in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        ]


@contextmanager
def page(program: str, profile: Path) -> Iterator[Page]:
    """A tab in a browser of its own."""
    read_commands, write_commands = os.pipe()
    read_answers, write_answers = os.pipe()

    def connect() -> None:  # Chromium reads from descriptor 3 and writes to 4
        os.dup2(read_commands, 63)
        os.dup2(write_answers, 64)
        os.dup2(63, 3)
        os.dup2(64, 4)

    command = [program, *QUIET, f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(command, preexec_fn=connect, close_fds=False, stderr=subprocess.DEVNULL)
    os.close(read_commands)
    os.close(write_answers)
    tab = Page(write_commands, read_answers)
    try:
        target = tab.ask("Target.createTarget", url="about:blank")["targetId"]
        tab.session = tab.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            tab.ask(f"{domain}.enable")
        yield tab
    finally:
        process.kill()
        process.wait()
        tab.into.close()
        tab.out.close()
