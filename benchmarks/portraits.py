"""Pictures of the report for the documentation: the demo's page and that of a CNN on MNIST, on a desk and on a phone.

    python -m benchmarks.portraits [--folder docs/pictures] [--pages out]

`--pages` is where the two pages are written; with `--again` the pages that are there are photographed once more.
"""

import argparse
import io
import tempfile
from pathlib import Path

import torch
from PIL import Image
from torch import nn

import brittle as bt
from brittle.cli.audit import make_default_subject
from brittle.data import Data, Mnist
from brittle.report.words import Origin
from tests.report.browser import chromium, page

SCREENS = {"desktop": (1280, 1400, False), "phone": (390, 1700, True)}
COLOURS = 192  # in a picture file
EXAMPLES, HELD_OUT, EPOCHS = 6000, 1000, 6
CNN_BUDGET = 120  # remedies of a CNN need some: at 60 five of nine are not tried


def demo() -> tuple[bt.auditing.Audit, str]:
    """What `make demo` audits."""
    rng = torch.Generator().manual_seed(0)
    network, data = make_default_subject(rng)
    found = bt.audit(network, data, budget=60, examples=100, test=True, rng=rng)
    return found, "Audit of a network trained on the digits 3 and 8"


def cnn() -> tuple[bt.auditing.Audit, str]:
    """A small convolutional network on handwritten digits."""
    mnist, rng = Mnist().load(), torch.Generator().manual_seed(0)
    rows, held = (
        torch.randperm(len(mnist), generator=rng)[:EXAMPLES],
        torch.randperm(len(mnist.test), generator=rng)[:HELD_OUT],
    )
    X, y, X_test, y_test = mnist.X[rows], mnist.y[rows], mnist.test.X[held], mnist.test.y[held]
    data = Data(X.view(-1, 1, 28, 28), y, X_test.view(-1, 1, 28, 28), y_test)
    found = bt.audit(trained(data), data, budget=CNN_BUDGET, examples=40, test=True, rng=rng)
    return found, "Audit of a small CNN on MNIST"


def trained(data: Data) -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 8, 4, stride=2), nn.ReLU(), nn.Conv2d(8, 12, 4, stride=2), nn.ReLU(), nn.Flatten()]
    model = nn.Sequential(*layers, nn.Linear(12 * 25, 40), nn.ReLU(), nn.Linear(40, 10))
    adam, X = torch.optim.Adam(model.parameters(), 2e-3), data.X.view(-1, 1, 28, 28).float()
    for _ in range(EPOCHS):
        for rows in torch.split(torch.randperm(len(X)), 64):
            adam.zero_grad()
            torch.autograd.backward(nn.functional.cross_entropy(model(X[rows]), data.y[rows]))
            adam.step()
    return model


COMMANDS = {
    "demo": "brittle audit --test --budget 60 --examples 100 --report out/demo.html --json out/demo.json",
    "cnn": "python -m benchmarks.portraits",
}


def photographed(address: Path, name: str, folder: Path) -> None:
    program = chromium()
    assert program is not None, "Chromium is not installed: `make browser` installs it"
    for screen, (width, height, phone) in SCREENS.items():
        for light in ("light", "dark"):
            with (
                tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
                page(program, Path(profile)) as tab,
            ):
                tab.look(width, height, light == "dark", phone)
                tab.open(address.resolve())
                picture = Image.open(io.BytesIO(tab.picture(width, height))).convert("RGB")
            file = folder / f"report-{name}-{screen}-{light}.png"
            picture.quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)
            print(f"{file}: {file.stat().st_size // 1000} kB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("docs/pictures"))
    parser.add_argument("--pages", type=Path, default=Path("out"))
    parser.add_argument("--again", action="store_true", help="photograph pages that are there")
    parser.add_argument("--only", choices=tuple(COMMANDS))
    chosen = parser.parse_args()
    chosen.pages.mkdir(exist_ok=True)
    for name, make in (("demo", demo), ("cnn", cnn)):
        if chosen.only not in (None, name):
            continue
        address = chosen.pages / f"{name}.html"
        if not chosen.again:
            found, title = make()
            bt.report.write_audit_page(found, found.model, found.data, address, title, Origin(COMMANDS[name], 0))
            print(found.verdict)
        photographed(address, name, chosen.folder)


if __name__ == "__main__":
    main()
