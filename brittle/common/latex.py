"""Tables for LaTeX."""

from collections.abc import Iterable, Sequence

SPECIAL = {each: f"\\{each}" for each in "&%$#_{}"}
SPECIAL |= {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\^{}"}
MATHEMATICS = {
    "≤": "\\leq", "≥": "\\geq", "√": "\\surd", "±": "\\pm", "²": "^2", "‖": "\\Vert", "½": "\\tfrac12",
    "∇": "\\nabla", "Σ": "\\Sigma", "Π": "\\Pi", "Δ": "\\Delta", "α": "\\alpha", "β": "\\beta", "γ": "\\gamma",
    "δ": "\\delta", "ε": "\\varepsilon", "η": "\\eta", "θ": "\\theta", "λ": "\\lambda", "μ": "\\mu", "ρ": "\\rho",
    "σ": "\\sigma", "τ": "\\tau", "⊥": "\\perp", "∞": "\\infty", "·": "\\cdot", "∈": "\\in", "≠": "\\neq",
}  # fmt: skip


def tabular(headings: Sequence[str], rows: Iterable[Sequence[str]], columns: str) -> str:
    """A tabular with the rules of booktabs; `columns` are their alignments, a letter each."""
    lines = [" & ".join(map(latex, row)) + r" \\" for row in (headings, *rows)]
    body = [lines[0], r"\midrule", *lines[1:]]
    begin, end = [f"\\begin{{tabular}}{{{columns}}}", r"\toprule"], [r"\bottomrule", r"\end{tabular}", ""]
    return "\n".join([*begin, *body, *end])


def latex(text: str) -> str:
    """The text with LaTeX's own characters escaped and mathematical ones as mathematics."""
    return "".join(
        f"\\ensuremath{{{MATHEMATICS[each]}}}" if each in MATHEMATICS else SPECIAL.get(each, each) for each in text
    )
