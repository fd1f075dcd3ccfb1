"""The audit in sentences that need no second reading; every one of them from the numbers of the audit itself."""

import math
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from brittle.auditing import Audit
from brittle.auditing.change import Change
from brittle.auditing.found import Mechanism
from brittle.auditing.treatment import RemedyResult, best
from brittle.auditing.verdict import describe_unaffordable, little_help, little_is_left, not_alone
from brittle.common.errors import InputError
from brittle.report.svg import number, share, times


@dataclass(frozen=True)
class Origin:
    """The `command` that made the audit and its `seed`; the files of the `network` and of the `data`.

    Examples:
        >>> import brittle as bt
        >>> bt.report.Origin(network="my net.npz").harden("trades")
        "brittle harden 'my net.npz' --data data.npz --remedy trades --out hard.npz"
    """

    command: str = ""
    seed: int | None = None
    network: str = "net.npz"
    data: str = "data.npz"

    def harden(self, remedy: str) -> str:
        """The command that applies a remedy."""
        return f"brittle harden {quote(self.network)} --data {quote(self.data)} --remedy {remedy} --out hard.npz"

    def python(self, remedy: str) -> str:
        """The lines that apply it in Python, and load it back."""
        return (
            "import brittle\n"
            f'found = brittle.audit(model, X, y, remedies="{remedy}")\n'
            'brittle.networks.save_network(found.remedies[0].network, "hard.npz")\n'
            'hardened = brittle.networks.load_network("hard.npz")'
        )


TINY = 1e-4  # of an example's size: less is said by its length, not by powers of ten of a per cent
SURE = 0.005  # of what the data allow: an open part that is smaller is not worth a word


@dataclass(frozen=True)
class ReportWords:
    """Sentences about one `audit`."""

    audit: Audit

    @property
    def kind(self) -> str:
        return "held-out" if self.audit.vulnerability.held_out else "training"

    @property
    def headline(self) -> str:
        """What a manager reads."""
        audit, free = self.audit, self.audit.vulnerability.free
        if not math.isfinite(free.median):
            return "No change was found that fools this network on half of the examples."
        if free.median == 0:
            return f"This network is wrong on {self._errors}: it has to be right before it can be robust."
        limit = audit.limit
        if limit is None or not math.isfinite(limit.share):
            return f"Changing a {self.kind} example by {self._size} fools this network half of the time."
        rest = "; little is left to gain" if little_is_left(limit) and self.best is None else ""
        given = "all" if limit.share >= 1 else share(limit.share, 0)
        return (
            f"This network gives {given} of the protection that its data allow: changing a {self.kind} "
            f"example by {self._size} fools it half of the time{rest}."
        )

    @property
    def _size(self) -> str:
        """The median radius, as a part of the examples where they have a size."""
        weak = self.audit.vulnerability
        part = weak.free.median / weak.norm_of_examples if weak.norm_of_examples > 0 else math.inf
        worth_a_share = TINY <= part < 1
        return f"{share(part, 0 if part >= 0.1 else 1)} of its size" if worth_a_share else number(weak.free.median, 3)

    @property
    def some_right(self) -> bool:
        return bool((self.audit.vulnerability.free.norms > 0).any())

    @property
    def _errors(self) -> str:
        """How many examples it gets wrong without any change."""
        norms = self.audit.vulnerability.free.norms
        wrong, count = int((norms == 0).sum()), len(norms)
        audited = f"{'' if count == self.audit.vulnerability.available else 'audited '}{self.kind} examples"
        return f"all {count} {audited}" if wrong == count else f"{wrong} of {count} {audited}"

    @property
    def gauge(self) -> str:
        """What the gauge shows."""
        limit = self.audit.limit
        assert limit is not None
        allowed = (
            "100% is half the distance to the nearest example of another class (median "
            f"{number(limit.median, 3)}), because a boundary has to pass between the two."
            f"{' Whatever one example has beyond that, its rival lacks.' if limit.share > 1 else ''}"
        )
        if limit.share == 0:
            return f"An example that is wrong as it is has no protection. {allowed}"
        if limit.proved_share is None:
            return f"{share(limit.share, 0)} by attack; nothing is proved. {allowed}"
        if limit.share - limit.proved_share < SURE:
            return f"All of the {share(limit.share, 0)} is proved{self._of_those}. {allowed}"
        rest = f"up to {share(limit.share, 0)} is not ruled out"
        return f"{share(limit.proved_share, 0)} is proved{self._of_those}; {rest}. {allowed}"

    @property
    def _of_those(self) -> str:
        """On which examples something is proved, where it is not all of them."""
        proofs, count = self.audit.vulnerability.certified, len(self.audit.vulnerability.free.norms)
        return f", on {len(proofs.rows)} of the {count} examples" if proofs and len(proofs.rows) < count else ""

    @property
    def how_far(self) -> str:
        weak = self.audit.vulnerability
        free, proofs = weak.free, weak.certified
        if not math.isfinite(free.median):
            return "The attack found no flip for half of the examples."
        if free.median == 0:
            return f"The network is wrong on {self._errors} as they are: no change is needed."
        between = f"{number(free.interval[0], 3)} to {number(free.interval[1], 3)}"
        told = (
            f"Half of the {len(free.norms)} {self.kind} examples flip within {number(free.median, 3)} "
            f"(95% interval {between})"
        )
        if proofs is None:
            return f"{told}. This is an attack: nothing is proved."
        if len(proofs.rows) == len(free.norms):
            return f"{told}, and for half it is proved that nothing shorter than {number(proofs.median_lower, 3)} does."
        return (
            f"{told}. The budget allowed proofs for {len(proofs.rows)} of them: half of these hold out to "
            f"{number(proofs.median_lower, 3)}."
        )

    @property
    def why(self) -> str:
        named = [each for each in self.audit.mechanisms if each.named]
        if not named and self.audit.vulnerability.free.median == 0:
            return "The question comes too early: why a right answer breaks can be asked once there are right answers."
        if named:
            return shortly(named[0])
        if little_is_left(self.audit.limit):
            return "The network uses nearly all that the data allow: nothing stands out."
        return "No single mechanism of the four papers explains it."

    @property
    def best(self) -> RemedyResult | None:
        return best(self.audit.remedies)

    @property
    def helps(self) -> str:
        tried = [each for each in self.audit.remedies if each.applied]
        chosen = self.best
        if not self.audit.remedies:
            return "No remedy was tried."
        dear = describe_unaffordable(self.audit.remedies)
        if not tried:
            return f"None of the remedies could be applied; the reasons are below. {dear}".strip()
        if chosen is None:
            return f"{little_help(tried)} {dear}".strip()
        proved = ""
        if chosen.proved_before is not None and chosen.proved_after is not None:
            where = f" on {chosen.proved_examples} of them" if chosen.fewer_proved else ""
            proved = f", proved{where} from {number(chosen.proved_before, 3)} to {number(chosen.proved_after, 3)},"
        return (
            f"{chosen.name} moves the median from {number(chosen.radius_before, 3)} to "
            f"{number(chosen.radius_after, 3)} ({times(chosen.factor)}){proved or ','} at a {chosen.judged_on} "
            f"accuracy of {share(chosen.accuracy_after)} (before {share(chosen.accuracy_before)})."
            f"{not_alone(self.audit.remedies)}"
        )

    @property
    def facts(self) -> list[tuple[str, str, str]]:
        """The strip: what was done, as number, what it counts and the term that explains it."""
        weak, audit = self.audit.vulnerability, self.audit
        counts = {} if weak.certified is None else weak.certified.counts
        proved = sum(counts.get(word, 0) for word in ("exact", "proved"))
        skipped = weak.available - len(weak.free.norms)
        rows: list[tuple[Any, str, str]] = [
            (f"{len(weak.free.norms)} of {weak.available}", f"{self.kind} examples attacked", "attacked"),
            (proved, "with a proof", "proved"),
            (counts.get("exact", 0), "known exactly", "exact"),
            (len(weak.free.norms) - proved - counts.get("error", 0), "without a proof", "open"),
            (counts.get("error", int((weak.free.norms == 0).sum())), "already wrong", "error"),
            (skipped, "left out", "skipped"),
        ]
        return [(str(value), words, term) for value, words, term in rows] + [
            (f"{number(audit.work, 3)} of {number(audit.budget, 3)}", "budget spent", "budget")
        ]


def shortly(row: Mechanism) -> str:
    """A named cause in one short sentence; its evidence stands in its own."""
    value, factor = row.value or 0.0, row.factor or math.nan
    sentences = {
        "doubtful labels": f"{share(value)} of the training examples have neighbours that agree on another class: "
        "their labels may be wrong.",
        "off-subspace weights": "The network reacts to directions that never occur in its data: without them the "
        f"median radius would be {times(factor)}.",
        "stopped early": "Training stopped early: a tenth of the training examples have less than "
        f"{share(value, 0)} of the median margin.",
        "lazy training": "Training hardly moved the weights, and a single gradient step is as good as the shortest "
        f"flip ({times(factor)}).",
        "one direction": "One and the same direction flips half of the examples, and needs hardly more than each "
        f"one's own shortest flip ({times(factor)}).",
    }
    return sentences.get(row.name, row.sentence)


PASSED = {  # why a cause whose bar passes the line is not named
    "doubtful labels": "Not named: so many examples lie among other classes that neighbours cannot tell whose label is "
    "wrong.",
    "lazy training": "Not named: a single gradient step is not as good as the shortest flip.",
    "one direction": "Not named: the network uses nearly all that the data allow, and so will any direction.",
}


def describe_passed_cause(row: Mechanism) -> str:
    """What to say of a cause that is not named although its bar passes the line; empty for all others."""
    beyond = row.strength is not None and row.strength >= row.mark and not row.named
    return PASSED.get(row.name, "Not named: something else speaks against it.") if beyond else ""


ADVICE = {  # what would make a hypothesis hold, by how its name begins
    "relative deviation of ‖x‖ from √d": "scale every example to length √d before training",
    "deviation of ‖x‖ from 1": "scale every example to length 1 before training",
    "relative spread of ‖x‖": "scale all examples to one length before training",
    "largest bias": "train without biases",
    "distance from a KKT point": "train on until it is small, or solve for the KKT point with brittle kkt",
    "examples": "fewer examples, or more dimensions, would do",
    "deviation of the output weights": "fix the output weights at ±1/√m and train the first layer only",
    "width": "a wider network would do",
    "distance from the start": "train in the lazy ball, brittle train --regime lazy",
    "movement of biases": "train the first layer only",
}


def advice(name: str) -> str:
    """What to do about a hypothesis that fails; empty where there is nothing short to say."""
    return next((words for begin, words in ADVICE.items() if name.startswith(begin)), "")


# An audit in a few lines of Markdown, for the page that a pipeline shows: passed or failed, and what changed.


def write_summary(
    path: str | Path, audit: Audit, title: str, failure: str | None, change: Change | None = None
) -> None:
    """At the end of the file, as GitHub's $GITHUB_STEP_SUMMARY wants it; `failure` is why the audit fails, if so."""
    try:
        with Path(path).open("a", encoding="utf-8") as stream:
            stream.write(summary(audit, title, failure, change))
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None


def summary(audit: Audit, title: str, failure: str | None, change: Change | None = None) -> str:
    """Heading, verdict in one sentence, a table, and the change since another audit."""
    words = ReportWords(audit)
    heading = f"### ✅ {_plain(title)}" if failure is None else f"### ❌ {_plain(title)}: {_plain(failure)}"
    lines = [heading, "", words.headline, "", *_table(audit, change), "", f"{words.why} {words.helps}"]
    if change is not None and change.sentence:
        lines += ["", change.sentence]
    if not audit.reproducible:
        lines += ["", f"Not reproducible at this budget. Time limit reached during: {', '.join(audit.partial)}."]
    return "\n".join([*lines, "", ""])


def _table(audit: Audit, change: Change | None) -> list[str]:
    rows: list[tuple[str, Any]] = [
        ("median distance to a flip", number(audit.vulnerability.free.median)),
        ("proved for half of the examples", _proved(audit)),
        ("share of what the data allow", "–" if audit.limit is None else share(audit.limit.share)),
        ("training accuracy", share(audit.regime.accuracy)),
    ]
    if change is None:
        return ["| | now |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
    before = {each.name: each.before for each in change.measures}
    told = [(name, value, _shown(name, before.get(name))) for name, value in rows]
    return ["| | before | now |", "|---|---|---|", *(f"| {name} | {old} | {value} |" for name, value, old in told)]


def _shown(name: str, value: float | None) -> str:
    return share(value) if name.startswith(("share", "training")) else number(value)


def _proved(audit: Audit) -> str:
    proofs = audit.vulnerability.certified
    return "–" if proofs is None else number(proofs.median_lower)


def _plain(text: str) -> str:
    """Without what Markdown or HTML would read as its own."""
    return "".join(f"\\{each}" if each in "\\`*_[]<>|#" else each for each in " ".join(text.split()))
