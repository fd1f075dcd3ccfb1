"""Problems with their true radii, built from recipes, kept in folders and read again."""

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from brittle.certificates import Exact
from brittle.common.errors import InputError, require
from brittle.common.files import write_json
from brittle.common.progress import Watch, silent
from brittle.common.result import Result
from brittle.data import Data, load_data, save_data
from brittle.networks import Layered, TwoLayer, as_layered, load_network, save_network
from brittle.proving import Proof, prove, write_beside
from brittle.truth.problems import RECIPES, ProblemRecipe, digest, load_known_digests

RECORD = "problem.json"
PROOF = "proof.npz"
SECONDS = 120.0  # for one example; what is not closed by then is left out, and counted
PROOF_SECONDS = 300.0  # for the proof of one example; what is not proved by then is said
ROOM = 0.9  # of the gap, for the certificate: proofs of a little less than it found are shorter


@dataclass(frozen=True, eq=False)
class TruthProblem(Result):
    """A network, rightly classified examples, and their radii as nearly as they are proved.

    name, words: what it is; lower, upper (n,): the radius lies between them; gap: what they differ by at most,
    relatively; open: examples of the recipe that did not close and were left out; digest: of network and examples;
    frozen: whether the digest is the one that is known; seconds: what the radii and their proofs took; proved (n,): the
    radii that the file beside it proves, 0 where it does not; proof: what goes into that file, None where it is there;
    checksum: its SHA-256.
    """

    name: str
    words: str
    network: Layered
    data: Data
    lower: Tensor
    upper: Tensor
    gap: float
    open: int
    digest: str
    frozen: bool
    seconds: float
    proved: Tensor
    proof: Proof | None = None
    checksum: str = ""

    @property
    def proved_gaps(self) -> Tensor:
        """upper/proved - 1 of every instance, infinite where nothing is proved."""
        return self.upper / self.proved - 1

    @property
    def proved_to_gap(self) -> int:
        """How many instances are proved to the gap."""
        return int((self.proved_gaps <= self.gap).sum())

    def content(self) -> dict[str, Any]:
        """With the number of instances, and without the objects."""
        fields = {name: value for name, value in super().content().items() if name not in ("network", "data", "proof")}
        return {**fields, "instances": len(self.data), "proved_to_gap": self.proved_to_gap}


def make_problem(recipe: ProblemRecipe, watch: Watch = silent) -> TruthProblem:
    """Draw it and prove its radii."""
    network, data = recipe.build()
    began = time.perf_counter()
    rng = torch.Generator().manual_seed(0)
    found = Exact(gap=ROOM * recipe.gap, seconds=SECONDS).bound(network, data, rng=rng, watch=watch)
    closed = torch.nonzero(found.exact & found.upper.isfinite())[:, 0]
    kept = data.take(closed)
    name, upper = digest(network, kept), found.upper[closed]
    wanted = upper / (1 + recipe.gap) * (1 + 1e-12)  # under the certified radii, and within the gap after rounding
    proof = prove(network, kept, wanted, found.flips[closed], seconds=PROOF_SECONDS, watch=watch)
    return TruthProblem(
        name=recipe.name,
        words=recipe.words,
        network=network,
        data=kept,
        lower=found.lower[closed],
        upper=upper,
        gap=recipe.gap,
        open=len(data) - len(closed),
        digest=name,
        frozen=load_known_digests().get(recipe.name) == name,
        seconds=time.perf_counter() - began,
        proved=torch.zeros(len(kept), dtype=torch.float64).index_put(
            (torch.tensor(proof.rows, dtype=torch.long),), torch.tensor(proof.radii, dtype=torch.float64)
        ),
        proof=proof,
    )


def chosen(names: Sequence[str]) -> tuple[ProblemRecipe, ...]:
    """The recipes of these names, or all."""
    known = {recipe.name: recipe for recipe in RECIPES}
    for name in names:
        require(name in known, f"the problem {name!r} is unknown; there are {', '.join(known)}")
    return tuple(known[name] for name in names) if names else RECIPES


def save_problem(problem: TruthProblem, folder: Path) -> None:
    """folder/NAME with the network, data.npz, the proof and, last, problem.json."""
    place = folder / problem.name
    place.mkdir(parents=True, exist_ok=True)
    save_network(problem.network, place / network_file(problem.network))
    save_data(problem.data, place / "data.npz")
    if problem.proof is not None:
        problem.proof.save(place / PROOF)
        write_beside(problem.proof, place / PROOF, place / network_file(problem.network), place / "data.npz")
        problem = replace(problem, checksum=_checksum(place / PROOF))
    write_json(place / RECORD, problem.to_json())


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def proof_files(folder: Path, name: str) -> tuple[Path, Path, Path]:
    """The proof, and the network and the examples as `proofcheck` reads them."""
    place = folder / name
    beside = [(place / PROOF).with_suffix(f".{each}.npz") for each in ("network", "data")]
    own = [place / "network.npz", place / "data.npz"]
    network, data = (one if one.is_file() else other for one, other in zip(beside, own, strict=True))
    return place / PROOF, network, data


def network_file(network: Layered) -> str:
    return "network.npz" if isinstance(network, TwoLayer) else "network.pt"


def is_made(folder: Path, name: str) -> bool:
    return (folder / name / RECORD).is_file()


def load_problem(folder: Path, name: str) -> TruthProblem:
    """What `save_problem` wrote; files that were changed since are refused."""
    place = folder / name
    require(is_made(folder, name), f"{place} holds no problem; `brittle truth make {folder} --only {name}` makes it")
    record = _record(place / RECORD)
    file = next((each for each in ("network.npz", "network.pt") if (place / each).is_file()), "network.npz")
    network, data = as_layered(load_network(place / file), str(place / file)), load_data(place / "data.npz")
    same = record["digest"] == digest(network, data)
    require(same, f"{place}: network and examples are not those whose radii {RECORD} holds; delete the folder")
    require(record["checksum"] == _checksum(place / PROOF), f"{place / PROOF} is not the proof that {RECORD} is about")
    lower, upper, proved = (torch.tensor(record[each], dtype=torch.float64) for each in ("lower", "upper", "proved"))
    fits = lower.shape == upper.shape == (len(data),) and bool((lower > 0).all() and (lower <= upper).all())
    require(fits, f"{place / RECORD}: lower and upper must be {len(data)} positive numbers each, in order")
    fits = proved.shape == (len(data),) and bool((proved >= 0).all() and (proved <= upper).all())
    require(fits, f"{place / RECORD}: proved must be {len(data)} numbers, none above its upper")
    rest = {key: record[key] for key in ("words", "gap", "open", "digest", "frozen", "seconds", "checksum")}
    return TruthProblem(name=name, network=network, data=data, lower=lower, upper=upper, proved=proved, **rest)


def _record(path: Path) -> dict[str, Any]:
    wanted = {"words", "gap", "open", "digest", "frozen", "seconds", "lower", "upper", "proved", "checksum"}
    try:
        record: dict[str, Any] = json.loads(path.read_text())
        missing = wanted - record.keys()
    except (ValueError, AttributeError) as error:
        raise InputError(f"{path} is no record of a problem: {error}") from None
    require(not missing, f"{path} is no record of a problem: {', '.join(sorted(missing))} is missing")
    return record


def problems_in(folder: Path, only: Sequence[str] = ()) -> Iterator[TruthProblem]:
    """All of these names that are made, in the order of the recipes."""
    names = [recipe.name for recipe in chosen(only) if is_made(folder, recipe.name)]
    require(bool(names), f"{folder} holds no problem of the truth set; `brittle truth make {folder}` makes them")
    return (load_problem(folder, name) for name in names)
