"""brittle certify: how far every example provably is from flipping, with the flips that say it cannot be farther."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from brittle.certificates import Bounds, Certificate, Dual, Exact, Lipschitz, Relaxation
from brittle.cli.console import deliver, emit, fields_table, say, watching
from brittle.cli.options import DataFile, JsonFile, NetworkFile, Seed, file_to_write, generator
from brittle.common.ending import Ending
from brittle.common.errors import require, require_count
from brittle.networks import load_network
from brittle.settings import Data, load_data

app = typer.Typer(rich_markup_mode=None, add_completion=False)

METHODS: dict[str, type[Certificate]] = {
    "lipschitz": Lipschitz,
    "relaxation": Relaxation,
    "dual": Dual,
    "exact": Exact,
}
ENDINGS = (Ending.ERROR, Ending.EXACT, Ending.CAPPED, Ending.OPEN)


@app.command(help="Prove how far every example is from flipping.")
def certify(
    network_file: NetworkFile,
    data_file: DataFile,
    method: Annotated[str, typer.Option(metavar="WORD", help=f"One of {', '.join(METHODS)}.")] = "dual",
    constant: Annotated[
        str | None, typer.Option(metavar="WORD", help="lipschitz: spectral, sum or local (unless given).")
    ] = None,
    refined: Annotated[bool, typer.Option("--refined", help="dual: better bounds, a few times slower.")] = False,
    boxed: Annotated[bool, typer.Option("--boxed", help="dual: flips outside --bounds do not count.")] = False,
    gap: Annotated[float | None, typer.Option(metavar="NUMBER", help="exact: the relative gap to reach.")] = None,
    seconds: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="exact: time for one example; the gap that is left is shown.")
    ] = None,
    steps: Annotated[int | None, typer.Option(metavar="N", help="relaxation: steps on the slopes.")] = None,
    cap: Annotated[float | None, typer.Option(metavar="NUMBER", help="No larger radius is asked for.")] = None,
    bounds: Annotated[
        tuple[float, float] | None, typer.Option(metavar="LOW HIGH", help="Flips keep every feature in this range.")
    ] = None,
    examples: Annotated[int | None, typer.Option(metavar="N", help="Only the first N examples.")] = None,
    test: Annotated[bool, typer.Option("--test", help="Certify the held-out examples.")] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=file_to_write(".png", ".svg", ".pdf"),
            help="Draw the enclosures, sorted by radius: .png, .svg or .pdf.",
        ),
    ] = None,
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    flags = {"refined": refined or None, "boxed": boxed or None}
    options = {"constant": constant, **flags, "gap": gap, "seconds": seconds, "steps": steps}
    part = _chosen(method, {name: value for name, value in options.items() if value is not None})
    require(not boxed or bounds is not None, "--boxed is given without a box; pass --bounds LOW HIGH")
    network, data = load_network(network_file), load_data(data_file)
    data = _first(data.test if test else data, examples)
    with watching(method) as watch:
        found = part.bound(network, data, bounds=bounds, cap=cap, rng=generator(seed), watch=watch)
    for reason, count in Counter(filter(None, found.reason)).items():
        say(f"nothing is proved of {count} examples: {reason}")
    summary = _summary(found)
    content = {**summary, **found.to_json(), "seed": seed}
    deliver(lambda: _draw(found, plot), lambda: emit(content, json_file, fields_table(summary)))


def _draw(found: Bounds, plot: Path | None) -> None:
    from brittle.report.sandwich import draw_sandwich

    if plot is not None:
        draw_sandwich(found, plot)
        say(f"wrote {plot}")


def _chosen(method: str, options: dict[str, Any]) -> Certificate:
    require(method in METHODS, f"--method is {method!r}; it must be one of {', '.join(METHODS)}")
    part = METHODS[method]
    wrong = [name for name in options if name not in part.__dataclass_fields__]  # type: ignore[attr-defined]
    require(not wrong, f"--{wrong[0] if wrong else ''} does not apply to --method {method}")
    return part(**options)


def _first(data: Data, count: int | None) -> Data:
    if count is None:
        return data
    require_count("--examples", count)
    return Data(data.X[:count], data.y[:count], truth=data.truth)


def _summary(found: Bounds) -> dict[str, Any]:
    counts = Counter(found.status)
    known = len(found.ratio) > 0
    return {
        "method": found.method,
        "examples": len(found.lower),
        "counts": {str(ending): counts[ending] for ending in ENDINGS},
        "smallest_lower": float(found.lower.min()),
        "mean_lower": float(found.lower.mean()),
        "mean_ratio": float(found.ratio.mean()) if known else None,
        "smallest_ratio": float(found.ratio.min()) if known else None,
        "mean_seconds": float(found.seconds.mean()),
    }
