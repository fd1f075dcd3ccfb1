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
from brittle.data import Data, DataInfo, Sphere
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
    network = bt.networks.TorchLinearInit().draw(9, 20, rng)
    X = Sphere(9).sample(10, rng).X
    data = Data(X, network.predict(X), truth=DataInfo(dim=9, image=(3, 3)))
    bt.networks.save_network(network, place / "net.npz")
    bt.data.save_data(data, place / "data.npz")
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


SHORT = """
window.plane = explorer.tabs.plane; window.papers = explorer.tabs.papers; window.walk = explorer.tabs.walk;
window.at = (id) => document.getElementById(id);
window.slide = (id, value) => { at(id).value = value; at(id).dispatchEvent(new Event("input")); };
window.middle = (each) => { const b = each.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; };
window.caught = []; HTMLAnchorElement.prototype.click = function () { caught.push(this.download); };
"""


def entered(tab, address):
    go(tab, address)
    tab.evaluate(SHORT)
    wait(tab, "plane.found")


@pytest.fixture
def tab(browser, explorer):
    """A fresh page; at its end nothing was complained of, and nothing was asked of another machine."""
    browser.events.clear()
    entered(browser, explorer[0])
    yield browser
    assert browser.complaints() == []
    own = (explorer[0].rsplit("/", 2)[0], "about:", "data:", "blob:")
    assert all(each.startswith(own) for each in browser.addresses())


def text(tab, identity):
    return tab.evaluate(f"at({identity!r}).textContent")


def dragged(tab, start, stop):
    mouse(tab, "mousePressed", *start)
    mouse(tab, "mouseMoved", *stop)
    mouse(tab, "mouseReleased", *stop)


def test_it_listens_on_this_machine_alone(explorer):
    address, session = explorer
    port = int(re.search(r":(\d+)/", address).group(1))
    rows = [line.split() for line in Path(f"/proc/{session.process.pid}/net/tcp").read_text().splitlines()[1:]]
    listening = [row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")]
    assert listening == [f"0100007F:{port:04X}"]
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/")


def test_a_dragged_point_takes_everything_along_and_the_address_keeps_it(tab):
    x, y = tab.evaluate("middle(plane.layers.points.children[2].lastChild)")
    before = tab.evaluate("plane.found.radii.lower")
    dragged(tab, (x, y), (x + 12, y - 9))
    wait(tab, "!plane.found.behind && plane.found.points[2][0] === plane.points[2][0]")
    moved, radii = tab.evaluate("plane.points"), tab.evaluate("plane.found.radii.lower")
    assert radii != before
    table = torch.tensor(moved, dtype=torch.float64)
    weights = [torch.tensor(tab.evaluate(f"plane.network.{name}"), dtype=torch.float64) for name in "Wbv"]
    network, data = bt.networks.TwoLayer(*weights), Data(table[:, :2], table[:, 2])
    assert bt.kkt.residual(network, data).stationarity < 1e-9
    bounds = bt.certificates.Exact(seconds=1.0, nodes=100).bound(network, data, rng=torch.Generator().manual_seed(0))
    assert torch.allclose(bounds.lower, torch.tensor(radii, dtype=torch.float64), rtol=0, atol=1e-9)
    assert text(tab, "read-smallest") == f"{float(bounds.lower.min()):.4g}"
    tab.evaluate("plane.c = 0.75; plane.push(0); at('link').click()")
    entered(tab, tab.evaluate("location.href"))
    assert tab.evaluate("plane.points") == moved
    assert tab.evaluate("plane.c") == 0.75
    again = torch.tensor(tab.evaluate("plane.found.radii.lower"), dtype=torch.float64)
    assert torch.allclose(bounds.lower, again, rtol=0, atol=1e-9)


def test_points_are_added_relabelled_moved_and_removed(tab):
    count = tab.evaluate("plane.points.length")
    tab.evaluate("at('add-minus').click()")
    corner = tab.evaluate("(() => { const b = plane.svg.getBoundingClientRect(); return [b.x + 30, b.y + 30]; })()")
    dragged(tab, corner, corner)
    wait(tab, f"plane.found.margins.length === {count + 1} && !plane.found.behind")
    added = tab.evaluate("plane.points.at(-1)")
    assert added[2] == -1
    settled(tab, "at('relabel').click()")
    assert tab.evaluate("plane.points.at(-1)") == [added[0], added[1], 1]
    tab.evaluate("plane.layers.points.lastChild.focus()")
    key(tab, "ArrowRight")
    assert tab.evaluate("plane.points.at(-1)[0]") > added[0]
    tab.evaluate("at('remove').click()")
    wait(tab, f"plane.found.margins.length === {count}")


def test_the_flow_is_played_and_the_jump_collapses_it(tab):
    tab.evaluate("plane.given.until = -3; plane.given.width = 25; at('train').click()")
    wait(tab, "plane.frames.length > 8 && plane.found.radii")
    assert tab.evaluate("plane.network.v.length") == 25
    assert "ln L = -3" in text(tab, "moment")
    assert not tab.evaluate("plane.historyBox.hidden")
    settled(tab, "slide('scrubber', 4)")
    assert tab.evaluate("plane.frame") == 4
    tab.evaluate("at('play').click()")
    assert tab.evaluate("plane.playing") is not None
    tab.evaluate("at('play').click()")
    settled(tab, "plane.to(plane.frames.length - 1)")
    settled(tab, "at('jump-kkt').click()")
    wait(tab, "plane.found.kkt && plane.found.kkt.stationarity < 1e-9")
    assert tab.evaluate("plane.network.v.length") < 25


def test_what_is_shown_and_saved(tab):
    for letter, layer in {"b": "balls", "f": "flips", "n": "neurons"}.items():
        before = tab.evaluate(f"plane.layers.{layer}.childElementCount")
        key(tab, letter)
        assert (tab.evaluate(f"plane.layers.{layer}.childElementCount") > 0) == (before == 0)
    smallest = tab.evaluate("plane.found.universal.smallest")
    tab.evaluate(f"plane.c = {1.0001 * smallest}; plane.push(0)")
    assert text(tab, "counter").startswith("20 of 20")
    assert tab.evaluate("plane.layers.universal.childElementCount") == 40
    tab.evaluate("plane.c = 0; plane.push(0)")
    assert text(tab, "counter").startswith("0 of 20")
    tab.evaluate("at('pin').click(); document.querySelector('#show input').click()")
    assert tab.evaluate("plane.layers.pinned.childElementCount") == 1
    assert tab.evaluate("plane.layers.shade.childElementCount") == 0
    half = tab.evaluate("plane.view.half")
    settled(tab, "at('zoom-out').click()")
    assert tab.evaluate("plane.found.grid.half") == pytest.approx(1.25 * half, rel=1e-4)
    tab.evaluate("at('save-png').click(); at('save-svg').click()")
    wait(tab, "caught.some((name) => name.endsWith('.png')) && caught.some((name) => name.endsWith('.svg'))")
    tab.evaluate("at('save-tikz').click(); at('save-csv').click()")
    assert tab.evaluate("caught.slice(-2).map((name) => name.split('.').at(-1))") == ["tex", "csv"]
    tab.evaluate("at('python').click()")
    wait(tab, "at('dialog').open")
    assert "bt.certificates.Exact" in text(tab, "dialog-body")
    tab.evaluate("at('dialog').close()")
    key(tab, "?")
    assert "KKT" in text(tab, "dialog-body")
    tab.evaluate("at('dialog').close()")
    key(tab, "p")
    assert tab.evaluate("document.body.classList.contains('lecture')")
    assert tab.evaluate("plane.layers.balls.childElementCount") == 0
    for _ in range(3):
        key(tab, "ArrowRight")
    assert "proved" in text(tab, "scene")
    assert tab.evaluate("plane.layers.balls.childElementCount") > 0


def test_the_papers_turn_green(tab):
    tab.evaluate("""(() => { const c = papers.about.papers.vardi2022.controls;
        c.dim.set = 300; c.examples.set = 6; c.width.set = 30;
        c.until = { label: "until", least: -20, most: -0.5, set: -1, whole: false }; })()""")
    key(tab, "2")
    wait(tab, "papers.root.dataset.runs > 0")
    green = "document.querySelector('#paper-theorems .dot').classList.contains('holds')"
    assert tab.evaluate(green)
    assert text(tab, "paper-counter").startswith("6 of 6")
    tab.evaluate("papers.to(0)")
    assert not tab.evaluate(green)
    tab.evaluate("slide('paper-c', 0)")
    assert text(tab, "paper-counter").startswith("0 of")


def test_the_walk_shows_the_numbers_of_the_command_line(tab, folder):
    answered = "walk.root.dataset.updates"
    key(tab, "3")
    wait(tab, f"{answered} > 0")
    settled(tab, "walk.choose(0)", answered)
    arguments = [str(folder / "net.npz"), "--data", str(folder / "data.npz"), "--method", "exact", "--examples", "1"]
    assert main(["certify", *arguments, "--json", str(folder / "out.json")]) == 0
    known = json.loads((folder / "out.json").read_text())
    for name in ("lower", "upper"):
        assert float(tab.evaluate(f"at('fact-{name}').dataset.value")) == pytest.approx(known[name][0], abs=1e-9)
    flip = tab.evaluate("walk.ray.first_flip")
    assert flip == pytest.approx(known["upper"][0], rel=1e-6)
    assert tab.evaluate("document.querySelectorAll('.pictures canvas').length") == 3
    settled(tab, "walk.wayChoice.value = 'random'; walk.wayChoice.dispatchEvent(new Event('change'))", answered)
    assert tab.evaluate("walk.ray.first_flip") != flip
    tab.evaluate("slide('walk-c', 1000)")
    marked = tab.evaluate("document.querySelectorAll('#examples .flipped').length")
    assert text(tab, "walk-counter").startswith(f"{marked} of ")
    settled(tab, "explorer.key({ key: 'ArrowRight', target: document.body, preventDefault() {} })", answered)
    assert tab.evaluate("walk.row") != 0
    shaped(tab, 390, 844, dark=True)
    try:
        for name in ("plane", "walk"):
            tab.evaluate(f"at('tab-{name}').click()")
            assert tab.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    finally:
        shaped(tab, 1280, 860)


def exported(tab, expression):
    """What the page would save, from the module that makes it."""
    return tab.evaluate(f"import('./static/export.js').then((made) => {expression})")


def test_the_table_of_the_points_holds_what_the_library_said(tab):
    wait(tab, "plane.found.radii && plane.found.universal")
    lines = exported(tab, "made.csv(...plane.table())").split("\r\n")
    rows = [dict(zip(lines[0].split(","), line.split(","), strict=True)) for line in lines[1:-1]]
    points, radii = (tab.evaluate(each) for each in ("plane.points", "plane.found.radii"))
    assert [[float(row["x"]), float(row["y"]), float(row["label"])] for row in rows] == points
    assert [float(row["proved_radius"]) for row in rows] == radii["lower"]
    assert [[float(row["flip_x"]), float(row["flip_y"])] for row in rows] == radii["flips"]
    assert exported(tab, "made.csv(['a'], [['x,\"y'], [null]])") == 'a\r\n"x,""y"\r\n\r\n'


def test_the_picture_for_latex_has_every_ball_and_is_closed(tab):
    wait(tab, "plane.found.radii")
    text = exported(tab, "made.tikz(plane.svg)")
    balls = tab.evaluate("plane.layers.balls.querySelectorAll('circle').length")
    assert balls >= 20
    assert text.count("circle [radius=") >= balls
    assert text.count("\\begin{tikzpicture}") == text.count("\\end{tikzpicture}") == 1
    assert text.count("{") == text.count("}")
    assert not re.search(r"NaN|undefined|null|#[0-9a-f]{3}", text)
    used, made = set(re.findall(r"(?:fill|draw|text)=(brittle\w+)", text)), set(re.findall(r"definecolor{(\w+)}", text))
    assert used == made
    tab.evaluate("explorer.show('papers')")
    wait(tab, "papers.root.dataset.runs > 0")
    chart = exported(tab, "made.tikz(papers.fan)")
    assert "rotate=90" in chart
    assert exported(tab, "made.csv(...papers.table())").count("\r\n") == 1 + tab.evaluate("papers.frames.length")


def test_numbers_of_points_that_were_refused_are_not_shown(tab):
    """The old balls beside new points would be taken for theirs."""
    wait(tab, "plane.found.radii")
    tab.evaluate("plane.edited(plane.points.map(([x, y]) => [x, y, 1]))")
    wait(tab, "plane.found === null")
    assert "one label" in text(tab, "status")
    assert text(tab, "read-smallest") == text(tab, "read-neurons") == "–"
    assert tab.evaluate("plane.layers.balls.childElementCount + plane.layers.boundary.childElementCount") == 0
    settled(tab, "plane.load()")
    assert text(tab, "read-smallest") != "–"
    tab.events[:] = [each for each in tab.events if "400 (Bad Request)" not in json.dumps(each)]


def test_a_pinned_network_stays_beside_the_hardened_one(tab):
    wait(tab, "plane.found.radii && plane.found.kkt")
    before = text(tab, "read-median")
    tab.evaluate("at('pin').click()")
    assert text(tab, "pinned-median") == f"pinned: {before}"
    key(tab, "h")
    wait(tab, "plane.found.origin === 'radius' && plane.found.radii")
    assert text(tab, "pinned-median") == f"pinned: {before}"
    assert float(text(tab, "read-median")) > float(before)
    assert tab.evaluate("explorer.state().plane.jump") == "radius"
    tab.evaluate("at('pin').click()")
    assert tab.evaluate("at('pinned-median')") is None


def test_when_the_explorer_has_ended_every_control_says_so(tab):
    wait(tab, "plane.found.radii")
    tab.evaluate("window.fetch = () => Promise.reject(new TypeError('Failed to fetch'))")
    for press in ("at('train').click()", "at('jump-kkt').click()", "at('again').click()"):
        tab.evaluate(f"at('status').textContent = ''; {press}")
        wait(tab, "at('status').textContent.includes('the explorer has ended')")
