"""brittle certify: how far every example provably is from flipping, with the flips that say it cannot be farther."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from brittle.cli.console import deliver, emit, fields_table, say, watching
from brittle.cli.crews import EngineName, Jobs, Keep, crew_for
from brittle.cli.models import DataOption, NetworkArgument, load_model_and_data, with_networks
from brittle.cli.options import JsonFile, Seed, file_to_write, generator
from brittle.cli.parts import Family, PartsCommand, get_part_name, with_part
from brittle.cli.proofs import ProofFile, ProofRequest
from brittle.common.ending import Status
from brittle.common.errors import require, require_count

if TYPE_CHECKING:
    from brittle.certificates import Certificate, RadiusBounds
    from brittle.data import Data

app = typer.Typer(rich_markup_mode=None, add_completion=False)

METHODS = Family("method", "certificates", "Certificate", default="dual")
ENDINGS = (Status.ERROR, Status.EXACT, Status.CAPPED, Status.OPEN)


@app.command(cls=PartsCommand, help="Prove how far every example is from flipping.")
@with_networks
@with_part(METHODS)
def certify(
    network_file: NetworkArgument,
    data_file: DataOption,
    method: "Certificate",
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
    proof: ProofFile = None,
    keep: Keep = None,
    engine: EngineName = "local",
    jobs: Jobs = 1,
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    from brittle.certificates import Dual

    unboxed = bounds is None and isinstance(method, Dual) and method.boxed
    require(not unboxed, "--boxed is given without a box; pass --bounds LOW HIGH")
    network, data = load_model_and_data(network_file, data_file)
    data = _first(data.test if test else data, examples)
    with crew_for(keep, engine, jobs) as crew:
        with watching(get_part_name(method)) as watch:
            if crew is None:
                found = method.bound(network, data, bounds=bounds, cap=cap, rng=generator(seed), watch=watch)
            else:
                from brittle.experiments.pieces import certify_in_chunks

                flips = proof is not None  # where to look for the proof
                found = certify_in_chunks(
                    network, data, method, crew, box=bounds, cap=cap, seed=seed, flips=flips, watch=watch
                )
        for reason, count in Counter(filter(None, found.reason)).items():
            say(f"nothing is proved of {count} examples: {reason}")
        asked = ProofRequest(proof, network_file.path, None if test else data_file.path, crew)
        boxed = bounds if isinstance(method, Dual) and method.boxed else None
        seconds = getattr(method, "seconds", 60.0)
        summary = _summary(found)
        content = {**summary, **found.to_json(), "seed": seed}
        deliver(
            lambda: emit(content, json_file, fields_table(summary)),
            lambda: asked.write(asked.proof(network, data, found.lower, found.flips, boxed, seconds)),
            lambda: _draw(found, plot),
        )


def _draw(found: "RadiusBounds", plot: Path | None) -> None:
    if plot is not None:
        from brittle.report.plot.movement import draw_sandwich

        draw_sandwich(found, plot)
        say(f"wrote {plot}")


def _first(data: "Data", count: int | None) -> "Data":
    import torch

    if count is None:
        return data
    require_count("--examples", count)
    return data.training.take(torch.arange(min(count, len(data))))


def _summary(found: "RadiusBounds") -> dict[str, Any]:
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
