"""The page of an audit as a file: complete, escaped, offline, and with the numbers of the audit."""

import base64
import hashlib
import json
import math
import re
from dataclasses import replace

import pytest
import torch

import brittle as bt
from brittle.auditing import CurvePoint, TradeoffCurve
from brittle.report.audit_charts import miss, nearest_miss, slack_bar
from brittle.report.audit_page import audit_page
from brittle.report.remedy_chart import wilson
from brittle.report.svg import Axis, density, number, share, tag, ticks, times
from brittle.report.words import Origin, ReportWords, describe_passed_cause
from brittle.theorems.comparison import at_least, at_most
from tests.report.pages import audited_digits, content_of

HASH = r"'sha256-([^']+)'"


@pytest.fixture(scope="module")
def audited():
    return audited_digits()


@pytest.fixture(scope="module")
def text(audited):
    return audit_page(*audited, title="An audit", origin=Origin("brittle audit x", 7, "my net.npz", "d.npz"))


def test_the_page_holds_every_part(text):
    parts = [
        "verdict",
        "median",
        "how-far",
        "why-card",
        "helps-card",
        "strip",
        "attacker",
        "why",
        "helps",
        "examples",
        "theorems",
        "sure",
        "compare",
    ]
    assert [part for part in parts if f'id="{part}"' not in text] == []
    assert len(text) < 3_000_000


def test_its_numbers_are_those_of_the_audit(audited, text):
    found = audited[0]
    assert content_of(text)["audit"] == json.loads(json.dumps(found.to_json()))
    weak, limit = found.vulnerability, found.limit
    headline = re.search(r"<h1>(.*?)</h1>", text)[1]
    assert f"{share(limit.share, 0)} of the protection" in headline
    evidence = re.search(r'id="how-far".*?</details>', text, re.DOTALL)[0]
    for radii in (weak.free, weak.gradient_step):
        assert f">{number(radii.median)}<" in evidence
    assert f">{number(weak.certified.median_lower)}<" in evidence
    for each in found.remedies:
        card = re.search(rf'data-remedy="{each.name}".*?</div>', text, re.DOTALL)[0]
        assert (times(each.factor) in card) == each.applied
        assert (number(each.radius_after, 3) in card) == each.applied
    for row in found.mechanisms:
        assert (row.sentence in found.weaknesses) == row.named


def test_the_gauge_is_as_long_as_the_shares(audited, text):
    gauge = re.search(r'<svg[^>]*class="bars gauge".*?</svg>', text, re.DOTALL)[0]
    widths = {kind: float(width) for width, kind in re.findall(r'width="([\d.]+)%"[^>]*class="(\w+)"', gauge)}
    limit = audited[0].limit
    assert widths["open"] / widths["rest"] == pytest.approx(limit.share, abs=1e-4)
    assert widths["proved"] / widths["rest"] == pytest.approx(limit.proved_share, abs=1e-4)


def test_nothing_is_fetched_and_nothing_is_trusted(audited):
    text = audit_page(*audited, title="</script><script>alert(1)</script>")
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text
    assert not re.findall(r'(?:src|href)="(?!data:|#)', text)
    assert " style=" not in text
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1].replace("&#39;", "'")
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    style, script = (re.search(rf"<{name}>(.*?)</{name}>", text, re.DOTALL)[1] for name in ("style", "script"))
    inline = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in (style, script)]
    assert re.findall(HASH, policy) == inline


def test_names_in_a_strangers_data_stay_names(audited):
    found, network, data = audited
    evil = replace(data, truth=replace(data.truth, names=("</script><b>", "8")))
    text = audit_page(replace(found, data=evil), network, evil, title="An audit")
    assert "</script><b>" not in text
    assert "</script><b>" in content_of(text)["table"]["label"]


def test_it_says_where_it_comes_from_and_what_to_do_next(text):
    assert "brittle audit x" in text
    assert "brittle harden &#39;my net.npz&#39; --data d.npz --remedy remove-off-subspace --out hard.npz" in text


def test_every_term_is_explained_where_it_stands(text):
    asked = set(re.findall(r'popovertarget="([^"]+)"', text))
    assert len(asked) > 15
    assert asked <= set(re.findall(r'class="meaning" id="([^"]+)"', text))


def test_theorems_that_do_not_apply_are_not_listed_one_by_one(audited, text):
    """The nearest miss stands alone, the others are folded."""
    rows = [row for row in audited[0].theorems if not row.applies]
    assert len(rows) > 5
    shown = re.search(r'id="theorems".*?<details>', text, re.DOTALL)[0]
    assert [row.id for row in rows if f">{row.id}<" in shown or f": {row.id}<" in shown] == [
        nearest_miss(audited[0].theorems).id
    ]


def test_a_miss_is_measured_in_powers_of_ten():
    assert [miss(row) for row in (at_most("a", 1, 2), at_most("a", 2e-3, 2e-6), at_least("a", 1, 100))] == [
        0,
        pytest.approx(3),
        2,
    ]
    assert [miss(row) for row in (at_most("a", 0.2, 0), at_least("a", -1, 1), at_most("a", math.nan, 1))] == [6, 6, 6]
    assert 'width="50.000%"' in slack_bar(at_most("a", 1.0, 1e-3))


def test_numbers_are_short_and_honest():
    values = (None, math.nan, math.inf, -math.inf, True, 0.123456, 7, 0.0, -0.0, 1e-9, 1.5e7, 123456.0, 1000.5, -0.25)
    words = ["–", "–", "∞", "-∞", "yes", "0.1235", "7", "0", "0", "10⁻⁹", "1.5·10⁷", "123456", "1001", "-0.25"]
    assert [number(value) for value in values] == words
    assert [share(value) for value in (0.6391, 1.0, 0.0042, 0.0, math.nan)] == ["63.9%", "100%", "0.42%", "0%", "–"]
    assert [times(value) for value in (1.0, 1.349, None)] == ["×1.00", "×1.35", "–"]


def test_the_headline_says_what_is_known(audited):
    found = audited[0]
    weak = found.vulnerability
    none = replace(found, vulnerability=replace(weak, free=replace(weak.free, median=math.inf)))
    assert ReportWords(none).headline.startswith("No change was found")
    assert ReportWords(replace(found, limit=None)).headline.startswith("Changing a training example by ")
    nearly = replace(found, limit=replace(found.limit, share=0.9))
    assert ReportWords(nearly).headline.endswith("little is left to gain.")
    attacked = replace(found, vulnerability=replace(weak, certified=None))
    assert "nothing is proved" in ReportWords(attacked).how_far


def test_of_a_network_that_is_wrong_the_page_says_so(audited):
    """Not that it gives 0% of some protection, or that nothing shorter than 0 flips it."""
    found, network, data = audited
    weak = found.vulnerability
    none = torch.zeros_like(weak.free.norms)
    wrong = replace(
        found,
        vulnerability=replace(weak, free=replace(weak.free, norms=none, median=0.0, interval=(0.0, 0.0))),
        limit=replace(found.limit, share=0.0, proved_share=0.0),
        remedies=tuple(replace(each, radius_before=0.0, accuracy_before=0.0) for each in found.remedies),
    )
    words = ReportWords(wrong)
    assert (
        words.headline
        == "This network is wrong on all 40 training examples: it has to be right before it can be robust."
    )
    assert words.how_far == "The network is wrong on all 40 training examples as they are: no change is needed."
    assert words.helps.startswith("A remedy keeps right answers right; this network first needs them.")
    some = replace(
        wrong, vulnerability=replace(weak, available=50, free=replace(wrong.vulnerability.free, norms=weak.free.norms))
    )
    assert "wrong on 1 of 40 audited training examples" in ReportWords(some).headline
    text = audit_page(wrong, network, data, "An audit")
    assert "there is nothing to flip" in text
    assert "10⁻¹³" not in text
    assert ">–<" not in re.search(r'id="helps-card".*?</svg>', text, re.DOTALL)[0]


def test_of_a_network_that_is_wrong_on_most_examples_the_remedies_have_no_factor(audited):
    """A median radius of 0, from which a remedy that asks for more and more goes its way."""
    found, network, data = audited
    weak = found.vulnerability
    free = replace(weak.free, norms=torch.zeros_like(weak.free.norms), median=0.0, interval=(0.0, 0.0))
    roles = (("before", None, 0.0), ("way", 0.5, 0.2), ("after", 1.0, 0.4))
    course = TradeoffCurve(20, 0.5, tuple(CurvePoint(role, kappa, 0.9, radius, 0.0) for role, kappa, radius in roles))
    first, *others = (replace(each, radius_before=0.0) for each in found.remedies)
    remedies = (replace(first, curve=course), *others)
    wrong = replace(found, vulnerability=replace(weak, free=free), remedies=remedies)
    page = audit_page(wrong, network, data, "An audit")
    assert f"{first.name}, κ = 0.5: radius 0.2 on 20 examples, at 90%" in page


def test_a_cause_that_passes_the_line_unnamed_says_why(audited):
    found = audited[0]
    row = next(each for each in found.mechanisms if each.name == "doubtful labels")
    beyond = replace(row, value=row.worst, named=False, sentence="")
    assert describe_passed_cause(beyond).startswith("Not named: so many examples lie among other classes")
    assert [
        describe_passed_cause(replace(beyond, named=True)),
        describe_passed_cause(replace(beyond, value=None)),
        describe_passed_cause(replace(beyond, value=0.0)),
    ] == [""] * 3
    assert all(
        not describe_passed_cause(each) or describe_passed_cause(each) in audit_page(*audited, "An audit")
        for each in found.mechanisms
    )


def test_a_change_too_small_for_a_share_is_said_by_its_length(audited):
    found = audited[0]
    tiny = replace(found, vulnerability=replace(found.vulnerability, norm_of_examples=1e9))
    assert f"by {number(found.vulnerability.free.median, 3)} fools it" in ReportWords(tiny).headline


def test_classes_are_listed_by_number(audited):
    found, network, data = audited
    names = replace(data, truth=replace(data.truth, names=("10", "9")))
    text = audit_page(replace(found, data=names), network, names, "An audit")
    assert re.findall(r'<td data-label="class">(.*?)</td>', text) == ["9", "10"]


@pytest.mark.parametrize("change", ["no limit", "no proof", "no remedies", "no flips", "no theorems"])
def test_a_page_is_written_whatever_is_missing(audited, change):
    found, network, data = audited
    weak = found.vulnerability
    nothing = replace(weak.free, norms=torch.full_like(weak.free.norms, math.inf), median=math.inf)
    changed = {
        "no limit": {"limit": None},
        "no proof": {"vulnerability": replace(weak, certified=None), "limit": replace(found.limit, proved_share=None)},
        "no remedies": {"remedies": ()},
        "no flips": {"vulnerability": replace(weak, free=nothing, perturbations=0 * weak.perturbations)},
        "no theorems": {"theorems": (), "plan": replace(found.plan, theorems=False)},
    }[change]
    assert audit_page(replace(found, **changed), network, data, "An audit").endswith("</html>")


def test_examples_without_a_shape_show_the_features_that_move_most(audited):
    found, network, data = audited
    flat = replace(data, truth=replace(data.truth, image=None))
    examples = content_of(audit_page(found, network, flat, "An audit"))["examples"]
    assert examples["pixels"] is None
    row = examples["median"]
    x, flip = data.X[found.vulnerability.examples[row]], found.vulnerability.perturbations[row]
    moved = examples["moved"][row]
    assert {each["feature"] for each in moved} == set(flip.abs().topk(5).indices.tolist())
    assert [each["after"] for each in moved] == [float(x[each["feature"]] + flip[each["feature"]]) for each in moved]


def test_the_way_of_a_flip_ends_beyond_the_boundary(audited, text):
    examples = content_of(text)["examples"]
    steps = examples["paths"]
    for margins in steps["margins"]:
        assert margins[0] > 0
        assert margins[-1] < 0
        crossing = next(step for step, margin in enumerate(margins) if margin < 1e-9)
        assert crossing / (len(margins) - 1) * steps["reach"] == pytest.approx(1, abs=0.03)


def test_an_interval_of_an_accuracy_is_wilsons():
    low, high = wilson(0.9, 100)
    for end in (low, high):  # the ends are where a test of the share would just not refuse 0.9
        assert abs(0.9 - end) == pytest.approx(1.96 * math.sqrt(end * (1 - end) / 100), rel=1e-9)


def test_drawings_escape_and_scale():
    assert str(tag("text", "<b>", x=1.5, class_='"')) == '<text x="1.5" class="&#34;">&lt;b&gt;</text>'
    assert ticks(0, 1) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert Axis(0, 2, 10, 30)(1) == 20
    hill = density([1.0, 1.1, 0.9, 1.0], Axis(0, 2, 0, 1))
    assert max(hill, key=lambda point: point[1])[0] == pytest.approx(1, abs=0.05)


def test_the_page_can_be_written_from_the_audit_itself(audited, tmp_path):
    found = audited[0]
    found.report(tmp_path / "a.html", since=found)
    text = (tmp_path / "a.html").read_text()
    assert text.startswith("<!doctype html>")
    assert content_of(text)["other"]["audit"] == content_of(text)["audit"]
    assert found.change(since=found).farther == 0
    assert found.remedy_frame()["name"].tolist() == [each.name for each in found.remedies]
    with pytest.raises(bt.InputError, match="the page is HTML"):
        audited[0].report(tmp_path / "a.pdf")
