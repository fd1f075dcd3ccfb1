"""What a type checker tells a user: the type of every typical result, and every mistake in a name.

One run of mypy checks all of it, with the cache of the run over the whole tree, where there is one: loading PyTorch's
types takes most of the time.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BEGINNING = """
import torch
import brittle as bt

rng = torch.Generator()
data = bt.data.Sphere(dim=20).sample(5, rng)
shallow = bt.networks.TorchLinearInit().draw(20, 30, rng)
deep = bt.networks.TorchLinearInit().draw_deep(20, (30, 30), rng)
"""
REVEALED = {
    "data": "data.base.Data",
    "shallow": "networks.two_layer.TwoLayer",
    "bt.networks.as_network(torch.nn.ReLU())": "networks.base.Network",
    "bt.training.Flow().train(shallow, data).network": "networks.two_layer.TwoLayer",
    "bt.training.Flow().train(deep, data).network": "networks.deep.Deep",
    "bt.training.GradientDescent().train(torch.nn.Linear(20, 1), data).network": "networks.base.Network",
    "bt.training.Flow().train(deep, data).status": "common.ending.Status",
    "bt.kkt.solve(shallow, data)": "kkt.solve.KKTPoint",
    "bt.kkt.solve(shallow, data).status": "common.ending.Status",
    "bt.attacks.PGD(budget=1.0).run(shallow, data)": "attacks.pgd.PGDResult",
    "bt.attacks.MinimumNorm().run(deep, data)": "attacks.minimum_norm.MinimumNormResult",
    "bt.attacks.GradientStep().run(deep, data)": "attacks.ray.GradientStepResult",
    "bt.attacks.Universal().run(deep, data)": "attacks.universal.UniversalResult",
    "bt.attacks.Ray().run(deep, data)": "attacks.base.AttackResult",
    "bt.certificates.Exact().bound(shallow, data)": "certificates.base.RadiusBounds",
    "bt.certificates.Lipschitz().bound(deep, data)": "certificates.base.RadiusBounds",
    "bt.theorems.check('vardi2022/4.1', data, shallow)": "theorems.check.CheckResult",
    "bt.audit(shallow, data)": "auditing.found.Audit",
}
MISTAKES = {
    "bt.attacks.PGD(budgett=3)": 'Unexpected keyword argument "budgett" for "PGD"',
    "bt.training.Flow(untill=bt.training.Steps(3))": 'Unexpected keyword argument "untill" for "Flow"',
    "bt.data.Sphere(dimension=3)": 'Unexpected keyword argument "dimension" for "Sphere"',
    "bt.certificates.Exact().bound(shallow, data, capp=1.0)": 'Unexpected keyword argument "capp" for "bound"',
    "bt.audit(shallow, data, budgett=3.0)": 'Unexpected keyword argument "budgett" for "audit"',
    "bt.kkt.solve(data, data)": 'Argument 1 to "solve" has incompatible type "Data"',
    "bt.training.Flow().train(shallow, data).status.advise": '"Status" has no attribute "advise"',
    "bt.training.Flow(layers='last')": 'Argument "layers" to "Flow" has incompatible type "Literal[\'last\']"',
    "bt.training.Logistic('total')": 'Argument 1 to "Logistic" has incompatible type "Literal[\'total\']"',
    "bt.atacks": 'Module has no attribute "atacks"',
}
SAID = re.compile(r"user\.py:(\d+): (?:note: Revealed type is \"brittle\.(.*)\"|error: (.*))")


def said_by_mypy(folder: Path, lines: list[str]) -> dict[str, list[str]]:
    """Types and errors by line of code."""
    (folder / "user.py").write_text("\n".join(lines))
    checker = [sys.executable, "-m", "mypy", "--no-pretty", str(folder / "user.py")]
    seen = subprocess.run(checker, cwd=ROOT, capture_output=True, text=True)
    said: dict[str, list[str]] = {}
    for number, revealed, error in SAID.findall(seen.stdout):
        said.setdefault(lines[int(number) - 1], []).append(revealed or error)
    return said


def test_a_type_checker_knows_every_result_and_every_wrong_name(tmp_path):
    wanted = {f"reveal_type({code})": kind for code, kind in REVEALED.items()} | MISTAKES
    said = said_by_mypy(tmp_path, [*BEGINNING.splitlines(), *wanted])
    assert set(said) == set(wanted)
    assert {code: words for code, words in said.items() if len(words) > 1} == {}
    assert {code: said[code] for code, words in wanted.items() if not said[code][0].startswith(words)} == {}
