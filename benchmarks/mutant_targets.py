"""What is mutated: what states, measures and judges. And which mutants survive for a good reason."""

from dataclasses import dataclass
from pathlib import Path

HOME = Path(__file__).parent.parent
# what draws instances, trains, and solves the instance of a theorem: whatever it finds is judged by other code
DRAWS = frozenset({"default", "instance", "sizes", "draw", "drawn", "train", "_with_room", "ordinary"})


@dataclass(frozen=True)
class Group:
    """Files (patterns), and test files (patterns) that must notice a change of them."""

    files: tuple[str, ...]
    tests: tuple[str, ...]
    left_out: frozenset[str] = frozenset()

    @property
    def paths(self) -> list[str]:
        """The files that there are."""
        return _matching(self.files)

    @property
    def test_paths(self) -> list[str]:
        """The test files that there are."""
        return _matching(self.tests)


def _matching(patterns: tuple[str, ...]) -> list[str]:
    found = {str(path.relative_to(HOME)) for pattern in patterns for path in HOME.glob(pattern)}
    assert all(any(HOME.glob(pattern)) for pattern in patterns), patterns
    return sorted(name for name in found if not name.endswith("/__init__.py"))


def _named(folder: str, names: str, prefix: str = "") -> tuple[str, ...]:
    """Files of a folder, by names with spaces between."""
    return tuple(f"{folder}/{prefix}{name}.py" for name in names.split())


def _paper(name: str, tests: str, without: tuple[str, ...] = ()) -> Group:
    found = tuple(sorted(path.stem for path in (HOME / "brittle/theorems" / name).glob("*.py")))
    kept = " ".join(stem for stem in found if stem not in without)
    return Group(_named(f"brittle/theorems/{name}", kept), _named("tests/theorems", tests, "test_"), DRAWS)


GROUPS = {
    "kkt_proof": _paper("kkt_proof", "constants kkt_proof approximate wrong_objects measures"),
    "vardi2022": _paper(
        "vardi2022", "constants vardi2022* kkt_proof convergence wrong_objects measures", ("instances",)
    ),
    "frei2023": _paper(
        "frei2023", "constants frei2023* kkt_proof wrong_objects approximate measures", ("worst", "instances")
    ),
    "melamed2023": _paper("melamed2023", "melamed2023* measures"),
    "wang2022": _paper("wang2022", "wang2022* measures", ("worst", "farthest")),
    "theorems": Group(
        _named("brittle/theorems", "base check comparison judgement trials simulate helpers instance"),
        _named("tests/theorems", "check simulate sweep wrong_objects constants", "test_"),
        DRAWS,
    ),
    "attacks": Group(
        _named("brittle/attacks", "base flips ray pieces universal"),
        _named("tests/attacks", "attacks flips intervals universal pgd", "test_"),
    ),
    "certificates": Group(
        _named("brittle/certificates", "base example dual_bound relaxation rounding")
        + _named("brittle/certificates", "margins lipschitz settled_signs"),
        _named("tests/certificates", "certificates rounding_terms soundness any_scale far_scales", "test_")
        + _named("tests/certificates", "order state settled_signs judgement", "test_"),
    ),
    "deep certificates": Group(
        _named("brittle/certificates", "deep_dual/judge deep_dual/definite deep_exact/judge deep_exact/leaf")
        + _named("brittle/certificates", "deep_exact/ball"),
        _named("tests/certificates", "layered_terms deep_dual definite rounding_terms leaf deep_exact", "test_"),
    ),
    "KKT": Group(
        _named("brittle/kkt", "residual deep_kkt examples any_width/checker any_width/gap"),
        _named("tests/kkt", "kkt deep_kkt margin_checker states", "test_"),
    ),
    "proof checkers": Group(
        ("proofcheck/[!_]*.py", "margincheck/[!_]*.py"),
        _named("tests/proofs", "balls lagrangian forged margincheck refused_arrays frame", "test_"),
    ),
    "audit": Group(
        _named(
            "brittle/auditing", "costs pieces curve change geometry vulnerability causes found cluster_labels remedy"
        ),
        _named("tests/auditing", "costs speed sample curve change limit ties findings verdict", "test_")
        + _named("tests/auditing", "share cluster_labels", "test_"),
    ),
    "geometry": Group(("brittle/geometry/*.py",), ("tests/geometry/test_*.py",)),
    "untrusted files": Group(
        _named("brittle/common", "limits torch_files"),
        _named("tests", "common/test_limits common/test_files common/test_archives networks/test_hostile_files"),
    ),
}

# Mutants that compute the same, or differ only in what may be any: not counted. A regular expression that is searched
# for in `Mutant.key`, which is file | function | line of code | change, and the reason.
EQUIVALENT: dict[str, str] = {
    r"kkt\.sums\(.*\| 1 -> 2": "only the sign of the number counts",
    r"\| (AT_ONCE|DRAWS_AT_ONCE|MANY|FEW) \|": "how much is computed at once",
    r"geometry/vectors.*\| unit_rows \|.*1\.0 -> 2\.0": "a vector of length 0 stays 0 whatever it is divided by",
    r"frei2023/averages.*\| make_averaged_instance \|.*-> .* - nois": "noise has a symmetric law",
    r"auditing/costs.*\| rows_at_once \|.*cost\.operations.*\| 1\.0 -> 2\.0": "so little work has the most rows",
    r"frei2023/other_clusters.*\| witness \|.*outputs <= 0 -> outputs > 0": "the worse of both labels is taken",
    r"auditing/costs.*\| largest \| middle = .*\| 1 -> 2": "every place between the ends will do",
    r"common/limits.*\| read \| part = .*\| 0 -> 1": "where 0 bytes are asked for nothing is read",
    r"auditing/cluster_labels.*\| _found \| groups.*X - middle -> X": "groups do not depend on the origin",
    r"common/torch_files.*\| _bytes \|.*bytearray\(1\).*\| 1 -> 2": "no byte of it is read",
    r"max\(1, .*//.*\| (1 -> 2|max\(1)": "how much is computed at once",
    r"proofcheck/balls.*\| definite \| scale = .*1e\+200 -> ": "any powers of 2 may be the scale",
    r"proofcheck/proof.*\| _run \| code, place = next.*\| (1 -> 2|0 -> 1)$": "of a line that is none nothing is read",
    r"deep_exact/judge.*\| _definite \|.*max\(initial=0\) > FARTHEST.*\| 0 -> 1$": "FARTHEST is larger than both",
    r"deep_exact/judge.*\| _value \|.*\| 2 \* k \+ k_low \+ k_high \+ k_e ->": "k holds the slip already, twice",
    r"certificates/example.*\| lengths \| scaled = .*\| (1.0 -> 2.0|0.0 -> 1)$": "what is not far is not read",
    r"certificates/example.*\| lengths \|.*1e\+150 -> ": "below, both forms compute the same",
    r"certificates/dual_bound.*\| proven_value \|.*\| abs\(form\) -> form": "the ceiling of what is never negative",
    r"certificates/rounding.*\| shift_exponent \| if by.size.*-1000 -> 1000": "the other branch computes the same",
    r"deep_exact/judge.*\| _definite \| Q = .*\| 0.0 -> 1$": "t is part of the constant alone, which is left out",
    r"kkt/residual.*\| arrow \|.*\| outer \* signs -> outer / signs": "signs are 1 and -1",
    r"kkt/residual.*\| _explain \| return Polish.*\| 0.5 -> 1.0": "a scale of the noise at which the polish stops",
    r"kkt/residual.*\| residual \| complementarity=.*\| 0.0 -> 1$": "Σλ is positive, because every <θ, g_i> = 2q_i is",
    r"kkt/residual.*\| _explain \| typical = ": "where the solver sets out",
    r"attacks/base.*\| limits \|.*== 0, 1.0.*\| 1.0 -> 2.0": "the quotient is not read where the direction is 0",
}
# Mutants that no test notices, counted as survivors, and why each may stay; searched for in the same way.
KNOWN: dict[str, str] = {
    r"proofcheck/lagrangian.*\| after \|.*step.tau": "both forms are valid proofs, one of them is quicker",
    r"vardi2022/convergence.*\| (walk|_decades) \|.*1e-09": "where a moment falls is rounded: one moment more or less",
    r"auditing/cluster_labels.*\| _found \|.*svd.*X - middle -> X": "the mean is one of 30 directions",
}
