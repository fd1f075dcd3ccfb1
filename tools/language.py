"""Measure how the package reads: sizes of files, and the language of names and docstrings.

    python -m tools.language [--list] [--tree brittle]

The table has the rows of the review that the project's naming rules answer; `--list` prints the offenders of each row.
"""

import argparse
import ast
import re
import statistics
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# First words of function names that are verbs in the imperative (also names that are themselves a verb).
VERBS = _words(
    """
    accept add align allocate annotate append apply approximate argue as ask assemble assert assess assign
    attach attack audit balance begin bind bisect bound box branch build cache call can cap cast center certify
    chain change check choose clamp classify clear clip close cluster coerce collect combine compare compile
    complete compose compress compute concat concatenate configure connect contains convert convolve copy count
    cover crop cut decide decode deduplicate define deflate delete derive describe detach detect differentiate
    discard divide do download draw drop dump embed emit enable encode ends enforce ensure enter enumerate
    escape estimate evaluate exclude exit expand explain explore export express extend extract factor fail fetch
    fill filter find finish fit fix flatten flip flush fold follow forecast format forward freeze gather
    generate get give grow guard halve handle harden has hash hide hold identify ignore import improve include
    increase indent infer inflate init initialise initialize inline insert inspect install integrate interpolate
    intersect invert is iterate join judge jump keep kill label launch lay leave limit link list load locate
    lock log look lower make map mark mask match maximise maximize may measure merge minimise minimize mirror
    mix move multiply name narrow needs normalise normalize observe offer open optimise optimize order pack pad
    parse pass patch perturb pick place plan plot pop predict prepare print probe process produce project
    promote propagate protect prove provide prune pull push put quantise quote raise randomise rank read rebuild
    reconstruct record recover reduce refine refit refuse register reject relabel release reload relu remember
    remove rename render reorder repair repeat replace report reproduce request require rescale reset reshape
    resolve restart restore restrict resume return reverse rewrite rotate round run sample satisfies save scale
    scan scatter schedule score search seed seek select send separate serialise serve set share shift shorten
    should show shrink shuffle sign simplify simulate skip slice smooth snap solve sort split stack start starts
    step stop store stream strip subtract suggest sum summarise summarize supports suppress supports swap sweep
    symmetrise take tell terminate test throw tighten time trace track train transform translate transpose
    traverse trim truncate try tune turn unflatten unfold unpack unregister unroll unwrap update upload use uses
    validate vary verify view visit wait walk warm warn watch weigh widen wrap write yield zero zip
    """
)

# Words that end like a participle and are none, or are nouns of the field.
NO_PARTICIPLES = _words(
    """
    bed breed embed exceed feed greed hundred indeed kindred need proceed red reed seed shed shred speed succeed
    unified weed even fashion garden hidden hyphen kitten open oven seven sudden ten then token women gen screen
    green listen happen when mixed fixed left set put cut split read hit let cast
    """
)
IRREGULAR = _words(
    """
    asked begun bent borne born bound bought brought built caught come done drawn fallen fed felt fought found
    given gone grown had heard held hidden kept known laid lain led lent lost made meant met mown paid said sawn
    seen sent shewn shorn shot shown slain sold sought spent spun stood struck stuck sung sunk sworn swum swung
    taken taught thought thrown told torn understood undone unknown won worn woven wound written
    """
)

# A first line that begins with one of these needs the name, or the line before, to be understood.
DEPENDENT = re.compile(
    r"(Of|The same|Same|With|Without|None|As|And|But|By|For|From|In|Into|On|To|At|Also|So|Such|These|Those|Them|Its?"
    r"|They|Their|That|Which|Where|When|Who|Whose|What|How|If|Or|Not|Nothing|Nobody|Likewise|Here|There|Then|Than|Until"
    r"|Unless|Because|Only|Both|Either|Neither|Alone|Again|Ditto|Every one|Each one|One of|Among|Between|Beside|Behind"
    r"|Through|Under|Over|After|Before|Per|Out|Up|Down|Away|Once|While|Whatever|Whoever|Wherever)\b(?!-)"
)


class Definition(NamedTuple):
    """A class or function of the tree, where it stands and whether its name is public."""

    path: Path
    node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    public: bool

    def __str__(self) -> str:
        return f"{self.path}:{self.node.lineno}: {self.node.name}"


def read_definitions(path: Path) -> Iterator[Definition]:
    """Yield every class, function and method of a file; those inside a function are not counted."""

    def walk(node: ast.AST, public: bool) -> Iterator[Definition]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                visible = public and not child.name.startswith("_")
                yield Definition(path, child, visible)
                if isinstance(child, ast.ClassDef):
                    yield from walk(child, visible)
            elif not isinstance(child, ast.expr):
                yield from walk(child, public)

    yield from walk(ast.parse(path.read_text()), not path.stem.startswith("_") or path.stem == "__init__")


def is_participle(name: str) -> bool:
    """Tell whether a function's name begins or ends with a participle, as in `written` or `told_by`."""
    words = [word for word in name.strip("_").lower().split("_") if word]
    return bool(words) and words[0] not in VERBS and any(_is_participle_word(word) for word in (words[0], words[-1]))


def begins_with_verb(name: str) -> bool:
    """Tell whether the first word of a function's name is a verb in the imperative."""
    return name.strip("_").lower().split("_")[0] in VERBS


def stands_alone(docstring: str) -> bool:
    """Tell whether the first line of a docstring can be understood without the name above it."""
    first = docstring.strip().split("\n")[0]
    return bool(first) and not DEPENDENT.match(first) and (first[0].isupper() or not first[0].isalpha())


def _is_participle_word(word: str) -> bool:
    if word in NO_PARTICIPLES:
        return False
    return word in IRREGULAR or (len(word) > 4 and word.endswith("ed"))


def _is_property(node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", [])
    return any(
        "property" in ast.unparse(decorator) or ast.unparse(decorator).endswith(".setter") for decorator in decorators
    )


def measure(tree: Path) -> dict[str, tuple[str, list[str]]]:
    """Measure a source tree; each row of the table with its value and the offenders behind it."""
    paths = sorted(tree.rglob("*.py"))
    lines = {path: path.read_text().count("\n") for path in paths}
    definitions = [definition for path in paths for definition in read_definitions(path)]
    classes = [found for found in definitions if isinstance(found.node, ast.ClassDef)]
    functions = [found for found in definitions if not isinstance(found.node, ast.ClassDef)]
    public = [found for found in functions if found.public and not _is_property(found.node)]
    names = Counter(found.node.name for found in classes)
    repeated = [found for found in classes if names[found.node.name] > 1]
    participles = [found for found in public if is_participle(found.node.name)]
    verbs = [found for found in public if begins_with_verb(found.node.name)]
    documented = [(found, ast.get_docstring(found.node)) for found in definitions]
    dependent = [found for found, text in documented if text is not None and not stands_alone(text)]
    lengths = [(found.node.end_lineno or 0) - found.node.lineno + 1 for found in functions]
    short = [f"{path}: {count}" for path, count in lines.items() if count < 40]
    return {
        "files": (str(len(paths)), []),
        "lines": (f"{sum(lines.values()):,}", []),
        "median lines per file": (f"{statistics.median(lines.values()):.0f}", short),
        "mean lines per function": (f"{statistics.mean(lengths):.1f}", []),
        "classes that share their name": (
            _share(repeated, classes),
            sorted(f"{found.node.name}  {found}" for found in repeated),
        ),
        "public functions named by a participle": (_share(participles, public), [str(found) for found in participles]),
        "public functions that begin with a verb": (
            _share(verbs, public),
            [str(found) for found in public if not begins_with_verb(found.node.name)],
        ),
        "docstrings that do not stand alone": (str(len(dependent)), [str(found) for found in dependent]),
        "the same in the public surface": (
            str(sum(found.public for found in dependent)),
            [str(found) for found in dependent if found.public],
        ),
    }


def _share(part: list[Definition], whole: list[Definition]) -> str:
    return f"{len(part) / max(len(whole), 1):.1%} ({len(part)} of {len(whole)})"


def main() -> None:
    """Print the table, and with `--list` what stands behind each row."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tree", type=Path, default=Path("brittle"), help="Folder of the Python sources to measure.")
    parser.add_argument("--list", action="store_true", help="Print the names behind each row.")
    options = parser.parse_args()
    for row, (value, offenders) in measure(options.tree).items():
        print(f"{row:45} {value}")
        if options.list:
            for offender in offenders:
                print(f"    {offender}")


if __name__ == "__main__":
    main()
