"""How to cite brittle, a paper, or the paper behind a theorem."""

from brittle import __version__
from brittle.common.errors import require
from brittle.common.kinds import kinds_checked
from brittle.theorems.papers import PAPERS, entry
from brittle.theorems.registry import find


@kinds_checked
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
