"""The Python lines that compute what the explorer shows."""

from brittle.explorer import points
from brittle.explorer.asked import Asked
from brittle.explorer.plane import PROOF, network_of

PLANE = """\
import torch

import brittle as bt

X = {X}
y = {y}
data = bt.settings.Data(X, y)
W = torch.tensor({W}, dtype=torch.float64)
b = torch.tensor({b}, dtype=torch.float64)
v = torch.tensor({v}, dtype=torch.float64)
network = bt.networks.TwoLayer(W, b, v)

rng = torch.Generator().manual_seed(0)
bounds = bt.certificates.Exact(seconds={seconds}, nodes={nodes}).bound(network, data, rng=rng)
print(bounds.lower)  # no perturbation shorter than this flips the example
universal = bt.attacks.Universal(direction=bt.attacks.DIRECTIONS["{direction}"]).run(network, data)
print(universal.smallest)  # one direction flips all of them at this size
bt.networks.save_network(network, "net.npz")
bt.settings.save_data(data, "data.npz")
# brittle certify net.npz --data data.npz --method exact --seconds {seconds} --nodes {nodes} --json -
# brittle kkt net.npz --data data.npz --json -
"""


def python_lines(asked: Asked) -> str:
    """A script for the points and the network of a request."""
    data = points.given(asked)
    network, _ = network_of(asked, data)
    return PLANE.format(
        X=data.X.tolist(),
        y=data.y.tolist(),
        W=network.W.tolist(),
        b=network.b.tolist(),
        v=network.v.tolist(),
        seconds=PROOF.seconds,
        nodes=PROOF.nodes,
        direction=asked.word("direction", ("examples", "gradients"), "examples"),
    )
