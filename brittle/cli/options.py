"""The options that mean the same in every command."""

from pathlib import Path
from typing import Annotated

import torch
import typer

JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON; - for standard output.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same numbers.")]
DataFile = Annotated[Path, typer.Option("--data", metavar="FILE", help="Data: .npz, .csv or .pt.")]
NetworkFile = Annotated[Path, typer.Argument(metavar="NETWORK", help="Network: .npz, .pt or .safetensors.")]
OutFile = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Where to write the result.")]


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
