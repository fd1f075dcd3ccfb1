"""Does the advice change with the budget? The same network and seed, audited for less and for more work.

    python -m benchmarks.advice [--budgets 10 20 60]

Two networks on digits 3 and 8: the demo's, and one of width 100 on 1000 of MNIST's.
"""

import argparse
import time

import torch

import brittle as bt
from brittle.auditing.treatment import as_good, best
from brittle.cli.audit import make_default_subject
from brittle.data import Data, Mnist
from brittle.networks import Network

EXAMPLES, HELD_OUT, WIDTH, UNTIL = 1000, 500, 100, -4.0


def demo() -> tuple[Network, Data]:
    """What `make demo` audits."""
    return make_default_subject(torch.Generator().manual_seed(0))


def mnist() -> tuple[Network, Data]:
    """Gradient flow on some of MNIST's threes and eights."""
    digits, rng = Mnist(classes=(3, 8)).load(), torch.Generator().manual_seed(0)
    rows = torch.randperm(len(digits), generator=rng)[:EXAMPLES]
    held = torch.randperm(len(digits.test), generator=rng)[:HELD_OUT]
    data = Data(digits.X[rows], digits.y[rows], digits.test.X[held], digits.test.y[held])
    start = bt.networks.TorchLinearInit().draw(data.columns, WIDTH, rng)
    flow = bt.training.Flow(loss=bt.training.Logistic(), until=bt.training.LogLoss(UNTIL))
    return flow.train(start, data).network, data


def row(network: Network, data: Data, budget: float) -> list[str]:
    """What one audit advises, and on what grounds."""
    begun, rng = time.process_time(), torch.Generator().manual_seed(0)
    found = bt.audit(network, data, budget=budget, examples=100, test=True, rng=rng)
    dear, chosen = sum(each.unaffordable for each in found.remedies), best(found.remedies)
    seconds = f"{time.process_time() - begun:.0f}"
    if chosen is None:
        return [f"{budget:g}", "none", "", "", "", str(dear), seconds]
    proved = "" if chosen.proved_factor is None else f"{chosen.proved_factor:.2f} on {chosen.proved_examples}"
    grounds = [f"{chosen.factor:.2f} on {len(chosen.norms_after)}", proved]
    return [f"{budget:g}", chosen.name, *grounds, ", ".join(as_good(found.remedies)), str(dear), seconds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budgets", type=float, nargs="+", default=[10.0, 20.0, 60.0])
    chosen = parser.parse_args()
    print("| network | budget | advice | attacked | proved | about as much | too dear | computing, s |")
    print("|---|---|---|---|---|---|---|---|")
    for name, make in {"demo": demo, "MNIST 3 v 8": mnist}.items():
        network, data = make()
        for budget in chosen.budgets:
            print(f"| {name} | {' | '.join(row(network, data, budget))} |", flush=True)


if __name__ == "__main__":
    main()
