"""What `brittle kkt` does about the largest margin: the search, proofs in files, one sentence on a network's own."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from brittle.cli.console import deliver, emit, fields_table, say, watching
from brittle.cli.models import DataFile, NetworkFile, load_model_and_data
from brittle.common.interrupts import keeping

if TYPE_CHECKING:
    from brittle.data import Data
    from brittle.kkt import LargestMargin
    from brittle.networks import Network

AFFORDABLE = 1000  # examples for which a network's share of the largest margin is found unasked


@dataclass(frozen=True)
class LargestMarginRequest:
    """What --largest was asked for."""

    biases: bool
    gap: float
    seconds: float
    seed: int
    out: Path | None
    proof: Path | None
    resume: Path | None


def largest_margin(
    network_file: NetworkFile | None, data_file: DataFile, search: LargestMarginRequest, json_file: str | None
) -> None:
    """The largest margin from a network's patterns, from an earlier proof or from nothing."""
    from brittle.kkt import MarginProof, largest
    from brittle.networks import as_two_layer

    network, data = _given(network_file, data_file)
    start = None if network is None else as_two_layer(network, "the start of a search for the largest margin")
    earlier = None if search.resume is None else MarginProof.load(search.resume, data.y.numpy())
    if start is None and earlier is not None:
        start = earlier.network
    kept = _Kept(search.proof)
    with watching("largest margin") as watch, keeping(kept.words):
        found = largest(
            data,
            start=start,
            proof=earlier,
            biases=search.biases,
            gap=search.gap,
            seconds=search.seconds,
            seed=search.seed,
            watch=watch,
            keep=None if search.proof is None else kept,
        )
    content = {**found.to_json(), "seed": search.seed}
    deliver(lambda: _save(found, search, data, data_file.path), lambda: emit(content, json_file, fields_table(content)))


@dataclass
class _Kept:
    """What is proved so far, in the file of the proof, should the search be cut off."""

    path: Path | None
    times: int = 0

    def __call__(self, found: "LargestMargin") -> None:
        assert self.path is not None
        found.proof.save(self.path)
        self.times += 1

    def words(self) -> str:
        """What the line of an interruption says."""
        if self.times:
            return f"{self.path} holds what was proved so far, and --resume {self.path} goes on from there"
        return "" if self.path is not None else "with --proof FILE what is proved is kept every 20 seconds"


def _given(network_file: NetworkFile | None, data_file: DataFile) -> "tuple[Network | None, Data]":
    return (
        load_model_and_data(network_file, data_file)
        if network_file is not None
        else (None, data_file.load().labelled_for(1))
    )


def _save(found: "LargestMargin", search: LargestMarginRequest, data: "Data", data_path: Path) -> None:
    from brittle.networks import save_network

    if search.out is not None:
        save_network(found.network, search.out)
        say(f"wrote {search.out}")
    if search.proof is not None:
        found.proof.save(search.proof)
        beside = _data_beside(found.proof.digest, data, search.proof, data_path)
        say(", ".join(f"wrote {path}" for path in (search.proof, *beside)))


def _data_beside(theirs: bytes, data: "Data", proof: Path, given: Path) -> list[Path]:
    """What `margincheck` reads in the place of a file that it cannot read, or whose labels have other names."""
    from brittle.data import save_data
    from margincheck.proof import read_data
    from proofcheck.balls import Refused
    from proofcheck.proof import digest

    try:
        if digest(list(read_data(given))) == theirs:
            return []
    except (Refused, KeyError, ValueError, IndexError, TypeError):
        pass
    path = proof.with_suffix(".data.npz")
    save_data(data, path)
    return [path]


def share_of_largest(network: Any, data: "Data", biases: bool) -> dict[str, Any]:
    """What share of the largest margin a two-layer network has, where that takes a moment only."""
    from brittle.kkt import gap
    from brittle.networks import as_two_layer

    if network.depth != 2 or network.classes != 1 or len(data) > AFFORDABLE:
        return {}
    found = gap(as_two_layer(network, "a margin"), data, biases=biases)
    return {"upper": found.upper, "share_of_largest_margin": found.share, "sentence": found.sentence}
