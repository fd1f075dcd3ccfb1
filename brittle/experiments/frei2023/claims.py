"""What frei2023 says about KKT networks on clusters, beside what was measured."""

import math
from collections.abc import Mapping, Sequence

from brittle.experiments.base import Claim
from brittle.experiments.cell import Point
from brittle.experiments.frei2023.cells import SIZES
from brittle.experiments.powers import exponent
from brittle.experiments.summary import distinct, mean, relative_spread, undecided, values, where
from brittle.theorems.scaling import fitted


def generalises(points: Sequence[Point], text: str) -> Claim:
    """The test error of every network."""
    errors = values(points, "error")
    if not errors:
        return undecided(text)
    return Claim(text, f"largest error {max(errors):.2%} in {len(errors)} networks", max(errors) <= 0.01)


def flips_all(points: Sequence[Point]) -> Claim:
    """Whether some size along Σ y μ flips all fresh examples, in every network."""
    text = "one direction flips every fresh example"
    if not points:
        return undecided(text)
    flipped = sum(point["size"] is not None for point in points)
    return Claim(text, f"in {flipped} of {len(points)} networks", flipped == len(points))


def root_of_clusters(points: Sequence[Point]) -> list[Claim]:
    """The exponent of k in c, at each d."""
    claims = []
    text = "‖z‖ ~ √(d/k)"
    for d in distinct(points, "dim"):
        some = [point for point in where(points, dim=d) if point["size"] is not None]
        if len(distinct(some, "clusters")) < 3:
            continue
        sizes = [(k, mean(values(where(some, clusters=k), "size"))) for k in distinct(some, "clusters")]
        found = fitted("c", "k", -0.5, [k for k, _ in sizes], [size for _, size in sizes])
        ratios = values(some, "ratio")
        measured = f"{found}; c/√(d/k) from {min(ratios):.2f} to {max(ratios):.2f}"
        claims.append(
            Claim(
                f"{text} at d = {d:.0e} (read as: exponent of k within 0.1)", measured, abs(found.fitted + 0.5) <= 0.1
            )
        )
    return claims or [undecided(text)]


def spares_construction(points: Sequence[Point]) -> Claim:
    """z has length √(d/k), and the construction's radius is √d/8: so k > 64 would be enough."""
    text = "the perturbation that flips the KKT network leaves the robust construction alone (k ≥ 8)"
    some = values([point for point in points if point["clusters"] >= 8], "construction_flipped")
    if not some:
        return undecided(text)
    return Claim(text, f"it flips at most {max(some):.1%} of the construction's fresh examples", max(some) == 0)


def width_free(points: Sequence[Point], name: str) -> Claim:
    """How far the mean sizes of the widths are from each other."""
    text = f"{name}: c does not depend on the width (read as: the widths' means within 10 % of their mean)"
    means = [mean(values(where(points, width=width), "size")) for width in distinct(points, "width")]
    if len(means) < 2 or any(math.isnan(each) for each in means):
        return undecided(text)
    spread = relative_spread(means)
    return Claim(text, f"largest distance from the mean {spread:.1%}", spread <= 0.1)


def transfers(points: Sequence[Point], name: str) -> Claim:
    """The size is the first of `SIZES` that flips every fresh example of the first network, and then a tenth more."""
    text = f"{name}: z, a tenth longer than flips one network, flips the others (read as: 95 % of fresh examples)"
    exact = next((i for i, share in enumerate(points[0]["flipped"]) if share == 1), None) if points else None
    if len(points) < 2 or exact is None or 1.1 * SIZES[exact] > SIZES[-1]:
        return undecided(text)
    longer = next(i for i, size in enumerate(SIZES) if size >= 1.1 * SIZES[exact])
    least = {i: min(point["flipped"][i] for point in points[1:]) for i in (exact, longer)}
    measured = (
        f"at least {least[longer]:.1%} on each of {len(points) - 1} others ({SIZES[longer]:.2f}·√(d/k)); "
        f"{least[exact]:.1%} without the tenth"
    )
    return Claim(text, measured, least[longer] >= 0.95)


def conjecture(points: Sequence[Point]) -> list[Claim]:
    """Section 5: the results should hold for clusters that no linear rule separates; d by d, for it is asymptotic."""
    beyond = [point for point in points if not point["separable"]]
    texts = (
        "conjecture: KKT networks generalise beyond linear separability (read as: mean error at most 5 % at every d)",
        "conjecture: they are not robust there (read as: the shortest perturbation found is at most ¾ of what the "
        "nearest mean's rule withstands, in the mean at every d)",
        "conjecture: Σ y μ still flips every fresh example at some c below √d (read as: in the mean, at the largest d; "
        "refuted where c/√d does not fall with d)",
    )
    if not beyond:
        return [undecided(text) for text in texts]
    errors = _means([(point["dim"], point["error"]) for point in beyond])
    shares = _means([(point["dim"], point["shortest"] / point["rule_radius"]) for point in beyond])
    roots = [(p["dim"], math.inf if p["size"] is None else p["size"] / math.sqrt(p["dim"])) for p in beyond]
    finite = [(d, ratio) for d, ratio in roots if ratio < math.inf]
    trend = exponent("c/√d", "d", [d for d, _ in finite], [ratio for _, ratio in finite])
    by_dim, of = _means(roots), f"({len(beyond)} networks)"
    ratios = f"c/√d {_by_dim(by_dim, '.2f')} {of}" + ("" if trend is None else f": {trend}")
    short = True if by_dim[max(by_dim)] < 1 else False if trend is not None and trend.low >= 0 else None
    if short is None:
        ratios += f"; not decided at this size: d ≤ {max(by_dim):g}"
    return [
        Claim(texts[0], f"{_by_dim(errors, '.1%')} {of}", max(errors.values()) <= 0.05),
        Claim(texts[1], f"share {_by_dim(shares, '.2f')} {of}", max(shares.values()) <= 0.75),
        Claim(texts[2], ratios, short),
    ]


def _means(pairs: Sequence[tuple[int, float]]) -> dict[int, float]:
    """Of what belongs to each dimension."""
    return {d: mean([value for dim, value in pairs if dim == d]) for d in sorted({d for d, _ in pairs})}


def _by_dim(means: Mapping[int, float], form: str) -> str:
    return ", ".join(f"{value:{form}} at d = {d}" for d, value in means.items())
