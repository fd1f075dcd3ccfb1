"""Every term of the page, explained where it stands: in words, and by the formula where there is one."""

from typing import NamedTuple


class Term(NamedTuple):
    """What a word means here, and the formula that its number comes from."""

    title: str
    words: str
    formula: str = ""


TERMS = {
    "protection": Term(
        "Share of what the data allow",
        "For every example, the distance to its shortest flip over half the distance to the nearest example "
        "of another class; the median of these ratios. Between two examples of different classes a boundary "
        "has to pass, so they cannot both be farther from it than half their distance.",
        "median of rᵢ / ρᵢ,  ρᵢ = ½ min ‖xᵢ - xⱼ‖ over yⱼ ≠ yᵢ",
    ),
    "flip": Term(
        "Flip",
        "A change of an example that makes the network answer wrongly. Its length is the Euclidean norm of the change.",
        "‖δ‖₂ with margin(x + δ) < 0",
    ),
    "radius": Term(
        "Radius, distance to a flip",
        "The length of the shortest change that flips the network's answer to an example. An attack finds a "
        "flip and with it an upper bound; a proof gives a lower bound.",
        "rᵢ = inf { ‖δ‖₂ : margin(xᵢ + δ) < 0 }",
    ),
    "limit": Term(
        "What the data allow",
        "Half the distance to the nearest training example of another class. No network keeps two examples of "
        "different classes both farther from its boundary than that.",
        "ρᵢ = ½ min ‖xᵢ - xⱼ‖ over yⱼ ≠ yᵢ",
    ),
    "size": Term(
        "Size of a change",
        "Its length over the median length of the examples.",
        "‖δ‖ / median ‖x‖",
    ),
    "attacked": Term(
        "Attacked",
        "A flip was looked for by the minimum-norm attack and measured on the network itself. Its length is "
        "an upper bound of the radius.",
    ),
    "proved": Term(
        "Proved",
        "A certificate shows that no shorter change flips the answer. It is a dual point, evaluated with its "
        "rounding errors, not a solver's word.",
    ),
    "exact": Term(
        "Known exactly",
        "Proof and attack meet, up to one part in ten thousand: the radius is known.",
    ),
    "open": Term(
        "Without a proof",
        "Between the proof, if any, and the attack the radius is not known.",
    ),
    "error": Term(
        "Already wrong",
        "The network's answer is wrong without any change: the radius is 0.",
    ),
    "skipped": Term(
        "Left out",
        "Examples that were not drawn: the audit attacks at most `--examples`, of every class its share.",
    ),
    "budget": Term(
        "Budget",
        "Work, counted in seconds of a nominal machine, not on the clock: the same seed and budget give the "
        "same audit, however busy the machine is.",
    ),
    "seed": Term(
        "Seed",
        "Chooses the examples and all other chance. The same seed gives the same numbers.",
    ),
    "interval": Term(
        "95% interval",
        "Encloses the median of all examples, of which these were drawn, with a probability of at least 95%. "
        "From order statistics, without any assumption.",
    ),
    "margin": Term(
        "Margin",
        "How decided the network is: the logit of the right class minus the largest other one. Negative where "
        "it is wrong.",
    ),
    "subspace": Term(
        "The data's subspace",
        "All sums of multiples of the training examples. Directions off it do not occur in the data, and what "
        "the network does there training never checked.",
    ),
    "one direction": Term(
        "One direction for all",
        "The same direction is added to, or taken from, every example: a universal perturbation (vardi2022).",
    ),
    "mechanism": Term(
        "Mechanism",
        "A cause that one of the four papers describes. It is named where its measure passes the mark; the "
        "bar begins where it is harmless and ends where it is at its worst.",
    ),
    "doubtful labels": Term(
        "Doubtful labels",
        "Four of the five nearest neighbours of an example agree on another class.",
        "named from 5% of the examples on",
    ),
    "off-subspace weights": Term(
        "Off-subspace weights",
        "First-layer weights in directions that the data do not span: they are still their initial noise, and "
        "an attacker who may leave the data's subspace uses them (melamed2023).",
        "median radius on the subspace / median radius, named from 1.15 on",
    ),
    "stopped early": Term(
        "Stopped early",
        "Some examples are barely right: training ended before it moved the boundary away from them.",
        "tenth smallest of a hundred margins / median margin, named below 0.2",
    ),
    "lazy training": Term(
        "Lazy training",
        "The weights hardly moved from where they started, and a single gradient step is as good as the "
        "shortest flip (wang2022).",
        "‖W - W₀‖ / ‖W₀‖ and the share of changed ReLU signs, named below 10%",
    ),
    "KKT point": Term(
        "KKT point",
        "Gradient flow ends at a stationary point of the max-margin problem, which one direction is known to "
        "flip (vardi2022, frei2023).",
        "distance from the KKT conditions, named below 10⁻³",
    ),
    "remedy": Term(
        "Remedy",
        "A change of the network that was tried on a copy and measured on the same examples. One that costs "
        "more than 1% of accuracy is refused.",
    ),
    "factor": Term(
        "Factor",
        "The median radius after, over the median radius before, by the same attack on the same examples.",
    ),
    "kappa": Term(
        "κ",
        "How much of what the data allow training asks for. It grows along the curve; every point is a "
        "network that can be had.",
    ),
    "slack": Term(
        "Slack",
        "How far a hypothesis of a theorem is from holding. The bar is full at the threshold, and a sixth "
        "shorter for every power of ten.",
    ),
    "share": Term(
        "Share of the limit",
        "The distance to the flip over what the data allow this example.",
        "rᵢ / ρᵢ",
    ),
    "slice": Term(
        "Slice",
        "A plane through the example: to the right its shortest flip, upwards the nearest example of another "
        "class. Blue is where the answer stays right, orange where it is wrong, the circle is proved to be "
        "free of orange.",
    ),
    "surely": Term(
        "Surely better or worse",
        "What is proved of one network is more than what flips the other: no luck of an attack.",
    ),
}
