"""Every theorem by its id."""

from dataclasses import dataclass, is_dataclass
from difflib import get_close_matches
from importlib import import_module

from brittle import __version__
from brittle.common import parts
from brittle.common.errors import InputError, require
from brittle.common.kinds import check_kinds
from brittle.common.parts import THEOREMS as GROUP
from brittle.theorems.base import Theorem

NEURIPS = {2022: 35, 2023: 36}  # the volume of each year


@dataclass(frozen=True)
class Paper:
    """`authors`, family names first; `title`; the `year` of NeurIPS; `arxiv` is the number of the preprint.

    Examples:
        >>> from brittle.theorems import PAPERS
        >>> PAPERS["frei2023"].title
        'The Double-Edged Sword of Implicit Bias: Generalization vs. Robustness in ReLU Networks'
        >>> PAPERS["wang2022"].bibtex("wang2022").splitlines()[0]
        '@inproceedings{wang2022,'
    """

    authors: tuple[str, ...]
    title: str
    year: int
    arxiv: str

    def bibtex(self, key: str) -> str:
        """The entry, under this key."""
        fields = {
            "author": " and ".join(self.authors),
            "title": f"{{{self.title}}}",
            "booktitle": "Advances in Neural Information Processing Systems",
            "volume": str(NEURIPS[self.year]),
            "year": str(self.year),
            "eprint": self.arxiv,
            "archiveprefix": "arXiv",
        }
        return entry("inproceedings", key, fields)


PAPERS = {
    "vardi2022": Paper(
        ("Vardi, Gal", "Yehudai, Gilad", "Shamir, Ohad"),
        "Gradient Methods Provably Converge to Non-Robust Networks",
        2022,
        "2202.04347",
    ),
    "frei2023": Paper(
        ("Frei, Spencer", "Vardi, Gal", "Bartlett, Peter L.", "Srebro, Nathan"),
        "The Double-Edged Sword of Implicit Bias: Generalization vs. Robustness in ReLU Networks",
        2023,
        "2303.01456",
    ),
    "melamed2023": Paper(
        ("Melamed, Odelia", "Yehudai, Gilad", "Vardi, Gal"),
        "Adversarial Examples Exist in Two-Layer ReLU Networks for Low Dimensional Linear Subspaces",
        2023,
        "2303.00783",
    ),
    "wang2022": Paper(
        ("Wang, Yunjuan", "Ullah, Enayat", "Mianjy, Poorya", "Arora, Raman"),
        "Adversarial Robustness is at Odds with Lazy Training",
        2022,
        "2207.00411",
    ),
}


def entry(kind: str, key: str, fields: dict[str, str]) -> str:
    """BibTeX of these fields."""
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
    return f"@{kind}{{{key},\n{lines}\n}}"


def _all() -> dict[str, Theorem]:
    theorems: dict[str, Theorem] = {}
    for paper in PAPERS:
        for theorem in import_module(f"brittle.theorems.{paper}").THEOREMS:
            assert theorem.id not in theorems, f"two theorems are called {theorem.id}"
            theorems[theorem.id] = theorem
    return theorems


THEOREMS: dict[str, Theorem] = _all()


def _installed(identity: str) -> Theorem:
    theorem = make_theorem(parts.load_entry_point(GROUP, identity), f"the plug-in {identity!r} of {GROUP}")
    require(theorem.id == identity, f"the plug-in {identity!r} of {GROUP} is the theorem {theorem.id!r}: name it so")
    return theorem


def make_theorem(found: object, called: str) -> Theorem:
    """The theorem of a class that is not brittle's, as its fields are by default."""
    good = isinstance(found, type) and issubclass(found, Theorem) and is_dataclass(found)
    require(good, f"{called} is no dataclass that extends Theorem")
    assert isinstance(found, type)
    for name in ("id", "claim", "applies_to"):
        require(isinstance(getattr(found, name, None), str), f"{called} has no {name}: see docs/extending.md")
    try:
        theorem: Theorem = found()
    except TypeError as error:  # a verb that is missing, or a field without a default
        raise InputError(f"{called} cannot be made: {error}") from None
    return theorem


@check_kinds
def find(identity: str) -> Theorem:
    """The theorem with this id, whatever its letters' case, or that of an installed package.

    An error names those that it might have been.

    Examples:
        >>> from brittle.theorems import find
        >>> find("VARDI2022/4.1").id
        'vardi2022/4.1'
        >>> find("4.1")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        brittle.common.errors.InputError: there is no theorem '4.1'; did you mean vardi2022/4.1 or ...
    """
    by_lower = {name.lower(): theorem for name, theorem in THEOREMS.items()}
    if identity.lower() in by_lower:
        return by_lower[identity.lower()]
    if identity in parts.find_entry_points(GROUP):
        return _installed(identity)
    numbers = [name for name in THEOREMS if name.split("/")[1].lower() == identity.lower()]
    near = numbers or [by_lower[name].id for name in get_close_matches(identity.lower(), by_lower, n=3, cutoff=0.5)]
    meant = f"did you mean {' or '.join(near)}?" if near else "`brittle theorems` lists them all"
    raise InputError(f"there is no theorem {identity!r}; {meant}")


# How to cite brittle, a paper, or the paper behind a theorem.


@check_kinds
def citation(identity: str | None = None) -> str:
    """BibTeX of brittle itself; of a paper (`vardi2022`); of the paper behind a theorem, with what it claims.

    Examples:
        >>> import brittle as bt
        >>> print(bt.citation("vardi2022/4.1"))
        % vardi2022/4.1: x - y z has margin ≤ -1 for every example of a KKT point, with ‖z‖ ≤ 18√2·√(d/m)/c
        @inproceedings{vardi2022,
          author = {Vardi, Gal and Yehudai, Gilad and Shamir, Ohad},
          title = {{Gradient Methods Provably Converge to Non-Robust Networks}},
          booktitle = {Advances in Neural Information Processing Systems},
          volume = {35},
          year = {2022},
          eprint = {2202.04347},
          archiveprefix = {arXiv}
        }
    """
    if identity is None:
        title = "{brittle}: why a {ReLU} network is not robust, how far it is from breaking, and what helps"
        fields = {"title": title, "author": "{The authors of brittle}", "version": __version__, "year": "2026"}
        return entry("software", "brittle", fields)
    if identity in PAPERS:
        return PAPERS[identity].bibtex(identity)
    require("/" in identity, f"there is no paper {identity!r}; it must be one of {', '.join(PAPERS)}")
    theorem = find(identity)
    known = theorem.paper in PAPERS
    require(known, f"{theorem.id} is of another package, which says itself how it is to be cited")
    return f"% {theorem.id}: {theorem.claim}\n{PAPERS[theorem.paper].bibtex(theorem.paper)}"
