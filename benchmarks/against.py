"""The same work in this tree and in another checkout of it, in turns: how much slower has anything become?

    git worktree add ../before REVISION
    python -m benchmarks.against ../before [--rounds N] [--only NAME ...]

Each piece of work is what a benchmark of its name times, without the peers: it runs `rounds` times in turns, each time
in a process of its own with this Python on one thread, and its processor seconds count, which a busy machine does not
distort much. The least of them are compared; a ratio above 1 is slower here. The last column is how far what was
computed differs, relative to its size.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent.parent
COMMON = """
import json, time, torch
from brittle.attacks import MinimumNorm
from brittle.certificates import Dual, Exact, LinearRelaxation
from brittle.kkt import solve
from brittle.networks import TorchLinearInit
from brittle.data import Clusters, Sphere
from brittle.training import Flow, LogLoss

rng = torch.Generator().manual_seed(0)
def trained(dim, examples, width, until=-70.0):
    data = Sphere(dim).sample(examples, rng)
    return Flow(until=LogLoss(until)).train(TorchLinearInit().draw(dim, width, rng), data).network, data
def random(dim, examples, width):
    data, network = Sphere(dim).sample(examples, rng), TorchLinearInit().draw(dim, width, rng)
    return network, type(data)(data.X, network.predict(data.X).double())
"""
WORK = {  # what is made ready, and what is timed: it gives numbers
    "flow": ("", "[trained(60, 60, 400)[0].W, trained(200, 40, 400)[0].W]"),
    "kkt": ("network, data = trained(100, 100, 200, -3.0)", "[solve(network, data).network.squared_norm]"),
    "attacks": ("network, data = random(200, 200, 1000)", "[MinimumNorm().run(network, data).norms]"),
    "certificates, two layers": (
        "network, data = random(200, 40, 1000)",
        "[Dual().bound(network, data).lower, Exact(gap=1e-4).bound(network, data.take(torch.arange(8))).upper]",
    ),
    "certificates, relaxation": ("network, data = random(200, 60, 1000)", "[Relaxation().bound(network, data).lower]"),
    "span": ("", "[each(10**6).sample(1000, rng, in_span=True).X for each in (Sphere, Clusters)]"),
}
RUN = """
{prepared}
begun = time.process_time()
found = {timed}
taken = time.process_time() - begun
norms = [float(torch.as_tensor(each).double().norm()) for each in found]
print(json.dumps([taken, norms]))
"""


def measured(tree: Path, name: str) -> tuple[float, list[float]]:
    """Processor seconds, and the norms of what was computed."""
    prepared, timed = WORK[name]
    program = COMMON + RUN.format(prepared=prepared, timed=timed)
    environment = os.environ | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", program], cwd=tree, env=environment, check=True, capture_output=True)
    seconds, norms = json.loads(done.stdout)
    return seconds, norms


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("other", type=Path, help="the other checkout")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=WORK, default=list(WORK))
    options = parser.parse_args()
    trees = [options.other.resolve(), HERE]
    print(f"{'work':<26}{'before':>9}{'after':>9}{'ratio':>8}{'differs':>10}")
    for name in options.only:
        runs = [[measured(tree, name) for tree in trees] for _ in range(options.rounds)]
        before, after = (min(seconds for seconds, _ in each) for each in zip(*runs, strict=True))
        (_, old), (_, new) = runs[0]
        differs = max(abs(a - b) / max(abs(b), 1e-300) for a, b in zip(new, old, strict=True))
        print(f"{name:<26}{before:>8.2f}s{after:>8.2f}s{after / before:>8.3f}{differs:>10.1e}", flush=True)


if __name__ == "__main__":
    main()
