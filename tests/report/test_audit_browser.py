"""The page in a real browser: every control does what it says, with the numbers of the audit."""

import csv
import io
import json
from dataclasses import replace

import pytest
import torch

from brittle.auditing.change import compare_audits
from brittle.auditing.curve import CurvePoint, TradeoffCurve
from brittle.report.audit_page import write_audit_page
from brittle.report.svg import number, share, source
from tests.report.browser import chromium, page
from tests.report.pages import audited_digits, loosened

pytestmark = pytest.mark.skipif(chromium() is None, reason="Chromium is not installed: `make browser` installs it")
TEXTS = "[...document.querySelectorAll('{}')].map(each => each.textContent)"
VALUES = [
    0.5,
    1e-3,
    9.9994e-4,
    0.00123456,
    999999.5,
    1e6,
    1.5e-7,
    -2.25,
    1000.5,
    99995.0,
    3.0,
    12.0,
    0.1 + 0.2,
    1e300,
    5e-324,
]
CATCH = """
  window.saved = [];
  const make = URL.createObjectURL;
  URL.createObjectURL = blob => { window.saved.push(blob); return make(blob); };
  HTMLAnchorElement.prototype.click = function () { window.names = [...(window.names || []), this.download]; };
"""


@pytest.fixture(scope="module")
def audited():
    found, network, data = audited_digits()
    return loosened(found), network, data


@pytest.fixture(scope="module")
def opened(audited, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    write_audit_page(*audited, folder / "audit.html", "An audit")
    with page(chromium(), folder / "profile") as tab:
        tab.look(1280, 900)
        tab.open(folder / "audit.html")
        yield tab, folder


@pytest.fixture
def tab(opened):
    """Whatever a test does, the page does not complain and asks for nothing."""
    yield opened[0]
    assert opened[0].complaints() == []
    assert all(address.startswith(("file:", "data:", "blob:")) for address in opened[0].addresses())


def texts(tab, selector):
    return tab.evaluate(TEXTS.format(selector))


def drag(tab, selector, value):
    tab.evaluate(
        f"(() => {{ const one = document.querySelector('{selector}'); one.value = {json.dumps(value)};"
        " one.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


def click(tab, selector):
    tab.evaluate(f"document.querySelector('{selector}').click()")


def column(tab, name):
    return texts(tab, f'#rows td[data-label="{name}"]')


def enclosures(found):
    """Proved and attacked radii of all examples, in their order."""
    weak = found.vulnerability
    lower, upper = torch.zeros_like(weak.free.norms), weak.free.norms.clone()
    lower[weak.certified.rows] = weak.certified.lower
    upper[weak.certified.rows] = torch.minimum(upper[weak.certified.rows], weak.certified.upper)
    return lower, upper


def test_numbers_read_the_same_in_the_browser(tab):
    rng = torch.Generator().manual_seed(0)
    random = (torch.randn(300, generator=rng) * 10 ** (12 * torch.rand(300, generator=rng) - 6)).double().tolist()
    values = [*VALUES, *random]
    rules = f"{source('js/numbers.js')}; const told = x => [number(x), number(x, 3), share(x)]"
    shown = tab.evaluate(f"(() => {{ {rules}; return {json.dumps(values)}.map(told); }})()")
    assert shown == [[number(x), number(x, 3), share(x)] for x in values]
    words = tab.evaluate(f"(() => {{ {rules}; return [null, NaN, Infinity, true].map(x => number(x)); }})()")
    assert words == ["–", "–", "∞", "yes"]


@pytest.mark.parametrize("r", [0.0, 0.3, 0.8, 5.0])
def test_the_attackers_slider_counts_the_examples(tab, audited, r):
    lower, upper = enclosures(audited[0])
    drag(tab, "#r-number", str(r))
    broken = int((upper <= r).sum())
    safe = int(((upper > r) & ((lower > r) | (r == 0))).sum())
    counted = [texts(tab, f"#{name}")[0].split()[0] for name in ("safe", "unknown", "broken")]
    assert list(map(int, counted)) == [safe, len(lower) - safe - broken, broken]
    drag(tab, "#r", 500)
    assert texts(tab, "#r-words")[0].startswith(
        share(
            float(tab.evaluate("document.querySelector('#r-number').value"))
            / audited[0].vulnerability.norm_of_examples,
            1,
        )[:3]
    )


def test_sliding_along_the_flip_changes_the_answer(tab, audited):
    found, network, data = audited
    weak = found.vulnerability
    row = int((weak.free.norms - weak.free.median).abs().argmin())
    name = found.by_example()["label"][row]
    assert f"example {int(weak.examples[row])}, a typical one" in texts(tab, "#median .who")[0]
    pictures = []
    for step, wrong in ((0, False), (30, False), (60, True)):
        drag(tab, "#median .along", step)
        told = texts(tab, "#median .told")[0]
        length = 1.5 * step / 60 * float(weak.free.norms[row])
        assert told.startswith(f"Moved by {number(length, 3)}: answer ")
        answer = texts(tab, "#median .answer")[0]
        assert (answer != name) == wrong
        point = data.X[weak.examples[row]] + 1.5 * step / 60 * weak.perturbations[row]
        assert answer == found.class_name(float(network.predict(point[None])[0]))
        pictures.append(tab.evaluate("document.querySelector('#median .after canvas').toDataURL()"))
    assert len(set(pictures)) == 3


def test_the_picture_of_an_example_is_the_example(tab, audited):
    found, _, data = audited
    drag(tab, "#median .along", 0)
    weak = found.vulnerability
    row = int((weak.free.norms - weak.free.median).abs().argmin())
    shades = tab.evaluate(
        "(() => { const one = document.querySelector('#median .after canvas');"
        " return [...one.getContext('2d').getImageData(0, 0, 8, 8).data].filter((_, place) => place % 4 === 0); })()"
    )
    expected = (255 * data.X[weak.examples[row]]).round()
    assert (torch.tensor(shades) - expected).abs().max() <= 1


def test_the_slice_shows_the_proved_ball_and_the_boundary(tab, audited):
    lower, upper = enclosures(audited[0])
    row = tab.evaluate("JSON.parse(document.querySelector('#content').textContent).examples.median")
    ball, flip, middle = (
        float(tab.evaluate(f"document.querySelector('#median .slice {selector}').getAttribute('{name}')"))
        for selector, name in ((".ball", "r"), (".moving", "cx"), (".ball", "cx"))
    )
    drag(tab, "#median .along", 40)
    flip = float(tab.evaluate("document.querySelector('#median .slice .moving').getAttribute('cx')"))
    assert ball / (flip - middle) == pytest.approx(float(lower[row] / upper[row]), rel=1e-3)
    assert len(tab.evaluate("document.querySelector('#median .slice .edge').getAttribute('d')")) > 100


def test_the_table_sorts_by_every_column(tab, audited):
    lower, upper = enclosures(audited[0])
    click(tab, "#more")
    assert column(tab, "distance") == [number(float(each)) for each in upper.sort().values]
    click(tab, 'th[data-name="distance"] button')
    assert column(tab, "distance") == [number(float(each)) for each in upper.sort(descending=True).values]
    assert tab.evaluate("document.querySelector('th[data-name=distance]').getAttribute('aria-sort')") == "descending"
    click(tab, 'th[data-name="proved"] button')
    proved = [
        "–" if low == 0 < high else number(low)
        for low, high in sorted(zip(lower.tolist(), upper.tolist(), strict=True))
    ]
    assert sorted(column(tab, "proved")) == sorted(proved)
    assert [each for each in column(tab, "proved") if each != "–"] == [each for each in proved if each != "–"]
    click(tab, 'th[data-name="example"] button')
    assert column(tab, "example") == [str(each) for each in sorted(audited[0].vulnerability.examples.tolist())]
    click(tab, 'th[data-name="class"] button')
    assert column(tab, "class") == sorted(audited[0].by_example()["label"])
    click(tab, 'th[data-name="distance"] button')


def test_the_table_can_be_filtered(tab, audited):
    found = audited[0]
    labels, norms = found.by_example()["label"], found.vulnerability.free.norms
    drag(tab, "#by-class", "3")
    assert column(tab, "class") == ["3"] * labels.count("3")
    click(tab, "#weakest")
    weakest = norms.argsort()[:10].tolist()
    assert len(column(tab, "class")) == sum(labels[row] == "3" for row in weakest)
    drag(tab, "#by-class", "")
    assert column(tab, "distance") == [number(float(norms[row])) for row in weakest]
    click(tab, "#weakest")
    for status, words in (
        ("proved", "proved"),
        ("open", "by attack"),
        ("exact", "exactly"),
        ("error", "wrong as it is"),
    ):
        drag(tab, "#by-status", status)
        assert set(column(tab, "known")) == {words}
    drag(tab, "#by-status", "")
    drag(tab, "#by-number", "3")
    assert all(each.startswith("3") for each in column(tab, "example"))
    assert texts(tab, "#count")[0] == f"{len(column(tab, 'example'))} of 40 examples"
    drag(tab, "#by-number", "")


def test_an_example_opens_and_the_arrows_lead_to_its_neighbours(tab):
    click(tab, "#rows tr:nth-child(3) button")
    shown = column(tab, "example")
    assert texts(tab, "#opened .bar b") == [f"Example {shown[2]}"]
    assert tab.evaluate("document.querySelector('#opened').open")
    tab.evaluate("document.querySelector('#opened .next').focus()")
    tab.press("ArrowRight")
    assert texts(tab, "#opened .bar b") == [f"Example {shown[3]}"]
    click(tab, "#opened .previous")
    assert texts(tab, "#opened .bar b") == [f"Example {shown[2]}"]
    assert tab.evaluate("document.querySelectorAll('#opened .slice svg').length") == 1
    click(tab, "#opened .close")
    assert not tab.evaluate("document.querySelector('#opened').open")


def test_an_example_that_is_wrong_says_so(tab, audited):
    drag(tab, "#by-status", "error")
    click(tab, "#rows tbody button")
    assert "wrong as it is" in texts(tab, "#opened .who")[0]
    assert tab.evaluate("document.querySelector('#opened .slide').hidden")
    click(tab, "#opened .close")
    drag(tab, "#by-status", "")


def test_terms_are_explained(tab):
    click(tab, "button.term[popovertarget=term-proved]")
    assert tab.evaluate("document.querySelector('#term-proved').matches(':popover-open')")
    box = tab.evaluate(
        "(({left, right, top}) => [left, right, top])(document.querySelector('#term-proved').getBoundingClientRect())"
    )
    assert box[0] >= 0
    assert box[1] <= 1280
    tab.evaluate("document.querySelector('#term-proved').hidePopover()")


def test_downloads_hold_the_audit(tab, audited):
    found = audited[0]
    tab.evaluate(f"(() => {{ {CATCH} }})()")
    for name in ("json", "csv", "latex"):
        click(tab, f"#get-{name}")
    whole, table, latex = (tab.evaluate(f"window.saved[{place}].text()") for place in range(3))
    assert json.loads(whole) == json.loads(json.dumps(found.to_json()))
    assert latex == found.to_latex()
    rows = list(csv.DictReader(io.StringIO(table)))
    columns = found.by_example()
    assert list(rows[0]) == list(columns)
    assert [float(row["free"]) for row in rows] == columns["free"]
    assert [row["lower"] for row in rows].count("") == 10
    tab.evaluate("document.querySelector('#attacker-chart .save').click()")
    tab.evaluate(
        "new Promise(done => { const wait = () => window.saved.length > 3 ? done() : setTimeout(wait, 20); wait(); })"
    )
    start = tab.evaluate("window.saved[3].arrayBuffer().then(all => [...new Uint8Array(all).slice(0, 4)])")
    assert bytes(start) == b"\x89PNG"
    assert tab.evaluate("window.names") == ["audit.json", "examples.csv", "audit.tex", "attacker.png"]


def test_another_audit_can_be_compared(opened, tab, audited):
    folder = opened[1]
    other, rng = audited[0].to_json(), torch.Generator().manual_seed(1)
    norms = other["vulnerability"]["free"]["norms"]
    factors = (0.5 + torch.rand(len(norms), generator=rng)).tolist()
    other["vulnerability"]["free"]["norms"] = [norm * factor for norm, factor in zip(norms, factors, strict=True)]
    other["vulnerability"]["certified"] = None
    (folder / "other.json").write_text(json.dumps(other))
    (folder / "broken.json").write_text("{}")
    choose(tab, folder / "broken.json")
    assert "is not the JSON of an audit" in texts(tab, "#change-problem")[0]
    choose(tab, folder / "other.json")
    change = compare_audits(
        json.loads((folder / "other.json").read_text()), json.loads(json.dumps(audited[0].to_json()))
    )
    assert change.examples == 40
    assert 0 < change.surely_farther < change.farther
    assert change.nearer > 0
    assert texts(tab, "#change-words") == [change.sentence]
    cells = texts(tab, "#measures td:nth-child(-n+3)")
    forms = [share if "share" in each.name or "accuracy" in each.name else number for each in change.measures]
    assert cells == [
        cell
        for each, form in zip(change.measures, forms, strict=True)
        for cell in (each.name, form(each.before), form(each.after))
    ]
    assert texts(tab, "#measures td:nth-child(4)")[-1] == "0 points"
    assert tab.evaluate("document.querySelectorAll('#change-chart circle').length") == 40


def choose(tab, file):
    tab.ask("DOM.enable")
    root = tab.ask("DOM.getDocument")["root"]["nodeId"]
    node = tab.ask("DOM.querySelector", nodeId=root, selector="#other")["nodeId"]
    tab.ask("DOM.setFileInputFiles", nodeId=node, files=[str(file)])
    tab.evaluate(
        "new Promise(done => { const wait = () => document.querySelector('#change').hidden &&"
        " document.querySelector('#change-problem').hidden ? setTimeout(wait, 20) : setTimeout(done, 100); wait(); })"
    )


def test_it_fits_a_phone_and_a_desk_by_day_and_by_night(tab):
    grounds = set()
    for width, phone in ((390, True), (800, False), (1280, False)):
        for dark in (True, False):
            tab.look(width, 900, dark, phone)
            assert tab.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
            grounds.add(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2
    click(tab, "#theme")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") in grounds - {"rgb(250, 250, 248)"}
    click(tab, "#theme")


def test_everything_is_open_on_paper(tab):
    tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert tab.evaluate("[...document.querySelectorAll('details')].every(each => each.open)")
    tab.look(760, 900)
    tab.ask("Emulation.setEmulatedMedia", media="print")
    try:
        widths = tab.evaluate("[...document.querySelectorAll('.cards svg.chart')].map(each => each.clientWidth)")
        assert max(widths) <= 16 * 26
        assert tab.evaluate("getComputedStyle(document.querySelector('#r')).display") == "none"
    finally:
        tab.ask("Emulation.setEmulatedMedia", media="")
        tab.look(1280, 900)


def test_a_point_of_the_curve_can_be_chosen(audited, opened, tmp_path):
    """The command of the point that was chosen goes back to its κ."""
    points = [
        CurvePoint("before", None, 1.0, 0.8, 0.4),
        *(CurvePoint("way", k, 1 - k / 20, 0.8 + 2 * k, 0.5) for k in (0.25, 0.5)),
    ]
    found = audited[0]
    curved = replace(
        found.remedies[0], curve=TradeoffCurve(20, 0.25, (*points, CurvePoint("after", 0.25, 0.99, 1.1, 0.6)))
    )
    write_audit_page(
        replace(found, remedies=(curved, found.remedies[1])), *audited[1:], tmp_path / "curve.html", "A curve"
    )
    tab = opened[0]
    tab.open(tmp_path / "curve.html")
    assert texts(tab, "button.course") == [curved.name]
    assert len(texts(tab, ".wide svg .course.shown circle")) == 2
    tab.evaluate("document.querySelectorAll('.wide circle.way')[1].dispatchEvent(new Event('click'))")
    assert texts(tab, "#choice code")[0].endswith(f"--remedy {curved.name} --out hard.npz --kappa 0.5")
    assert texts(tab, "#choice p") == [f"{curved.name}, κ = 0.5: ×2.25 on 20 examples, at 97.5%"]
    assert tab.complaints() == []
