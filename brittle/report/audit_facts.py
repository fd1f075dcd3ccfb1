"""What else was measured, as tables of a name and a value."""

import math

from brittle.auditing import Audit
from brittle.auditing.explanation import Explanation
from brittle.auditing.geometry import Geometry
from brittle.auditing.regime import TrainingRegime
from brittle.report.numbers import number, share

Facts = list[tuple[str, str]]


def geometry(shape: Geometry) -> Facts:
    """Of the data."""
    sums = " random sums of examples" if shape.rows < shape.examples else " examples"
    rank = (
        "dimensions that the data span"
        if shape.span_known
        else "dimensions that the data span, at least (not known at this budget)"
    )
    within = "yes" if shape.nearly_orthogonal else "no"
    few = shape.example_limit < 2  # one of each label is the least
    most = "not even two examples would be" if few else f"up to {number(math.floor(shape.example_limit))} examples are"
    grouped = f"{shape.clusters}" if shape.clusters > 1 else "none"
    return [
        ("examples", number(shape.examples)),
        ("features", number(shape.columns)),
        (rank, number(shape.rank)),
        ("dimensions off their span", number(shape.codimension)),
        ("measured on", f"{shape.rows}{sums}"),
        (
            "principal components for 90%, 95%, 99% of the variance",
            ", ".join(map(str, shape.effective_dimensions.values())),
        ),
        (f"largest |cosine| between two of {shape.paired} examples", number(shape.largest_cosine)),
        ("nearly orthogonal, as vardi2022 needs", f"{within}: {most}"),
        ("share of the rarest label", share(shape.label_balance)),
        ("clusters that stand out", f"{grouped} (best silhouette {number(shape.cluster_silhouette, 2)}, 0.5 needed)"),
        ("duplicates", number(shape.duplicates)),
    ]


REGIMES = {"kkt": "a KKT point", "between": "between lazy and rich", "unknown": "where it started is not known"}


def regime(found: TrainingRegime) -> Facts:
    """Of the training."""
    return [
        ("training accuracy", share(found.accuracy)),
        ("smallest margin", number(found.smallest_margin)),
        ("median margin", number(found.median_margin)),
        ("examples within a tenth of the smallest margin", share(found.share_on_margin)),
        ("largest move of a neuron", number(found.largest_move)),
        ("the same times √width (C₀ of the lazy regime)", number(found.lazy_constant)),
        ("move of the first layer, over its initial size", share(found.relative_move)),
        ("ReLUs of the first layer on the data that changed sign", share(found.signs_changed)),
        ("distance from a KKT point", number(found.kkt_residual)),
        ("normalised margin", number(found.normalised_margin)),
        ("share of the largest margin of any network, at least", share(found.share_of_largest_margin)),
    ]


def explanation(found: Explanation) -> Facts:
    """Of the flips."""
    carrying = "–" if found.neurons is None else f"{number(found.neurons_carrying_gradient)} of {found.neurons}"
    return [
        ("dimensions off the data's subspace", share(found.dimension_share_off)),
        ("squared gradient off the subspace", share(found.gradient_share_off)),
        ("squared shortest flip off the subspace", share(found.perturbation_share_off)),
        ("off-subspace weights that are their initial values", share(found.initial_share_of_weights_off)),
        ("off-subspace gradient that the initial values explain", share(found.initial_share_of_gradient_off)),
        ("neurons that carry 90% of the gradient", carrying),
    ]


def plan(audit: Audit) -> Facts:
    """Of the work."""
    proofs = audit.vulnerability.certified
    return [
        ("examples attacked", number(audit.plan.examples)),
        ("remedies tried", number(len(audit.remedies))),
        ("work for each of them at least, s", number(audit.plan.remedy_work)),
        ("work for proofs at least, s", number(audit.plan.proof_work)),
        ("how radii were proved", "–" if proofs is None else proofs.method),
        ("seconds that it took", number(audit.seconds)),
    ]
