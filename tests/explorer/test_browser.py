"""The explorer as a person meets it: a process of its own, a real browser, and every control."""

import json
import re
import signal
import urllib.request
from pathlib import Path

import pytest
import torch

import brittle as bt
from brittle.cli import main
from brittle.settings import Data, Sphere, Truth
from tests.explorer.tab import go, key, mouse, settled, shaped, wait
from tests.processes import Session, needs_proc
from tests.report.browser import chromium, page

pytestmark = [
    needs_proc,
    pytest.mark.skipif(chromium() is None, reason="Chromium is not installed: `make browser` installs it"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A network on pictures of nine pixels, in files."""
    place = tmp_path_factory.mktemp("explored")
    rng = torch.Generator().manual_seed(0)
    network = bt.networks.PyTorch().draw(9, 20, rng)
    X = Sphere(9).sample(10, rng).X
    data = Data(X, network.predict(X), truth=Truth(dim=9, image=(3, 3)))
    bt.networks.save_network(network, place / "net.npz")
    bt.settings.save_data(data, place / "data.npz")
    return place


@pytest.fixture(scope="module")
def explorer(folder):
    """The command as a person starts it, without opening a browser; Ctrl-C ends it with one line."""
    files = [str(folder / "net.npz"), "--data", str(folder / "data.npz")]
    with Session("-m", "brittle", "explore", *files, "--no-browser") as session:
        line = session.process.stderr.readline().decode()
        yield re.search(r"http://127\.0\.0\.1:\d+/\S+/", line).group(), session
        code, error = session.ended_by(signal.SIGINT)
        assert code == 128 + signal.SIGINT
        assert error.splitlines()[-1] == "brittle: interrupted"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with page(chromium(), tmp_path_factory.mktemp("profile")) as tab:
        shaped(tab, 1280, 860)
        yield tab


@pytest.fixture
def tab(browser, explorer):
    """A fresh page; at its end nothing was complained of, and nothing was asked of another machine."""
    browser.events.clear()
    go(browser, explorer[0])
    yield browser
    assert browser.complaints() == []
    assert all(
        each.startswith((explorer[0].rsplit("/", 2)[0], "about:", "data:", "blob:")) for each in browser.addresses()
    )


def press(tab, identity):
    tab.evaluate(f"document.getElementById({identity!r}).click()")


def plane(tab, what):
    return tab.evaluate(f"explorer.tabs.plane.{what}")


def text(tab, identity):
    return tab.evaluate(f"document.getElementById({identity!r}).textContent")


def middle(tab, point):
    """Where a point is in the window."""
    script = f"(() => {{ const b = document.querySelector('[data-point=\"{point}\"] :last-child').getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }})()"
    return tab.evaluate(script)


def test_it_listens_on_this_machine_alone(explorer):
    address, session = explorer
    port = int(re.search(r":(\d+)/", address).group(1))
    rows = [line.split() for line in Path(f"/proc/{session.process.pid}/net/tcp").read_text().splitlines()[1:]]
    listening = [row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")]
    assert listening == [f"0100007F:{port:04X}"]
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/")


def test_a_dragged_point_takes_everything_along(tab):
    x, y = middle(tab, 2)
    before = plane(tab, "found.radii.lower")
    mouse(tab, "mousePressed", x, y)
    mouse(tab, "mouseMoved", x + 12, y - 9)
    mouse(tab, "mouseReleased", x + 12, y - 9)
    wait(
        tab,
        "!explorer.tabs.plane.found.behind && explorer.tabs.plane.found.points[2][0] === explorer.tabs.plane.points[2][0]",
    )
    moved, radii = plane(tab, "points"), plane(tab, "found.radii.lower")
    assert radii != before
    table = torch.tensor(moved, dtype=torch.float64)
    weights = [torch.tensor(plane(tab, f"network.{name}"), dtype=torch.float64) for name in "Wbv"]
    network, data = bt.networks.TwoLayer(*weights), Data(table[:, :2], table[:, 2])
    assert bt.margin.residual(network, data).stationarity < 1e-9
    bounds = bt.certificates.Exact(seconds=1.0, nodes=100).bound(network, data, rng=torch.Generator().manual_seed(0))
    assert torch.allclose(bounds.lower, torch.tensor(radii, dtype=torch.float64), rtol=0, atol=1e-9)
    assert text(tab, "read-smallest") == f"{float(bounds.lower.min()):.4g}"


def test_points_are_added_relabelled_moved_and_removed(tab):
    count = len(plane(tab, "points"))
    box = tab.evaluate(
        "(() => { const b = explorer.tabs.plane.svg.getBoundingClientRect(); return [b.x, b.y, b.width]; })()"
    )
    press(tab, "add-minus")
    mouse(tab, "mousePressed", box[0] + 30, box[1] + 30)
    mouse(tab, "mouseReleased", box[0] + 30, box[1] + 30)
    wait(tab, f"explorer.tabs.plane.found.margins.length === {count + 1} && !explorer.tabs.plane.found.behind")
    added = plane(tab, "points")[-1]
    assert added[2] == -1
    settled(tab, "document.getElementById('relabel').click()")
    assert plane(tab, "points")[-1] == [added[0], added[1], 1]
    tab.evaluate(f"document.querySelector('[data-point=\"{count}\"]').focus()")
    key(tab, "ArrowRight")
    assert plane(tab, "points")[-1][0] > added[0]
    press(tab, "remove")
    wait(tab, f"explorer.tabs.plane.found.margins.length === {count}")


def test_the_flow_is_played_and_the_jump_collapses_it(tab):
    tab.evaluate("explorer.tabs.plane.given.until = -3; explorer.tabs.plane.given.width = 25")
    press(tab, "train")
    wait(tab, "explorer.tabs.plane.frames.length > 8 && explorer.tabs.plane.found.radii")
    assert plane(tab, "network.v.length") == 25
    assert "ln L = -3" in text(tab, "moment")
    assert not tab.evaluate("explorer.tabs.plane.historyBox.hidden")
    settled(
        tab,
        "(() => { const s = document.getElementById('scrubber'); s.value = 4; s.dispatchEvent(new Event('input')); })()",
    )
    assert plane(tab, "frame") == 4
    press(tab, "play")
    assert plane(tab, "playing") is not None
    press(tab, "play")
    tab.evaluate("explorer.tabs.plane.to(explorer.tabs.plane.frames.length - 1)")
    settled(tab, "document.getElementById('jump-kkt').click()")
    wait(tab, "explorer.tabs.plane.found.kkt && explorer.tabs.plane.found.kkt.stationarity < 1e-9")
    assert plane(tab, "network.v.length") < 25


def test_switches_show_and_hide(tab):
    layers = {"b": "balls", "f": "flips", "n": "neurons"}
    for letter, layer in layers.items():
        before = plane(tab, f"layers.{layer}.childElementCount")
        key(tab, letter)
        assert (plane(tab, f"layers.{layer}.childElementCount") > 0) == (before == 0)
    tab.evaluate("document.querySelectorAll('#show input').forEach((each) => each.click())")
    assert plane(tab, "layers.shade.childElementCount") == 0
    press(tab, "pin")
    assert plane(tab, "layers.pinned.childElementCount") == 1
    half = plane(tab, "view.half")
    settled(tab, "document.getElementById('zoom-out').click()")
    assert plane(tab, "found.grid.half") == pytest.approx(1.25 * half, rel=1e-4)


def test_one_direction_flips_as_many_as_it_says(tab):
    smallest = plane(tab, "found.universal.smallest")
    tab.evaluate(f"explorer.tabs.plane.c = {1.0001 * smallest}; explorer.tabs.plane.push(0)")
    assert text(tab, "counter").startswith("20 of 20")
    assert plane(tab, "layers.universal.childElementCount") == 40
    tab.evaluate("explorer.tabs.plane.c = 0; explorer.tabs.plane.push(0)")
    assert text(tab, "counter").startswith("0 of 20")


def test_the_state_is_in_the_address(tab, explorer):
    settled(tab, "explorer.tabs.plane.moved(0, 0.25, 1.5)")
    wait(tab, "!explorer.tabs.plane.found.behind")
    tab.evaluate("explorer.tabs.plane.c = 0.75; explorer.tabs.plane.push(0)")
    points, radii = plane(tab, "points"), plane(tab, "found.radii.lower")
    wait(
        tab,
        "explorer.written === location.hash.slice(1) && JSON.parse(atob(explorer.written.replaceAll('-', '+').replaceAll('_', '/'))).plane.c === 0.75",
    )
    go(tab, tab.evaluate("location.href"))
    wait(tab, "explorer.tabs.plane.found")
    assert plane(tab, "points") == points
    assert plane(tab, "c") == 0.75
    assert torch.allclose(torch.tensor(plane(tab, "found.radii.lower")), torch.tensor(radii), rtol=0, atol=1e-9)


def test_pictures_python_and_keys(tab):
    tab.evaluate(
        "window.names = []; const click = HTMLAnchorElement.prototype.click; HTMLAnchorElement.prototype.click = function () { names.push(this.download); }"
    )
    for kind in ("png", "svg"):
        press(tab, f"save-{kind}")
        wait(tab, f"names.some((name) => name.endsWith('.{kind}'))")
    press(tab, "python")
    wait(tab, "document.getElementById('dialog').open")
    assert "bt.certificates.Exact" in text(tab, "dialog-body")
    tab.evaluate("document.getElementById('dialog').close()")
    key(tab, "?")
    assert "KKT" in text(tab, "dialog-body")
    tab.evaluate("document.getElementById('dialog').close()")


def test_lecture_mode_goes_from_scene_to_scene(tab):
    key(tab, "p")
    assert tab.evaluate("document.body.classList.contains('lecture')")
    assert plane(tab, "layers.balls.childElementCount") == 0
    for _ in range(3):
        key(tab, "ArrowRight")
    assert "proved" in text(tab, "scene")
    assert plane(tab, "layers.balls.childElementCount") > 0
    key(tab, "p")


def test_the_papers_turn_green(tab):
    tab.evaluate(
        "explorer.about.papers.vardi2022.controls.dim.set = 300; explorer.about.papers.vardi2022.controls.examples.set = 6; explorer.about.papers.vardi2022.controls.width.set = 10; explorer.tabs.papers.choose('vardi2022')"
    )
    key(tab, "2")
    wait(tab, "explorer.tabs.papers.root.dataset.runs > 0")
    assert tab.evaluate("document.querySelector('#paper-theorems .dot').classList.contains('holds')")
    assert text(tab, "paper-counter").startswith("6 of 6")
    tab.evaluate("explorer.tabs.papers.to(0)")
    assert not tab.evaluate("document.querySelector('#paper-theorems .dot').classList.contains('holds')")
    tab.evaluate(
        "(() => { const c = document.getElementById('paper-c'); c.value = 0; c.dispatchEvent(new Event('input')); })()"
    )
    assert text(tab, "paper-counter").startswith("0 of")


def test_the_walk_shows_the_numbers_of_the_command_line(tab, folder):
    key(tab, "3")
    wait(tab, "explorer.tabs.walk.root.dataset.updates > 0")
    settled(tab, "explorer.tabs.walk.choose(0)", "explorer.tabs.walk.root.dataset.updates")
    arguments = [str(folder / "net.npz"), "--data", str(folder / "data.npz"), "--method", "exact", "--examples", "1"]
    assert main(["certify", *arguments, "--json", str(folder / "out.json")]) == 0
    known = json.loads((folder / "out.json").read_text())
    for name in ("lower", "upper"):
        shown = float(tab.evaluate(f"document.getElementById('fact-{name}').dataset.value"))
        assert shown == pytest.approx(known[name][0], abs=1e-9)
    flip = tab.evaluate("explorer.tabs.walk.ray.first_flip")
    assert flip == pytest.approx(known["upper"][0], rel=1e-6)
    assert tab.evaluate("document.querySelectorAll('.pictures canvas').length") == 3
    settled(
        tab,
        "(() => { const w = explorer.tabs.walk; w.wayChoice.value = 'random'; w.wayChoice.dispatchEvent(new Event('change')); })()",
        "explorer.tabs.walk.root.dataset.updates",
    )
    assert tab.evaluate("explorer.tabs.walk.ray.first_flip") != flip
    tab.evaluate(
        "(() => { const c = document.getElementById('walk-c'); c.value = 1000; c.dispatchEvent(new Event('input')); })()"
    )
    marked = tab.evaluate("document.querySelectorAll('#examples .flipped').length")
    assert text(tab, "walk-counter").startswith(f"{marked} of ")
    settled(
        tab,
        "explorer.key({ key: 'ArrowRight', target: document.body, preventDefault() {} })",
        "explorer.tabs.walk.root.dataset.updates",
    )
    assert tab.evaluate("explorer.tabs.walk.row") != 0


@pytest.mark.parametrize("dark", [False, True])
def test_on_a_phone_nothing_is_cut_off(tab, explorer, dark):
    shaped(tab, 390, 844, dark)
    try:
        go(tab, explorer[0])
        for name in ("plane", "papers", "walk"):
            tab.evaluate(
                f"explorer.now = {name!r}; ['plane', 'papers', 'walk'].forEach((each) => {{ document.getElementById(each).hidden = each !== {name!r}; }})"
            )
            assert tab.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    finally:
        shaped(tab, 1280, 860)
