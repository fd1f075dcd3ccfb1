"""Which modules and graphs are affine maps and ReLUs: the steps of their graph say it, and inputs confirm it."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from brittle.common.errors import InputError, note, require
from brittle.networks.adapter import PROBES, Adapter, evaluating, features, probes
from brittle.networks.affine import Affine, Dense
from brittle.networks.base import Network, in_chunks
from brittle.networks.deep import Deep, simplest
from brittle.networks.estimators import Estimator, is_estimator, of_estimator
from brittle.networks.folded import Folded
from brittle.networks.graph import Graph, Interpreter, of_one_type
from brittle.networks.layered import Layered, LayeredModule
from brittle.networks.lowering import lower_graph
from brittle.networks.output_layers import Rows, center_probability, without_ending
from brittle.networks.outputs import Choice, of_one_output, run_module
from brittle.networks.terms import OpaqueError
from brittle.networks.trace import trace_module
from brittle.networks.two_layer import TwoLayer, TwoLayerModule

UNSTEADY = 1e-2  # relative: more than rounding makes of any float type
ALONE = 4  # examples that a module is asked about one at a time
Run = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Recognition:
    """What a foreign network was seen as.

    `parts` say what was found, folded and cut off; on so many `inputs` the outputs differ by at most `difference`,
    relative to the largest of them, or to 1 if that is larger. Where it stayed a black box, `reason` says why, and is
    empty otherwise.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> layers = torch.nn.Linear(2, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU(), torch.nn.Linear(4, 1)
        >>> module = torch.nn.Sequential(*layers)
        >>> network, seen = bt.networks.recognise(module)
        >>> seen.parts
        ('a TwoLayer network of 2 layers', '2 linear layers', '1 batch norm folded')
        >>> type(network).__name__
        'TwoLayer'
    """

    parts: tuple[str, ...] = ()
    difference: float = 0.0
    inputs: int = 0
    reason: str = ""

    def __str__(self) -> str:
        if self.reason:
            return f"a black box, known by its outputs and gradients only: {self.reason}"
        return f"{', '.join(self.parts)}; largest difference {self.difference:.1g} on {self.inputs} inputs"


def as_network(
    thing: Network | nn.Module | Estimator, shape: tuple[int, ...] = (), output: Choice | None = None
) -> Network:
    """A network as it is; a module of affine maps and ReLUs as TwoLayer or Deep; any other module as an Adapter.

    Classifiers of scikit-learn that are such networks, behind steps that are affine, become them too.

    `shape` is that of one input, for modules that do not take flat rows: (channels, height, width). Of a module that
    returns a tuple, a dictionary or an object, `output` names the logits, by their place or name. Without it those
    that are called `logits` are taken, or the only matrix of floats, with a note.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> module = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
        >>> type(bt.networks.as_network(module)).__name__
        'TwoLayer'
    """
    return recognise(thing, shape, output=output)[0]


def recognise(
    thing: Network | nn.Module | Estimator,
    shape: tuple[int, ...] = (),
    examples: Tensor | None = None,
    output: Choice | None = None,
) -> tuple[Network, Recognition | None]:
    """`as_network`, and what was recognised; None where there was nothing foreign to look at.

    `examples` are rows on which the result is compared with the module besides random ones.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> module = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.GELU(), torch.nn.Linear(4, 1))
        >>> network, seen = bt.networks.recognise(module)
        >>> seen.reason
        'gelu is no ReLU'
    """
    if isinstance(thing, Network) or is_estimator(thing):
        require(output is None, f"output is {output!r}, and a {type(thing).__name__} has one output only")
    if isinstance(thing, Network):
        return thing, None
    if is_estimator(thing):
        return of_estimator(thing), None
    kind = type(thing).__name__
    if not isinstance(thing, nn.Module):
        raise InputError(f"{kind} is no network; give a Network, an nn.Module or a classifier of scikit-learn")
    uncompiled = getattr(thing, "_orig_mod", None)  # torch.compile would compile whatever looks into it, too
    if isinstance(uncompiled, nn.Module):
        return recognise(uncompiled, shape, examples, output)
    if isinstance(thing, Rows):
        return recognise(thing.inner, shape or thing.shape, examples, output)
    if isinstance(thing, TwoLayerModule):
        W, b, v, c = (value.detach().clone() for value in (thing.W, thing.b, thing.v, thing.c))
        return TwoLayer(W, b, v, c), None
    if isinstance(thing, LayeredModule):
        return _plain(thing.trained_layers()), None
    _refuse_quantised(thing)
    module = _of_one_output(thing, shape, output)
    try:
        return _of_module(module, shape, examples)
    except OpaqueError as reason:
        return black_box(Adapter(module, shape), str(reason))


def _refuse_quantised(module: nn.Module) -> None:
    """Layers of whole numbers have no gradients, and take float32 only."""
    for name, each in module.named_modules():
        source = type(each).__module__
        quantised = source.startswith(("torch.ao.nn", "torch.nn")) and "quantized" in source
        words = (
            f"the module {type(module).__name__} is quantised: its part '{name}' is a {source}.{type(each).__name__}"
        )
        require(not quantised, f"{words}, which has no gradients; pass the module of floats that it was made from")


def _of_one_output(module: nn.Module, shape: tuple[int, ...], output: Choice | None) -> nn.Module:
    copied = evaluating(module)
    X = torch.zeros(2, *(shape or (features(module),))).to(_like(copied))
    returned = run_module(copied, X)
    if returned is None:
        require(output is None, f"the module {type(module).__name__} fails on an input of shape {tuple(X.shape)}")
        return module
    return of_one_output(module, returned, output)


def _like(module: nn.Module) -> Tensor:
    """A tensor of the type and on the device of the module."""
    floats = [each for each in (*module.parameters(), *module.buffers()) if each.is_floating_point()]
    return floats[0] if floats else torch.zeros((), dtype=torch.float64)


def black_box(network: Adapter, reason: str) -> tuple[Adapter, Recognition]:
    """Whatever else there is to know about a network of which only the outputs are known, is said."""
    if network.probabilities and network.classes == 1:
        note("the network gives a number from 0 to 1, a probability: the label changes at 1/2")
    try:
        with torch.no_grad():
            inputs = probes(network.dim, network.trials)
            apart = [torch.cat([network.logits(rows) for rows in X.reshape(-1, 4, network.dim)]) for X in inputs]
            pairs = [(network.logits(X), each) for X, each in zip(inputs, apart, strict=True)]
    except Exception:  # a foreign module may raise anything, here on random inputs
        return network, Recognition(reason=reason)
    if any(float((a - b).abs().max()) > UNSTEADY * max(1.0, float(a.abs().max())) for a, b in pairs):
        note(
            "the network gives one input different outputs, by chance or by the other inputs of its batch: "
            "what is measured on it is no property of single examples"
        )
    return network, Recognition(reason=reason)


def _of_module(module: nn.Module, shape: tuple[int, ...], examples: Tensor | None) -> tuple[Network, Recognition]:
    module = evaluating(module)
    shape = tuple(shape) or (features(module),)
    like = _like(module)
    if like.dtype in (torch.float16, torch.bfloat16):  # float32 holds the same numbers
        module, like = module.float(), like.float()
    graph = of_one_type(trace_module(module, shape, like))

    def run(X: Tensor) -> Tensor:
        output: Tensor = module(X.to(like))
        return output.cpu()

    return of_graph(graph, shape, run, examples)


def of_graph(
    graph: Graph,
    shape: tuple[int, ...],
    run: Run | None = None,
    examples: Tensor | None = None,
    trials: int = PROBES,
    row_bytes: int = 0,
) -> tuple[Layered, Recognition]:
    """The network that a graph is, compared with the graph and with the module `run` that it was traced from.

    They are compared on so many `trials` of every size, in runs of as many rows as `row_bytes` each allow.
    Raises OpaqueError where it is none.
    """
    core, cut = without_ending(graph)
    layers, plain, parts = lower_graph(core, shape)
    if cut in ("Softmax", "LogSoftmax") and layers[-1].outputs == 1:
        raise OpaqueError(f"a {cut} of one output is constant")
    half = None if cut or layers[-1].outputs > 1 else center_probability(core)
    if half is not None:
        core, (layers, plain, _) = half, lower_graph(half, shape)
    network = _network(core, shape, layers, plain)
    inputs = _probes(network.dim, examples, trials)
    interpreted = _interpreted(core)
    in_runs: Run = lambda X: in_chunks(interpreted, row_bytes, X)  # noqa: E731
    pairs: list[tuple[Run, Run]] = [(lambda X: network.logits(X.flatten(1)), in_runs)]
    if run is not None:
        _check_alone(run, inputs[0].reshape(-1, *shape)[:ALONE])
        pairs.append((_interpreted(graph), run))
    difference = max(_difference(*pair, inputs, shape, network, torch.finfo(_type(graph)).eps) for pair in pairs)
    words = [*_words(parts), *([f"the final {cut} is cut off: its inputs decide"] if cut else [])]
    if half is not None:
        words.append("1/2 is taken from the final probability")
        note(
            "the network ends in a number from 0 to 1, a probability: the label changes at 1/2, which is taken from it"
        )
    return network, Recognition((_kind(network), *words), difference, sum(map(len, inputs)))


def _check_alone(run: Run, rows: Tensor) -> None:
    """A module that squeezes may take a batch of one example for something else."""
    try:
        with torch.no_grad():
            together = run(rows).double().reshape(len(rows), -1)
            apart = torch.cat([run(row[None]).double().reshape(1, -1) for row in rows])
    except Exception:  # it takes no such batches, or fails on random inputs
        return
    alike = apart.shape == together.shape
    if alike and not float((apart - together).abs().max()) <= UNSTEADY * max(1.0, float(together.abs().max())):
        raise OpaqueError("it gives an example alone other outputs than in a batch")


def _network(graph: Graph, shape: tuple[int, ...], layers: list[Affine], plain: bool) -> Layered:
    """In the graph's own float type where nothing is lost by that."""
    small = [layer.to(torch.float32) for layer in layers]
    if _type(graph) == torch.float32 and all(map(_same, small, layers)):
        layers = small
    if plain:
        return _plain(layers)
    return Folded(tuple(layers), graph=graph, image=shape)


def _plain(layers: Sequence[Affine]) -> TwoLayer | Deep:
    """A convolution stays one, also where there are two layers."""
    network = Deep(tuple(layers))
    return simplest(network) if all(isinstance(layer, Dense) for layer in layers) else network


def _same(small: Affine, layer: Affine) -> bool:
    return all(torch.equal(a.double(), b) for a, b in zip(small.parameters, layer.parameters, strict=True))


def _probes(dim: int, examples: Tensor | None, trials: int) -> list[Tensor]:
    """Random inputs of several sizes, and a few of the examples."""
    fits = examples is not None and examples.ndim == 2 and examples.shape[1] == dim
    some = [examples[: 4 * trials].float().double()] if examples is not None and fits else []
    return [*probes(dim, trials), *some]


def _difference(
    first: Run, second: Run, inputs: list[Tensor], shape: tuple[int, ...], network: Layered, eps: float
) -> float:
    """The largest, relative to the outputs; raises where it is more than rounding with this `eps`."""
    largest = 0.0
    for X in inputs:
        rows = X.reshape(len(X), *shape)
        try:
            with torch.no_grad():
                a, b = (run(rows).double().reshape(len(X), -1) for run in (first, second))
        except Exception as error:  # a foreign module may raise anything
            raise OpaqueError(f"it fails on random inputs ({str(error).partition(chr(10))[0][:200]})") from error
        if a.shape != b.shape:
            raise OpaqueError(f"its outputs have the shape {tuple(b.shape)} where {tuple(a.shape)} was expected")
        size = float(b.abs().max().clamp(min=1))
        difference = float((a - b).abs().max()) / size
        if not difference <= _tolerance(network, X, size, eps):
            raise OpaqueError(f"its outputs differ from those of the layers that were recognised by {difference:.1g}")
        largest = max(largest, difference)
    return largest


def _tolerance(network: Layered, X: Tensor, size: float, eps: float) -> float:
    """Sums round by their terms, which may be much larger than what is left of them; but not without end."""
    terms = float((network.rounding(X) / torch.finfo(network.dtype).eps).max())
    return 1e3 * eps + min(8 * eps * terms / size, 1e-3)


def _interpreted(graph: Graph) -> Run:
    module, dtype = Interpreter(graph), _type(graph)
    return lambda X: module(X.to(dtype))


def _type(graph: Graph) -> torch.dtype:
    return next((each.dtype for each in graph.constants.values() if each.is_floating_point()), torch.float64)


def _kind(network: Layered) -> str:
    return f"a {type(network).__name__} network of {network.depth} layers"


def _words(parts: Counter[str]) -> list[str]:
    """2 convolutions, 1 batch norm folded, ..."""
    return [f"{count} {kind.format(s='s' if count > 1 else '')}" for kind, count in parts.items()]
