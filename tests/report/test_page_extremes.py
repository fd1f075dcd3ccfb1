"""The page of an audit where it is hardest to lay out: long names, radii far below what the data allow, any window."""

import json
from dataclasses import replace

import pytest

from brittle.report.audit_page import write_audit_page
from tests.report.browser import chromium, page
from tests.report.pages import audited_digits

pytestmark = pytest.mark.skipif(chromium() is None, reason="Chromium is not installed: `make browser` installs it")
LONG = ("Averylongclassnamewithoutanyspaceswhatsoeverthatcannotbebrokenanywhereatall", "A name of many words " * 4)
COUNTS = "['safe', 'unknown', 'broken'].map(id => document.getElementById(id).textContent)"
WIDER = """[...document.querySelectorAll('main *')].filter(one => {
  const place = one.closest('.panel, td, th, .tools') ?? document.body;
  return !one.closest('pre, .command') && one.getBoundingClientRect().right > place.getBoundingClientRect().right + 1;
}).map(one => one.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """A table of long names, on which the data allow a hundred times what the network gives."""
    found, network, data = audited_digits()
    features = tuple(f"the_number_of_days_since_the_customer_last_called_about_{place}" for place in range(64))
    named = replace(data, truth=replace(data.truth, names=LONG, features=features, image=None))
    far = replace(found.limit, median=100 * found.limit.median, radii=100 * found.limit.radii)
    folder = tmp_path_factory.mktemp("page")
    write_audit_page(replace(found, data=named, limit=far), network, named, folder / "audit.html", "An audit")
    with page(chromium(), folder / "profile") as tab:
        tab.look(1280, 900)
        tab.open(folder / "audit.html")
        yield tab, found
        assert tab.complaints() == []


@pytest.mark.parametrize(("width", "phone"), [(1280, False), (390, True)])
def test_long_names_stay_in_their_places(opened, width, phone):
    tab = opened[0]
    tab.look(width, 900, phone=phone)
    tab.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert tab.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    assert tab.evaluate(WIDER) == []


def test_a_commands_words_are_not_broken(opened):
    """A hyphen at the end of a line would be read as a minus of its own."""
    assert opened[0].evaluate("getComputedStyle(document.querySelector('#helps pre')).whiteSpace") == "pre"


def test_another_size_of_the_window_changes_no_count(opened):
    """What is typed is rounded; the median itself is counted."""
    tab, found = opened
    tab.look(1280, 900)
    before = tab.evaluate(COUNTS)
    tab.look(900, 900)
    tab.evaluate("window.dispatchEvent(new Event('resize'))")
    assert tab.evaluate(COUNTS) == before
    assert before[2].split()[0] == str(int((found.vulnerability.free.norms <= found.vulnerability.free.median).sum()))


def test_the_attackers_slider_ends_where_the_last_example_is_flipped(opened):
    tab, found = opened
    tab.evaluate(
        "(() => { const r = document.querySelector('#r'); r.value = 1000; r.dispatchEvent(new Event('input')); })()"
    )
    last = float(tab.evaluate("document.querySelector('#r-number').value"))
    assert last == pytest.approx(1.05 * float(found.vulnerability.free.norms.max()), rel=1e-3)
    assert tab.evaluate("document.querySelector('#r').getAttribute('aria-valuetext')") != "1000"


def test_the_filter_speaks_as_the_table_does(opened):
    shown = opened[0].evaluate("[...document.querySelectorAll('#by-status option')].map(each => each.textContent)")
    assert set(shown) <= {"all", "exactly", "proved", "by attack", "wrong as it is"}


def test_a_picture_has_the_ground_of_the_page_it_is_saved_from(opened):
    """Light ink on a white ground could not be read: the button decides, not the system alone."""
    tab = opened[0]
    tab.look(1280, 900)
    tab.evaluate("document.querySelector('#theme').click()")
    tab.evaluate("""(() => { window.saved = []; const make = URL.createObjectURL;
      URL.createObjectURL = blob => { window.saved.push(blob); return make(blob); };
      HTMLAnchorElement.prototype.click = () => {}; document.querySelector('#how-far .save').click(); })()""")
    corner = tab.evaluate("""new Promise(done => { const wait = async () => {
      if (!window.saved.length) return setTimeout(wait, 20);
      const picture = await createImageBitmap(window.saved[0]), canvas = document.createElement('canvas');
      const pen = canvas.getContext('2d');
      pen.drawImage(picture, 0, 0);
      done(JSON.stringify([...pen.getImageData(2, 2, 1, 1).data]));
    }; wait(); })""")
    tab.evaluate("document.querySelector('#theme').click()")
    assert max(json.loads(corner)[:3]) < 60
