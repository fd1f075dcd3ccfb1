"""Which modules are chains of linear layers and ReLUs: their traced graph says it, and a few inputs confirm it."""

import copy
import math
import operator
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from brittle.networks.deep import Deep, of_layers, simplest
from brittle.networks.layered import LayeredModule
from brittle.networks.two_layer import TwoLayer, TwoLayerModule

PROBES = 16
IDENTITIES = (nn.Identity, nn.Dropout, nn.Flatten)
SHAPERS = ("flatten", "view", "reshape", "squeeze")


def recognised(module: nn.Module, shape: tuple[int, ...] = ()) -> TwoLayer | Deep | None:
    """The same function as a TwoLayer or Deep network, or None where the module is anything else."""
    if isinstance(module, TwoLayerModule):
        W, b, v, c = (value.detach().clone() for value in (module.W, module.b, module.v, module.c))
        return TwoLayer(W, b, v, c)
    if isinstance(module, LayeredModule):
        return simplest(Deep(tuple(module.trained_layers())))
    module = copy.deepcopy(module).eval()
    layers = _chain(module)
    if layers is None or not _usable(layers):
        return None
    weights = [layer.weight.detach() for layer in layers]
    biases = [
        layer.weight.new_zeros(layer.out_features) if layer.bias is None else layer.bias.detach() for layer in layers
    ]
    network = of_layers(weights, biases)
    return network if agree(network, module, shape) else None


def _chain(module: nn.Module) -> list[nn.Linear] | None:
    """The linear layers, where the graph is one path on which they and ReLUs alternate."""
    whole = nn.Sequential(module)  # a lone nn.Linear would be traced into
    try:
        nodes = list(fx.Tracer().trace(whole).nodes)
    except Exception:  # control flow and hooks cannot be traced, in many ways
        return None
    parts = dict(whole.named_modules())
    path = [node for node in nodes if not _asks_for_shape(node)]
    if path[0].op != "placeholder" or path[-1].op != "output" or not _single(path):
        return None
    steps = [parts[node.target] if node.op == "call_module" else node.target for node in path[1:-1]]
    steps = [step for step in steps if not _is_shaper(step)]
    linear, between = steps[::2], steps[1::2]
    alternate = all(type(step) is nn.Linear for step in linear) and all(_is_relu(step) for step in between)
    return linear if alternate and len(linear) == len(between) + 1 else None


def _single(path: list[fx.Node]) -> bool:
    """Every node takes the one before it, and besides it nothing but shapes."""
    calls = all(node.op in ("call_module", "call_function", "call_method") for node in path[1:-1])
    inputs = [[each for each in node.all_input_nodes if not _asks_for_shape(each)] for node in path[1:]]
    return calls and inputs == [[node] for node in path[:-1]]


def _asks_for_shape(node: fx.Node) -> bool:
    """x.size(0), x.shape, x.shape[0]"""
    if node.target is operator.getitem:
        return _asks_for_shape(node.all_input_nodes[0])
    return node.target == "size" or (node.target is getattr and node.args[1] == "shape")


def _is_relu(target: Any) -> bool:
    return type(target) is nn.ReLU or target in (functional.relu, torch.relu, torch.relu_, "relu", "relu_")


def _is_shaper(target: Any) -> bool:
    """Leaves every row's numbers alone; what it does to their arrangement shows on the probes."""
    return isinstance(target, IDENTITIES) or target in (torch.flatten, torch.squeeze, torch.reshape, *SHAPERS)


def _bias(layer: nn.Linear) -> Tensor:
    return layer.weight.new_zeros(layer.out_features) if layer.bias is None else layer.bias.detach()


def _usable(layers: list[nn.Linear]) -> bool:
    types = {value.dtype for layer in layers for value in (layer.weight, layer.bias) if value is not None}
    return len(types) == 1 and next(iter(types)).is_floating_point


def agree(network: TwoLayer | Deep, module: nn.Module, shape: tuple[int, ...]) -> bool:
    if shape and math.prod(shape) != network.dim:
        return False
    rng = torch.Generator().manual_seed(0)
    X = torch.randn(PROBES, network.dim, generator=rng, dtype=torch.float64).to(network.dtype)
    try:
        with torch.no_grad():
            output: Tensor = module(X.reshape(PROBES, *shape) if shape else X)
    except Exception:  # the adapter will say what is wrong
        return False
    expected = network.logits(X)
    if network.classes == 1 and output.shape == (PROBES, 1):
        output = output[:, 0]
    tolerance = 1e3 * torch.finfo(network.dtype).eps * float(expected.abs().max() + 1)
    return output.shape == expected.shape and torch.allclose(output, expected, rtol=1e-4, atol=tolerance)
