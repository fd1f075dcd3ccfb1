"""The four papers."""

from dataclasses import dataclass

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
