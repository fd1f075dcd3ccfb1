"""How an audit came about, as far as the one who asked for it says: for the page's strip, and for its next commands."""

from dataclasses import dataclass
from shlex import quote


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
