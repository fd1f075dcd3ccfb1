"""brittle explore: an audit to walk through and a laboratory of the four papers, in the browser."""

import webbrowser
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from brittle.cli.audit import make_default_subject
from brittle.cli.console import say, watching
from brittle.cli.models import DATA_HELP, DataFile, NetworkFile, load_model_and_data, with_networks
from brittle.cli.options import Seed, generator
from brittle.cli.sections import SectionedCommand
from brittle.common.errors import require

if TYPE_CHECKING:
    from brittle.explorer import ExplorerSubject

app = typer.Typer(rich_markup_mode=None, add_completion=False)
NEEDED = ("starlette", "uvicorn")
EMBEDDED = """\
rng = torch.Generator().manual_seed({seed})
data = bt.data.Digits(classes=(3, 8)).sample(rng=rng, test=100)
network = bt.networks.TorchLinearInit().draw(data.columns, 200, rng)
flow = bt.training.Flow(loss=bt.training.Logistic(), until=bt.training.LogLoss(-6))
network = flow.train(network, data).network"""


@app.command(cls=SectionedCommand, help="Explore points, the papers and an audit in the browser.")
@with_networks
def explore(
    model: Annotated[
        NetworkFile | None, typer.Argument(metavar="MODEL", help="Network to walk through; none: digits.")
    ] = None,
    data: Annotated[
        DataFile | None,
        typer.Option("--data", metavar="FILE", help=f"Its data; without a network, points of the plane. {DATA_HELP}"),
    ] = None,
    test: Annotated[bool, typer.Option("--test", help="Walk through the held-out examples.")] = False,
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65535, help="Where to listen; any free port unless given.")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    state: Annotated[
        str, typer.Option("--state", metavar="TEXT", help="What to show: the part of a link behind its #.")
    ] = "",
    seed: Seed = 0,
) -> None:
    missing = [name for name in NEEDED if find_spec(name) is None]
    require(not missing, "explore needs the extra 'explore': pip install 'brittle[explore]'")
    require(model is None or data is not None, "--data is missing: a walk needs the data of the network")
    require(not test or model is not None, "--test was given without a network: name its file too")
    from brittle.explorer import listening, serve

    with listening(port) as door:
        with watching("explore"):
            subject = _subject(model, data, test, seed)
        serve(subject, door, _opener(browser), state)


def _opener(browser: bool) -> Callable[[str], None]:
    def opened(address: str) -> None:
        say(f"the explorer is at {address}")
        if browser and not _shown(address):
            say("no browser was found: open that address in one yourself")
        say("Ctrl-C ends it")

    return opened


def _shown(address: str) -> bool:
    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False


def _subject(model: NetworkFile | None, data: DataFile | None, test: bool, seed: int) -> "ExplorerSubject":
    from brittle.explorer import ExplorerSubject, NetworkWalk, own_points

    if model is not None and data is not None:
        network, examples = load_model_and_data(model, data)
        examples = examples.test if test else examples
        return ExplorerSubject(NetworkWalk(network, examples, model.name, _source(model, data, test)))
    own = None if data is None else own_points(data.load(), data.path)
    network, digits = make_default_subject(generator(seed))
    named = replace(digits, truth=replace(digits.truth, names=("3", "8")))
    return ExplorerSubject(NetworkWalk(network, named, "The digits 3 and 8", EMBEDDED.format(seed=seed)), own)


def _source(model: NetworkFile, data: DataFile, test: bool) -> str:
    """The Python lines that load both."""
    lines = [f"data = bt.data.load_data({str(data.path)!r})"]
    foreign = "" if model.architecture is None else f"  # with a module of {model.architecture}"
    given = {"activation": model.activation, "output": model.output}
    options = "".join(f", {name}={value!r}" for name, value in given.items() if value is not None)
    lines.append(f"network = bt.networks.load_network({str(model.path)!r}{options}){foreign}")
    lines.append("data = data.labelled_for(network.classes)" + (".test" if test else ""))
    return "\n".join(lines)
