"""`brittle check`: one theorem on its own instance or on yours, over a sweep of its sizes, or all of them."""

from pathlib import Path
from typing import Annotated

import typer

from brittle.cli.described import load_theorem_descriptions
from brittle.cli.models import DATA_HELP, DataFile, NetworkFile, with_networks
from brittle.cli.options import JsonFile, Seed, file_to_write, suggesting
from brittle.cli.sections import SectionedCommand
from brittle.common.errors import require
from brittle.common.threads import one_thread

app = typer.Typer(add_completion=False, rich_markup_mode=None)

YOURS, SIZES = "On your own network and data", "Over draws and sizes"  # sections of the help
Net = Annotated[
    NetworkFile | None,
    typer.Option("--net", metavar="FILE", help="Your network: .npz, .pt or .safetensors.", rich_help_panel=YOURS),
]
YourData = Annotated[
    DataFile | None, typer.Option("--data", metavar="FILE", help=f"Your own. {DATA_HELP}", rich_help_panel=YOURS)
]
Start = Annotated[
    NetworkFile | None,
    typer.Option(
        "--start", metavar="FILE", help="Where its training began, unless --net says it.", rich_help_panel=YOURS
    ),
]
Known = Annotated[
    list[str],
    typer.Option(
        "--fact",
        metavar="NAME=NUMBER",
        help="Of its training: rate, decay, steps, beta (melamed2023).",
        rich_help_panel=YOURS,
    ),
]
Draws = Annotated[
    int | None,
    typer.Option(
        "--trials", min=1, help="Count failures over this many draws of the default instance.", rich_help_panel=SIZES
    ),
]
Unknown = Annotated[
    str | None,
    typer.Option(
        "--solve-for", metavar="NAME", help="For which values of it can the hypotheses hold?", rich_help_panel=SIZES
    ),
]
Settings = Annotated[
    list[str],
    typer.Option(
        "--set", metavar="NAME=VALUE", help="A field of the theorem, such as dim=12000.", rich_help_panel=SIZES
    ),
]
Sweeps = Annotated[
    list[str],
    typer.Option(
        "--sweep",
        metavar="NAME=VALUE,...",
        help="Check every combination of these values of its fields.",
        rich_help_panel=SIZES,
    ),
]
CsvFile = Annotated[
    Path | None,
    typer.Option(
        "--csv",
        metavar="FILE",
        callback=file_to_write(),
        help="Write the sweep, a row for every comparison.",
        rich_help_panel=SIZES,
    ),
]
LatexFile = Annotated[
    Path | None,
    typer.Option(
        "--latex",
        metavar="FILE",
        callback=file_to_write(),
        help="Write the sweep's table for LaTeX.",
        rich_help_panel=SIZES,
    ),
]
Beyond = Annotated[
    bool, typer.Option("--beyond", help="Evaluate the conclusion even where a hypothesis fails; --json always does.")
]


@app.command(cls=SectionedCommand)
@with_networks
def check(
    identity: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            autocompletion=suggesting(lambda: ["all", *(row["id"] for row in load_theorem_descriptions())]),
            help="A theorem, such as melamed2023/5.1, yours as MODULE:CLASS, or `all`.",
        ),
    ],
    net: Net = None,
    data: YourData = None,
    start: Start = None,
    known: Known = [],  # noqa: B006
    trials: Draws = None,
    solve_for: Unknown = None,
    settings: Settings = [],  # noqa: B006
    sweeps: Sweeps = [],  # noqa: B006
    csv: CsvFile = None,
    latex: LatexFile = None,
    beyond: Beyond = False,
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    """Check a theorem: on its embedded instance, on your own network and data, over many draws, at every combination of
    some sizes, or solved for one size. Data alone, without a network, are compared with what it supposes of data.

    Exit code 1 if a claim does not hold although its hypotheses do; with `all`, statements that are known to be false
    as printed are listed as such and do not count.
    """
    own = net is not None or data is not None
    require(own or not (start or known), "--start and --fact are about your own network: give --net and --data too")
    require(bool(sweeps) or not (csv or latex), "--csv and --latex write a sweep: give --sweep NAME=VALUE,... too")
    everything = identity.lower() == "all"
    alone = not (own or trials or solve_for or settings or sweeps)
    words = "`brittle check all` takes no --net, --data, --trials, --solve-for, --set or --sweep: name one"
    require(alone or not everything, words)
    require(net is None or data is not None, "--net is given without --data: a theorem is checked on examples")
    require(start is None or net is not None, "--start is given without --net: give the trained network too")
    alone = not (own or trials or solve_for)
    words = "--sweep is over default instances: leave out --net, --data, --trials and --solve-for"
    require(alone or not sweeps, words)
    require(not (own and trials), "--trials draws instances of its own; leave out --net and --data")
    from brittle.cli import checking

    with one_thread():  # most of the work is on small matrices
        if everything:
            holds = checking.check_all(seed, json_file)
        else:
            theorem = checking.find_theorem(identity, settings)
            if sweeps:
                holds = checking.check_sweep(theorem, sweeps, seed, csv, latex, json_file)
            elif solve_for is not None:
                holds = checking.check_solved(theorem, solve_for, json_file)
            else:
                given = None if data is None else checking.UserInstance(data, net, start, known)
                holds = checking.check_once(theorem, given, trials, beyond, seed, json_file)
    if not holds:
        raise typer.Exit(1)
