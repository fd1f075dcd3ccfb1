"""brittle bench: the benchmarks of the source tree, each with options of its own."""

import sys
from importlib import import_module
from pathlib import Path

import typer

from brittle.common.errors import require

app = typer.Typer(rich_markup_mode=None, add_completion=False)
ROOT = Path(__file__).parents[2]


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})
def bench(
    context: typer.Context,
    name: str = typer.Argument(
        "", metavar="NAME", help="flow, kkt, attacks, certificates, ...; -h after it for its options."
    ),
) -> None:
    """Measure speed and tightness against a reference, as ratios within one run."""
    known = sorted(path.stem for path in (ROOT / "benchmarks").glob("[a-z]*.py"))
    require(bool(known), "the benchmarks come with the source tree of brittle, which is not here")
    if name in ("", "-h", "--help"):
        typer.echo(
            f"Usage: brittle bench NAME [OPTIONS]\n\n  NAME is one of {', '.join(known)}; NAME -h lists its options."
        )
        return
    require(name in known, f"there is no benchmark {name!r}; there are {', '.join(known)}")
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    arguments, sys.argv = sys.argv, [f"brittle bench {name}", *context.args]
    try:
        code = import_module(f"benchmarks.{name}").main()
    except SystemExit as stop:  # argparse ends this way after -h and after a mistake
        code = stop.code
    finally:
        sys.argv = arguments
    if code:
        raise typer.Exit(int(code))
