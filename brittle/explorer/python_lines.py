"""The Python lines that compute what the explorer shows."""

from brittle.explorer import points
from brittle.explorer.papers import LAZY_MARKS, LAZY_RATE, MOST_WIDTH, choose_setting
from brittle.explorer.plane import PROOF, network_of
from brittle.explorer.requests import JsonQuery
from brittle.explorer.start import goal, law, marks

PLANE = """\
import torch

import brittle as bt

X = {X}
y = {y}
data = bt.data.Data(X, y)
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
bt.data.save_data(data, "data.npz")
# brittle certify net.npz --data data.npz --method exact --seconds {seconds} --nodes {nodes} --json -
# brittle kkt net.npz --data data.npz --json -
"""

PAPER = """\
import torch

import brittle as bt

data = bt.data.{setting}.sample({examples}, torch.Generator().manual_seed({seed}){options})
rng = torch.Generator().manual_seed({seed})
network = bt.networks.{law}.draw(data.columns, {width}, rng, ambient=data.dim)
{training}
universal = bt.attacks.Universal(direction=bt.attacks.DIRECTIONS["{direction}"]).run(network, data)
print(universal.smallest)  # one direction flips all examples at this size
for theorem in {theorems}:
    print(bt.theorems.check(theorem, data, network))
"""
FLOW = """\
for mark in {marks}:
    until = bt.training.LogLoss(mark)
    network = bt.training.Flow(until=until, layers="{layers}").train(network, data).network"""
KKT = """
network = bt.kkt.solve(network, data).network"""
LAZY = """\
until, loss = bt.training.Steps({steps}), bt.training.Logistic()
regime = bt.training.LazyTraining(until, radius={ball}, loss=loss, rate={rate}, batch={examples}, biases=False)
network = regime.train(network, data, torch.Generator().manual_seed(0)).network"""


def paper_lines(asked: JsonQuery) -> str:
    """A script for the setting of a paper: its data, its training to the end, and its theorems."""
    chosen, draw, own = choose_setting(asked)
    ball = own.values.get("ball")
    if chosen.training == "lazy":
        training = LAZY.format(steps=LAZY_MARKS[-1], ball=ball, rate=LAZY_RATE, examples=draw.examples)
    else:
        layers = own.word("layers", ("all", "first"), "all")
        training = FLOW.format(marks=marks(goal(own)), layers=layers) + (KKT if chosen.jumps else "")
    return PAPER.format(
        setting=repr(draw.setting),
        examples=draw.examples,
        options="".join(f", {name}={value!r}" for name, value in draw.options.items()),
        seed=own.whole("seed", 0, 0, 2**31),
        law=repr(law(own)),
        width=own.whole("width", 60, 1, MOST_WIDTH),
        training=training,
        direction=chosen.direction,
        theorems=chosen.theorems,
    )


def python_lines(asked: JsonQuery) -> str:
    """A script for the points and the network of a request."""
    data = points.read_points(asked)
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
