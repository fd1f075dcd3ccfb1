"""Who may come in, what may be read, and what a request may cost."""

import pytest

from brittle.explorer import ExplorerSubject, application
from brittle.explorer.guard import LARGEST_BODY
from tests.explorer.client import GOOD, HOST, PORT, TOKEN, ask


@pytest.fixture(scope="module")
def app():
    return application(ExplorerSubject(), TOKEN, PORT)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"host": "evil.example"}, "another host"),
        ({"host": "127.0.0.1:1"}, "another host"),
        ({"host": ""}, "another host"),
        ({"origin": "http://evil.example"}, "own page"),
        ({"origin": "null"}, "own page"),
        ({"origin": f"https://{HOST}"}, "own page"),
        ({"content-type": "text/plain"}, "application/json"),
        ({"content-length": str(LARGEST_BODY + 1)}, "longer"),
        ({"content-length": "many"}, "longer"),
    ],
)
def test_strangers_are_refused_before_anything_is_read(app, change, word):
    answer = ask(app, "about", headers=GOOD | change)
    assert answer.status in (403, 413, 415)
    assert word in answer.json["error"]


def test_a_post_without_an_origin_is_refused_and_a_page_needs_none(app):
    bare = {name: value for name, value in GOOD.items() if name != "origin"}
    assert ask(app, "about", headers=bare).status == 403
    assert ask(app, "", method="GET", headers=bare).status == 200


@pytest.mark.parametrize("path", ["/", "/about", "/wrong/about", f"/{TOKEN}", f"/{TOKEN}x/", "/static/main.js"])
def test_without_the_token_there_is_nothing(app, path):
    assert ask(app, path, method="GET").status == 403
    assert ask(app, path).status == 403


def test_localhost_is_this_machine_too(app):
    host = f"localhost:{PORT}"
    assert ask(app, "about", headers=GOOD | {"host": host, "origin": f"http://{host}"}).status == 200


def test_a_body_that_goes_on_and_on_is_cut(app):
    assert ask(app, "plane", chunks=[b"x" * 65536] * 8).status == 413


@pytest.mark.parametrize("name", ["", "static/main.js", "static/style.css", "static/icon.svg"])
def test_pages_are_served_with_a_strict_policy(app, name):
    answer = ask(app, name, method="GET")
    assert answer.status == 200
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert b"//" not in answer.body.replace(b"http://www.w3.org/2000/svg", b"").split(b"</head>")[0] or name != ""


@pytest.mark.parametrize(
    "name", ["static/../app.py", "static/%2e%2e/app.py", "static/", "../app.py", "static/nothing.js"]
)
def test_no_other_file_can_be_read(app, name):
    assert ask(app, name, method="GET").status == 404


def test_nothing_in_the_pages_comes_from_elsewhere(app):
    for name in (
        "",
        "static/main.js",
        "static/plane.js",
        "static/papers.js",
        "static/walk.js",
        "static/draw.js",
        "static/style.css",
    ):
        text = ask(app, name, method="GET").body.decode().replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text
        assert "https:" not in text
        assert "eval(" not in text
        assert "innerHTML" not in text


def test_without_a_network_there_is_no_walk(app):
    assert ask(app, "about").json["walk"] is None
    assert ask(app, "examples").status == 404


POINTS = [[0, 0, 1], [1, 0, -1]]


@pytest.mark.parametrize(
    ("name", "body", "word"),
    [
        ("plane", {"points": [[0, 0, 1]] * 61}, "at most 60"),
        ("plane", {"points": [[0, 0, 1]]}, "at least two"),
        ("plane", {"points": [[0, 0, 1], [1, 1, 1]]}, "one label"),
        ("plane", {"points": [[0, 0, 1], [0, 0, -1]]}, "different labels"),
        ("plane", {"points": [[0, 0, 1], [1e9, 0, -1]]}, "from -100 to 100"),
        ("plane", {"points": [[0, 0, 2], [1, 0, -1]]}, "1 or -1"),
        ("plane", {"points": "all"}, "no list"),
        ("plane", {"points": POINTS, "width": 10**9}, "from 1 to 300"),
        ("plane", {"points": POINTS, "width": 2.5}, "whole number"),
        ("plane", {"points": POINTS, "half": 0}, "half"),
        ("plane", {"points": POINTS, "parts": ["everything"]}, "parts"),
        ("plane", {"points": POINTS, "network": {"W": [[1, 1]], "b": [0], "v": []}}, "every neuron"),
        ("plane", {"points": POINTS, "network": {"W": [[1, "1"]], "b": [0], "v": [1]}}, "W is '1'"),
        ("plane", {"points": POINTS, "network": 5}, "no JSON object"),
        ("points", {"preset": "../secrets"}, "one of moons"),
        ("points", {"preset": "own"}, "one of moons"),
        ("points", {"count": 10**6}, "from 2 to 60"),
        ("flow", {"points": POINTS, "until": -1e9}, "from -200"),
        ("paper", {"paper": "other"}, "one of vardi2022"),
        ("paper", {"dim": 10**7}, "from 10 to 4000"),
        ("paper", {"examples": 5000}, "from 2 to 100"),
        ("paper", {"paper": "melamed2023", "dim": 50, "codimension": 60}, "codimension"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(app, name, body, word):
    answer = ask(app, name, body)
    assert answer.status == 400
    assert word in answer.json["error"]
    assert "\n" not in answer.json["error"]


@pytest.mark.parametrize("chunk", [b"", b"[1]", b"{", b'{"points": NaN}', b"[" * 100_000, b"\xff"])
def test_what_is_no_question_is_refused(app, chunk):
    assert ask(app, "plane", chunks=[chunk]).status == 400
