"""The explorer's page in a headless browser: go there, wait, press, drag, look."""

import base64
import time
from pathlib import Path
from typing import Any

from tests.report.browser import Page

PATIENCE = 300.0  # seconds, on a machine that has much else to do


def go(tab: Page, address: str) -> None:
    """Open the address and wait until the page has shown its first numbers."""
    tab.ask("Page.navigate", url="about:blank")
    tab.ask("Page.navigate", url=address)
    wait(tab, "document.documentElement?.dataset.ready === 'yes'")


def wait(tab: Page, condition: str, patience: float = PATIENCE) -> None:
    """Until the condition is true in the page."""
    deadline = time.monotonic() + patience
    while not tab.evaluate(f"Boolean({condition})"):
        assert time.monotonic() < deadline, f"never came true: {condition}"
        time.sleep(0.03)


def settled(tab: Page, press: str, counter: str = "explorer.tabs.plane.svg.dataset.updates") -> None:
    """Do something in the page and wait for the answer to it."""
    before = int(tab.evaluate(f"{counter} ?? 0"))
    tab.evaluate(press)
    wait(tab, f"Number({counter}) > {before}")


def mouse(tab: Page, kind: str, x: float, y: float, **further: Any) -> None:
    tab.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1, **further)


def key(tab: Page, name: str) -> None:
    """Press and release a key."""
    for kind in ("keyDown", "keyUp"):
        tab.ask(
            "Input.dispatchKeyEvent", type=kind, key=name, text=name if len(name) == 1 and kind == "keyDown" else ""
        )


def shaped(tab: Page, width: int, height: int, dark: bool = False) -> None:
    """A window of this size, on a phone where it is narrow, by day or by night."""
    tab.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    tab.ask("Emulation.setEmulatedMedia", features=[scheme])


def photographed(tab: Page, path: Path) -> None:
    """What the window shows, as a PNG file."""
    path.write_bytes(base64.b64decode(tab.ask("Page.captureScreenshot", format="png")["data"]))
