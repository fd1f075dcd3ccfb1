"""Tables: label column by name or place, header or not, and the line number of what is wrong."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from brittle import InputError
from brittle.data import File
from tests.data.truths import read_or_refused


@pytest.fixture
def table(tmp_path):
    def write(text: str, **options) -> File:
        path = tmp_path / "table.csv"
        path.write_text(text)
        return File(path, **options)

    return write


def test_the_last_column_is_the_label_unless_said(table):
    data = table("1,2,-1\n3,4,1\n").load()
    assert data.X.tolist() == [[1, 2], [3, 4]]
    assert data.y.tolist() == [-1, 1]
    assert data.binary


@pytest.mark.parametrize("label", ["kind", 1, -2])
def test_the_label_column_goes_by_name_or_place(table, label):
    data = table("a,kind,b\n1,0,2\n3,2,4\n", label=label).load()
    assert data.X.tolist() == [[1, 2], [3, 4]]
    assert data.y.tolist() == [0, 2]
    assert data.y.dtype == torch.int64


def test_a_header_is_seen_where_there_is_one(table):
    assert len(table("a,b,c\n1,2,-1\n3,4,1\n").load()) == 2
    assert len(table("1,2,yes\n3,4,no\n").load()) == 2
    assert len(table("1,2,3\n3,4,1\n", header=True).load()) == 1


def test_words_become_labels_in_alphabetical_order(table):
    assert table("1,oak\n2,elm\n3,oak\n").load().y.tolist() == [1, -1, 1]
    assert table("1,oak\n2,elm\n3,ash\n").load().y.tolist() == [2, 1, 0]


@pytest.mark.parametrize(("classes", "y"), [((3, 7), [-1, 1, -1]), ((7, 3), [1, -1, 1])])
def test_two_labels_are_chosen_and_become_signs(table, classes, y):
    data = table("1,3\n2,7\n3,9\n4,3.0\n", classes=classes).load()
    assert data.y.tolist() == y
    assert data.X.flatten().tolist() == [1, 2, 4]


def test_two_words_are_chosen_and_become_signs(table):
    assert table("1,oak\n2,elm\n3,ash\n", classes=("oak", "ash")).load().y.tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("", {}, "has no rows"),
        ("\n\n", {}, "has no rows"),
        ("a,b\n", {}, "has no rows"),
        ("1\n2\n", {}, "line 1 has 1 column"),
        ("1,2,1\n\n3,1\n", {}, "line 3 has 2 columns; the first line has 3"),
        ("a,b\n1,1\nx,1\n", {}, "line 3, column 0 holds 'x'; a finite number is needed"),
        ("1,1\nnan,1\n", {}, "line 2, column 0 holds 'nan'"),
        ("1,1\ninf,1\n", {}, "line 2, column 0 holds 'inf'"),
        ("1,1\n,1\n", {}, "line 2, column 0 holds ''"),
        ("a,b\n1,1\n", {"label": "c"}, "label is 'c'; the columns are a, b"),
        ("1,1\n", {"label": "c", "header": False}, "needs a header line"),
        ("1,1\n", {"label": 2}, "label is 2; the columns are numbered from 0 to 1"),
        ("1,0.5\n2,1\n", {}, "y holds 0.5"),
        ("1,3\n2,7\n", {"classes": (3, 8)}, "no row has the label 8"),
        ('1,"2\n', {}, "is not a table"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(table, text, options, words):
    file = table(text, **options)
    with pytest.raises(InputError) as caught:
        file.load()
    assert str(caught.value).startswith(f"{file.path}: ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@given(content=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_in_one_line(content, tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "table.csv"
    path.write_bytes(content)
    assert read_or_refused(path)


@given(rows=st.lists(st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([-1, 1])), min_size=1))
def test_numbers_survive_a_table(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "table.csv"
    path.write_text("\n".join(f"{x!r},{float(y)}" for x, y in rows))
    data = File(path).load()
    assert data.X.flatten().tolist() == [x for x, _ in rows]
    assert data.y.tolist() == [y for _, y in rows]
