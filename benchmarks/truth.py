"""Attacks by their true excess and lower bounds by their tightness, all on the same instances, in one run.

    python -m benchmarks.truth DIR [--only WORD] [--json FILE]

DIR is what `brittle truth make DIR` made. An excess is norm/radius - 1 against proved radii, not against the best
attack of the run. Seconds are processor time of one thread. SDP-CROWN's formula is a special case of the dual bound for
two layers (one κ for all neurons, benchmarks/certificates.py), and for deeper networks the largest radius at which its
margin is positive (benchmarks/sdp_crown.py); rounding is not paid for. The second table of bounds has the deeper alone.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch

from benchmarks.certificates import SdpCrown
from benchmarks.sdp_crown import SdpCrownRadius
from brittle.attacks import Foolbox, GradientStep, MinimumNorm, Ray
from brittle.attacks.base import Attack, AttackResult
from brittle.certificates import Certificate, Dual, Exact, LinearRelaxation, Lipschitz, LowerBound
from brittle.common.errors import InputError
from brittle.common.files import write_json
from brittle.common.threads import one_thread
from brittle.networks import Network, TwoLayer
from brittle.truth import (
    BoundScore,
    TruthProblem,
    attack_scores,
    bound_scores,
    measure_attack,
    measure_certificate,
    problems_in,
)

ATTACKS: dict[str, Attack[AttackResult]] = {
    "brittle minimum-norm": MinimumNorm(),
    "brittle ray (gradient)": Ray(),
    "brittle gradient-step": GradientStep(),
    "Foolbox DDN, 1000 steps": Foolbox("DDNAttack", {"steps": 1000}),
    "Foolbox FMN, 1000 steps": Foolbox("L2FMNAttack", {"steps": 1000}),
    "Foolbox DeepFool": Foolbox("L2DeepFoolAttack"),
    "Foolbox Carlini-Wagner": Foolbox("L2CarliniWagnerAttack", {"binary_search_steps": 6, "steps": 500}),
    "Foolbox NewtonFool": Foolbox("NewtonFoolAttack"),
    "Foolbox EAD (elastic net)": Foolbox("EADAttack", {"binary_search_steps": 6, "steps": 500, "decision_rule": "EN"}),
}


@dataclass(frozen=True)
class Formula(Certificate):
    """SDP-CROWN's, as fits the network."""

    name: ClassVar[str] = "SDP-CROWN"

    def prepare(self, network: Network) -> LowerBound:
        return (SdpCrown() if isinstance(network, TwoLayer) else SdpCrownRadius()).prepare(network)


BOUNDS: dict[str, tuple[Certificate, Callable[[TruthProblem], bool]]] = {
    "brittle exact, 1e-3": (Exact(gap=1e-3, seconds=60), lambda problem: True),
    "brittle dual, refined": (Dual(refined=True), lambda problem: isinstance(problem.network, TwoLayer)),
    "brittle dual": (Dual(), lambda problem: True),
    "CROWN (own relaxation)": (LinearRelaxation(), lambda problem: True),
    "SDP-CROWN's formula": (Formula(), lambda problem: True),
    "Lipschitz, local": (Lipschitz(), lambda problem: isinstance(problem.network, TwoLayer)),
    "Lipschitz, spectral (LipNaive)": (Lipschitz(constant="spectral"), lambda problem: True),
}


NAMES = ("lower bound", "instances", "unsound", "mean bound/radius", "worst", "within 1 %", "seconds")
HEADS = f"| {' | '.join(NAMES)} |\n{'|---' * len(NAMES)}|"


def percent(value: float) -> str:
    return f"{100 * value:.3g} %"


def rank_attacks(problems: list[TruthProblem], word: str) -> dict[str, object]:
    print("| attack | flipped | mean excess | median | worst | within 1 % | impossible | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    found = {}
    for name, attack in ATTACKS.items():
        if word not in name:
            continue
        try:
            scores = attack_scores([measure_attack(attack, each) for each in problems])
        except InputError as error:
            print(f"| {name} | {error} |")
            continue
        last, found[name] = scores[-1], [each.to_json() for each in scores]
        excess = " | ".join(map(percent, (last.mean_excess, last.median_excess, last.worst_excess, last.within)))
        print(f"| {name} | {percent(last.flipped)} | {excess} | {last.impossible} | {last.seconds:.0f} |", flush=True)
    return dict(found)


def rank_bounds(problems: list[TruthProblem], word: str) -> dict[str, object]:
    found, deeper = {}, dict[str, BoundScore]()
    print(HEADS)
    for name, (certificate, applies) in BOUNDS.items():
        fitting = [each for each in problems if applies(each)]
        if word not in name or not fitting:
            continue
        measured = [measure_certificate(certificate, each) for each in fitting]
        scores = bound_scores(measured)
        found[name] = [each.to_json() for each in scores]
        print(row(name, scores[-1]), flush=True)
        if deep := [each for each in measured if not isinstance(each.problem.network, TwoLayer)]:
            deeper[name] = bound_scores(deep)[-1]
    print("\nthe deeper ones alone:\n\n" + "\n".join([HEADS, *(row(*each) for each in deeper.items())]))
    return dict(found)


def row(name: str, score: BoundScore) -> str:
    shares = f"{score.mean_share:.4f} | {score.worst_share:.4f} | {percent(score.within)}"
    return f"| {name} | {score.instances} | {score.unsound} | {shares} | {score.seconds:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", metavar="DIR", type=Path)
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    torch.manual_seed(0)
    problems = list(problems_in(options.folder))
    print(f"{sum(len(each.data) for each in problems)} instances of {len(problems)} problems")
    with one_thread():
        found = {"attacks": rank_attacks(problems, options.only), "bounds": rank_bounds(problems, options.only)}
    if options.json:
        write_json(options.json, found)


if __name__ == "__main__":
    main()
