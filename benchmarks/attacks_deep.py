"""MinimumNorm against Foolbox's ℓ2 attacks on deep networks: norms and processor seconds, one run, one thread.

    python -m benchmarks.attacks_deep [--only WORD] [--images N] [--steps N] [--json FILE]

Three networks of SDP-CROWN (BRITTLE_DATA holds its folder, as for benchmarks.deep) and a CNN that is trained here on
scikit-learn's digits, each with its first N rightly classified images and no box. Foolbox works in float32; the network
judges every flip in float64, and one that is none counts as a failure. The ratio is the attack's mean norm over
MinimumNorm's, on the images that both flip; `steps` are those of Brendel and Bethge's attack, which is slow.

DDN follows the cross-entropy, whose gradient mixes all rivals unless the logits are far apart: it runs on the logits
times 100 too. The ℓ2 projection of FMN in Foolbox 3.3.4 divides a norm by itself and so never projects: it is repaired.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

from torch import Tensor

from benchmarks.deep import PROBLEMS, examples
from benchmarks.networks import architectures, tasks, trained
from brittle.attacks import Attack, AttackResult, Foolbox, MinimumNorm
from brittle.attacks.base import AttackTarget, Attempt
from brittle.common.files import write_json
from brittle.common.threads import one_thread
from brittle.data import Data, data_folder
from brittle.networks import Layered, Network, as_network

ALL = 200  # images of each data set
DDN = Foolbox("DDNAttack", {"steps": 1000})


def peers(steps: int) -> dict[str, Attack[AttackResult]]:
    attacks: dict[str, Attack[AttackResult]] = {
        "DDN, 1000 steps": DDN,
        "DDN, 1000 steps, logits x 100": Sharper(DDN, 100.0),
        "FMN, 1000 steps": Foolbox("L2FMNAttack", {"steps": 1000}),
        "DeepFool": Foolbox("L2DeepFoolAttack"),
    }
    if find_spec("numba") is not None:
        attacks[f"Brendel-Bethge, {steps} steps"] = Foolbox("L2BrendelBethgeAttack", {"steps": steps})
    return attacks


@dataclass(frozen=True)
class Sharper(Attack[AttackResult]):
    """An attack on the same network with logits that are `times` as large: the flips are the same."""

    attack: Attack[AttackResult]
    times: float

    def propose(self, target: AttackTarget) -> Attempt:
        network = target.network
        assert isinstance(network, Layered)
        *hidden, last = network.layers
        sharp = last.with_parameters(*(self.times * each for each in last.parameters))
        return self.attack.propose(replace(target, network=network.with_layers([*hidden, sharp])))


def repair_fmn() -> None:
    """To the ball around x0, as the attack's paper has it."""
    import foolbox

    def project(self: Any, x: Any, x0: Any, epsilon: Any) -> Any:
        delta, radius = (x - x0).raw, epsilon.raw
        lengths = delta.flatten(1).norm(dim=1).clamp(min=1e-12)
        shares: Tensor = (radius / lengths).clamp(max=1)
        return x0 + type(x)(delta * shares.reshape(-1, *[1] * (delta.ndim - 1)))

    foolbox.attacks.L2FMNAttack.project = project  # type: ignore[attr-defined, method-assign]


def subjects(only: str, images: int) -> Iterator[tuple[str, Network, Data]]:
    """Networks with images that they classify rightly."""
    folder = data_folder() / "sdpcrown"
    for problem in PROBLEMS:
        if only in problem.name:
            network = problem.make(folder / f"{problem.name}.pth")
            yield problem.name, network, _right(network, examples(folder, problem, ALL), images)
    if only in "digits_cnn":
        task = tasks()[0]
        digits = as_network(trained(architectures()["convolutions"], task), (1, 8, 8))
        yield "digits_cnn", digits, _right(digits, task.data, images)


def _right(network: Network, data: Data, images: int) -> Data:
    return data.take((network.margins(data.X, data.y) > 0).nonzero()[:images, 0])


def rows(name: str, network: Network, data: Data, attacks: dict[str, Attack[Any]]) -> Iterator[dict[str, Any]]:
    """What each attack found; the first of them is the measure of the others."""
    ours: AttackResult | None = None
    for title, attack in attacks.items():
        start = time.process_time()
        result = attack.run(network, data)
        seconds = time.process_time() - start
        ours = ours or result
        both = ours.success & result.success
        yield {
            "network": name,
            "attack": title,
            "images": len(data),
            "flipped": int(result.success.sum()),
            "mean_norm": float(result.norms[result.success].mean()),
            "ratio": float(result.norms[both].mean() / ours.norms[both].mean()),
            "seconds": seconds,
        }


def shown(row: dict[str, Any]) -> str:
    norms = f"{row['mean_norm']:.5f} | {row['ratio']:.4f}"
    return (
        f"| {row['network']} | {row['attack']} | {row['flipped']} of {row['images']} | {norms} | {row['seconds']:.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="networks whose name has this word")
    parser.add_argument("--images", type=int, default=10)
    parser.add_argument("--steps", type=int, default=100, help="of Brendel and Bethge's attack")
    parser.add_argument("--json", metavar="FILE", help="write the rows as JSON too")
    options = parser.parse_args()
    attacks = {"minimum norm": MinimumNorm(), **peers(options.steps)}
    repair_fmn()
    found = []
    print("| network | attack | flipped | mean norm | ratio | seconds |\n|---|---|---|---|---|---|")
    for name, network, data in subjects(options.only, options.images):
        for row in rows(name, network, data, attacks):
            print(shown(row), flush=True)
            found.append(row)
    if not any("Brendel" in title for title in attacks):
        print("Brendel-Bethge was skipped: Foolbox needs numba for it")
    if options.json:
        write_json(options.json, found)


if __name__ == "__main__":
    with one_thread():
        main()
