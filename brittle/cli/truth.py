"""brittle truth: instances with proved radii, and how attacks and verifiers fare on them."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from brittle.cli.console import emit, rows_table, say, watching
from brittle.cli.options import JsonFile, Seed, folder_to_write
from brittle.cli.parts import Family, PartsCommand, get_part_name, with_part
from brittle.cli.sections import WholeSentences
from brittle.common.errors import InputError, require

if TYPE_CHECKING:
    from brittle.attacks import Attack, AttackResult
    from brittle.certificates import Certificate
    from brittle.truth import AttackScore, BoundScore, ProblemRecipe, TruthProblem

app = typer.Typer(
    cls=WholeSentences,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    help="Instances whose exact radii are known.",
)

ATTACKS = Family("attack", "attacks", "Attack")
METHODS = Family("method", "certificates", "Certificate")
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Where the problems are.")]
MadeFolder = Annotated[
    Path, typer.Argument(metavar="DIR", callback=folder_to_write, is_eager=True, help="Where the problems go.")
]
Only = Annotated[list[str], typer.Option("--only", metavar="NAME", help="This problem; may be repeated.")]


@app.command("make")
def make_command(
    folder: MadeFolder,
    only: Only = [],  # noqa: B006
    onnx: Annotated[bool, typer.Option("--onnx", help="The networks as .onnx too.")] = False,
    vnnlib: Annotated[bool, typer.Option("--vnnlib", help="Two VNN-LIB queries for every instance too.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Build the problems from their seeds and prove their radii; those that are there already stay."""
    from brittle.truth import chosen, load_problem, write_queries
    from brittle.truth.made import is_made

    problems = []
    for recipe in chosen(only):
        if not is_made(folder, recipe.name) and not _build(recipe, folder):
            continue
        problem = load_problem(folder, recipe.name)
        problems.append(problem)
        if onnx or vnnlib:
            _save_onnx(problem, folder)
        if vnnlib:
            say(f"{problem.name}: wrote {write_queries(problem, folder)} queries")
    _emit_problems(problems, folder, json_file)


def _build(recipe: "ProblemRecipe", folder: Path) -> bool:
    """Whether it could be built: real data may be absent."""
    from brittle.truth import make_problem, save_problem

    try:
        with watching(recipe.name) as watch:
            problem = make_problem(recipe, watch)
    except InputError as error:
        if not recipe.needs:
            raise
        say(f"{recipe.name} is left out: {error}")
        return False
    save_problem(problem, folder)
    left = len(problem.data) - problem.proved_to_gap
    if left:
        worst = float(problem.proved_gaps.max())
        say(f"{recipe.name}: {left} radii are not proved to the gap; the worst is proved to {worst:.2g}")
    if problem.open:
        say(f"{recipe.name}: {problem.open} examples did not close and are left out")
    if not problem.frozen:
        say(f"{recipe.name}: rounding here gave other numbers than the known digest's; its radii are proved as well")
    return True


def _save_onnx(problem: "TruthProblem", folder: Path) -> None:
    from brittle.networks import save_network

    save_network(problem.network, folder / problem.name / "network.onnx")


@app.command("list")
def list_command(
    folder: Annotated[Path | None, typer.Argument(metavar="[DIR]", help="Say what is there.")] = None,
    json_file: JsonFile = None,
) -> None:
    """Say which problems there are, or which of them are in a folder."""
    if folder is not None:
        from brittle.truth import problems_in

        _emit_problems(list(problems_in(folder)), folder, json_file)
        return
    from brittle.truth import RECIPES

    rows = [[each.name, each.words, each.examples, f"{each.gap:g}", each.needs] for each in RECIPES]
    content = {
        "problems": [dict(zip(("name", "words", "instances", "gap", "needs"), row, strict=True)) for row in rows]
    }
    emit(content, json_file, rows_table(["problem", "what it is", "instances", "gap", "needs"], rows))


def _emit_problems(problems: "list[TruthProblem]", folder: Path, json_file: str | None) -> None:
    total = sum(len(each.data) for each in problems)
    proved = sum(each.proved_to_gap for each in problems)
    rows = [
        [each.name, each.words, len(each.data), f"{each.gap:g}", each.proved_to_gap, each.open, each.frozen]
        for each in problems
    ]
    found = [each.to_json() for each in problems]
    content = {"folder": str(folder), "instances": total, "proved_to_gap": proved, "problems": found}
    heads = ["problem", "what it is", "instances", "gap", "proved", "open", "as known"]
    emit(content, json_file, rows_table(heads, rows, f"{total} instances, {proved} proved to their gap"))


@app.command("check")
def check_command(
    folder: Folder,
    only: Only = [],  # noqa: B006
    json_file: JsonFile = None,
) -> None:
    """Prove the radii again from their files, by proofcheck alone. Exit 1 where one is not proved."""
    from brittle.truth import check_proofs, problems_in

    counts = {}
    with watching("proofs") as watch:
        for problem in _told(problems_in(folder, only), watch):
            counts[problem.name] = check_proofs(problem, folder)
    rows = [[name, *each] for name, each in counts.items()]
    total, again = (sum(each) for each in zip(*counts.values(), strict=True))
    found = [dict(zip(("name", "proved", "again"), row, strict=True)) for row in rows]
    content = {"folder": str(folder), "proved": total, "again": again, "problems": found}
    emit(content, json_file, rows_table(["problem", "proved", "again"], rows, f"{again} of {total} proved again"))
    if again < total:
        raise typer.Exit(1)


@app.command("score", cls=PartsCommand)
@with_part(ATTACKS)
def score_command(
    folder: Folder,
    attack: "Attack[AttackResult] | None",
    method: Annotated[
        str | None,
        typer.Option("--method", metavar="WORD", help=f"{METHODS.words}, or MODULE:CLASS, with its defaults."),
    ] = None,
    bounds_file: Annotated[
        Path | None,
        typer.Option("--bounds", metavar="FILE", help="Lower bounds: .csv (problem, example, lower) or .json."),
    ] = None,
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    """Rank an attack by its true excess, or lower bounds by soundness and tightness. Exit 1 where one is unsound."""
    asked = [each for each in (attack, method, bounds_file) if each is not None]
    require(len(asked) == 1, "name one of --attack, --method and --bounds: what is to be scored")
    from brittle.truth import (
        attack_scores,
        bound_scores,
        measure_attack,
        measure_certificate,
        problems_in,
        read_stated_bounds,
    )

    problems = list(problems_in(folder))
    if attack is not None:
        with watching(get_part_name(attack)) as watch:
            rows = attack_scores([measure_attack(attack, each, seed) for each in _told(problems, watch)])
        _emit_attack(get_part_name(attack), rows, json_file)
        return
    if method is not None:
        certificate: Certificate = METHODS.chosen(method, {})
        with watching(method) as watch:
            measured = [measure_certificate(certificate, each, seed) for each in _told(problems, watch)]
    else:
        assert bounds_file is not None
        measured = read_stated_bounds(bounds_file, problems)
    scores = bound_scores(measured)
    _emit_bounds(method or str(bounds_file), scores, json_file)
    if scores[-1].unsound:
        say(f"{scores[-1].unsound} bounds lie above a flip that exists")
        raise typer.Exit(1)


def _told(problems: "Iterable[TruthProblem]", watch: Any) -> Any:
    from brittle.common.progress import Progress

    problems = list(problems)
    for place, problem in enumerate(problems):
        watch(Progress(place / len(problems), problem.name))
        yield problem


def _emit_attack(name: str, scores: "list[AttackScore]", json_file: str | None) -> None:
    heads = ["problem", "instances", "flipped", "mean excess", "median", "worst", "within 1 %", "seconds"]
    rows = [
        [each.problem, each.instances, f"{each.flipped:.1%}", _percent(each.mean_excess), _percent(each.median_excess),
         _percent(each.worst_excess), f"{each.within:.1%}", f"{each.seconds:.1f}"]
        for each in scores
    ]  # fmt: skip
    content = {"attack": name, "scores": [each.to_json() for each in scores]}
    emit(content, json_file, rows_table(heads, rows, name))
    impossible = scores[-1].impossible
    if impossible:
        say(f"{impossible} flips are shorter than a radius that was proved: please report this")
        raise typer.Exit(1)


def _emit_bounds(name: str, scores: "list[BoundScore]", json_file: str | None) -> None:
    heads = ["problem", "instances", "given", "unsound", "mean bound/radius", "worst", "within 1 %", "seconds"]
    rows = [
        [each.problem, each.instances, each.given, each.unsound, f"{each.mean_share:.4f}", f"{each.worst_share:.4f}",
         f"{each.within:.1%}", f"{each.seconds:.1f}"]
        for each in scores
    ]  # fmt: skip
    content = {"bounds": name, "scores": [each.to_json() for each in scores]}
    emit(content, json_file, rows_table(heads, rows, name))


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"
