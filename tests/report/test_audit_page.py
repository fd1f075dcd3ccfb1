"""The page of an audit: complete, escaped, offline, and alive in a real browser."""

import re

import pytest
import torch

import brittle as bt
from brittle.report.audit_page import audit_page, number, write_audit_page
from brittle.settings import Data, Digits, Truth
from tests.report.browser import chromium, page


@pytest.fixture(scope="module")
def audited():
    rng = torch.Generator().manual_seed(0)
    digits = Digits(classes=(3, 8)).sample(40, rng)
    network = bt.networks.PyTorch().draw(64, 20, rng)
    signs = network.predict(digits.X)  # its own labels: it classifies all of them
    data = Data(digits.X, signs, truth=Truth(dim=64, image=(8, 8)))
    found = bt.audit(network, data, examples=6, budget=300.0, remedies=("remove-off-subspace", "robust-construction"))
    return found, network, data


def test_the_page_holds_every_section_and_picture(audited):
    text = audit_page(*audited, title="An audit")
    for section in ("verdict", "geometry", "regime", "vulnerability", "explanation", "theorems", "remedies"):
        assert f'id="{section}"' in text
    assert text.count("<img") == 5  # radii, curves, slice, examples, remedies
    assert all(len(words) > 20 for words in re.findall(r'alt="([^"]*)"', text))
    assert number(audited[0].vulnerability.free.median) in text


def test_nothing_is_fetched_and_nothing_is_trusted(audited):
    text = audit_page(*audited, title="<script>alert(1)</script>")
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text
    assert not re.findall(r'(?:src|href)="(?!data:)', text)
    assert "default-src 'none'" in text


def test_numbers_are_short_and_honest():
    assert [number(value) for value in (None, float("nan"), float("inf"), True, 0.123456, 7)] == [
        "–",
        "–",
        "∞",
        "yes",
        "0.1235",
        "7",
    ]


@pytest.mark.skipif(chromium() is None, reason="Chromium is not installed: `make browser` installs it")
def test_the_page_lives_in_a_browser(audited, tmp_path):
    write_audit_page(*audited, tmp_path / "audit.html", "An audit")
    with page(chromium(), tmp_path / "profile") as tab:
        tab.open(tmp_path / "audit.html")
        sizes = tab.evaluate("[...document.images].map(image => image.complete ? image.naturalWidth : 0)")
        assert len(sizes) == 5
        assert min(sizes) > 0
        column = (
            "[...document.querySelectorAll('#theorems ~ .scroll tbody tr td:first-child')].map(cell => cell.innerText)"
        )
        tab.evaluate("document.querySelector('#theorems ~ .scroll th').click()")
        first = tab.evaluate(column)
        tab.evaluate("document.querySelector('#theorems ~ .scroll th').click()")
        names = [name for name in first if "/" in name]
        assert names == sorted(names, key=str.lower)
        assert [name for name in tab.evaluate(column) if "/" in name] == names[::-1]
        assert tab.complaints() == []
        assert all(address.startswith(("file:", "data:")) for address in tab.addresses())
        overflow = tab.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert overflow <= 0
