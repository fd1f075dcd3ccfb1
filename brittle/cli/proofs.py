"""--proof: certified radii as a file that `python -m proofcheck` proves again."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from brittle.cli.console import say, watching
from brittle.cli.options import RESULTS, file_to_write

if TYPE_CHECKING:
    from torch import Tensor

    from brittle.data import Data
    from brittle.experiments import Executor
    from brittle.networks import Network
    from brittle.proving import Proof

ProofFile = Annotated[
    Path | None,
    typer.Option(
        "--proof",
        metavar="FILE",
        callback=file_to_write(".npz"),
        help="Write what proves the radii, for python -m proofcheck.",
        rich_help_panel=RESULTS,
    ),
]


class ProofRequest(NamedTuple):
    """Where the proof is to be written, and the files that it is about; None: there are none.

    The `crew` looks for it in chunks, which it keeps; None: all is done here and at once.
    """

    path: Path | None
    network: Path | None = None
    data: Path | None = None
    crew: "Executor | None" = None

    def proof(
        self,
        network: "Network",
        data: "Data",
        lower: "Tensor",
        flips: "Tensor",
        box: tuple[float, float] | None = None,
        seconds: float = 60.0,
    ) -> "Proof | None":
        """Of the radii, with a word on how many of them it holds; None where nobody asked."""
        if self.path is None:
            return None
        from brittle.proving import prove

        with watching("proof") as watch:
            if self.crew is None:
                found = prove(network, data, lower, flips, box=box, seconds=seconds, watch=watch)
            else:
                from brittle.experiments.pieces import prove_in_chunks

                found = prove_in_chunks(network, data, lower, flips, self.crew, box=box, seconds=seconds, watch=watch)
        say(str(found))
        return found

    def write(self, proof: "Proof | None") -> None:
        """The proof, and beside it the network and the data where the checker cannot read their own files."""
        if self.path is None or proof is None:
            return
        if not proof.rows:
            say(f"{self.path} is not written: there is no radius that the proof would hold")
            return
        from brittle.proving import write_beside

        proof.save(self.path)
        beside = write_beside(proof, self.path, self.network, self.data)
        say(", ".join(f"wrote {path}" for path in (self.path, *beside)))
