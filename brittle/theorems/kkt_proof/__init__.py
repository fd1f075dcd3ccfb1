"""The proof that vardi2022 and frei2023 share: one direction takes every example of a KKT network to the other side.

A training set falls into k groups with centres μ_q of norm √d, labels y_q and p = max |<μ_q, μ_r>|. In vardi2022 every
example is a group of its own; in frei2023 a group is a cluster. Inner products of examples differ from those of their
centres by up to Δ, which is 0 in vardi2022. Put u = Σ_q y_q μ_q.

At a KKT point w_j = Σ_i λ_i y_i v_j σ'_ij x_i and b_j = Σ_i λ_i y_i v_j σ'_ij, so that all that a neuron does is
measured by its load L_j = Σ_i |v_j| λ_i σ'_ij. At an example x of label y that the paper admits (a training example in
vardi2022, an ordinary fresh one in frei2023), with the network at margin 1:

| step | what it says | vardi2022 | frei2023 |
|---|---|---|---|
| dip | w_j·x + b_j ≥ -dip L_j, dip = p + 2Δ + 1 | C.3 | D.3 |
| direction | sign(v_j) w_j·u ≥ room L_j, room = d - Δ - k(p + Δ) | C.4 | D.4 |
| room | room > 0 | C.5 | D.5 |
| opening | η1 = dip/room: where v_j y < 0, the input at x - y η1 u is ≥ 0 | C.6 | D.6 |
| before | y N(x) ≤ before | C.1 | D.2 |
| mass | Σ |v_j| L_j ≥ mass over the neurons of either sign | C.2 | A.11 |
| flip | η2 = (before + 1)/(room mass): y N(x - y(η1 + η2)u) ≤ -1 | C.7, C.8 | D.7, D.8 |
| length | ‖u‖² ≤ kd + k²p bounds ‖z‖, z = (η1 + η2)u | C.9 | D.9 |

Opening is dip and direction together. Flip: neurons with v_j y > 0 only fall, by direction and room; those with
v_j y < 0 are open after η1 and no lower than at x, and η2 then raises them by η2 room L_j at least, so that y N falls
by η2 room Σ |v_j| L_j ≥ before + 1.

Only `before`, `mass` and the way to the dip are each paper's own. vardi2022 shows that every example is on the margin
(C.1) and splits its output between itself and the others (C.2), which gives a mass for every c' ≤ 1/3. frei2023 bounds
the sum of each cluster from above (A.10) and so from below (A.11), which would give none at c' = 1/3.
"""

from brittle.theorems.kkt_proof.constants import RADIUS_TOLERANCE, Groups, ProofConstants
from brittle.theorems.kkt_proof.steps import (
    AboutData,
    Approximation,
    AtKKTPoint,
    DirectionMeetsNeurons,
    GapPositive,
    InputLowerBound,
    MarginFlips,
    NeuronsActivated,
    OtherPoints,
    PerturbationLength,
    ProofStep,
    approximations,
    other_distances,
    other_measures,
    other_promises,
    others,
)

__all__ = [
    "RADIUS_TOLERANCE",
    "AboutData",
    "Approximation",
    "AtKKTPoint",
    "DirectionMeetsNeurons",
    "GapPositive",
    "Groups",
    "InputLowerBound",
    "MarginFlips",
    "NeuronsActivated",
    "OtherPoints",
    "PerturbationLength",
    "ProofConstants",
    "ProofStep",
    "approximations",
    "other_distances",
    "other_measures",
    "other_promises",
    "others",
]
