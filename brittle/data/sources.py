"""The real data sets: where their files lie, what they must be, and how to get them."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from brittle.common.errors import InputError, require
from brittle.common.kinds import check_kinds
from brittle.common.progress import Progress, Watch, silent
from brittle.common.result import Result


@dataclass(frozen=True)
class DatasetSource:
    """The original files of a data set with their SHA-256, where they are offered, and other forms that are read."""

    files: dict[str, str]
    mirrors: tuple[str, ...]
    forms: tuple[str, ...] = ("train-images-idx3-ubyte",)


SOURCES = {
    "mnist": DatasetSource(
        {
            "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        },
        ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"),
    ),
    "fashion-mnist": DatasetSource(
        {
            "train-images-idx3-ubyte.gz": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "train-labels-idx1-ubyte.gz": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        },
        (
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        ),
    ),
    "cifar10": DatasetSource(
        {"cifar-10-binary.tar.gz": "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"},
        ("https://www.cs.toronto.edu/~kriz/",),
        (
            "cifar-10-python.tar.gz",
            "cifar-10-batches-bin/test_batch.bin",
            "cifar-10-batches-py/test_batch",
            "test_batch.bin",
            "test_batch",
        ),
    ),
}


@dataclass(frozen=True)
class DatasetStatus(Result):
    """What is there of the data set `name` in its `folder`.

    `files` maps each original file to verified, different or absent.
    `forms` are unpacked or other forms of it, which are read too and have no checksum to verify.

    Examples:
        >>> import brittle as bt
        >>> there = bt.data.holding("mnist")
        >>> sorted(there.files)[0]
        't10k-images-idx3-ubyte.gz'
    """

    name: str
    folder: Path
    files: dict[str, str]
    forms: list[str]

    @property
    def complete(self) -> bool:
        return all(state == "verified" for state in self.files.values())

    @property
    def state(self) -> str:
        """In a word or two, for people."""
        states = set(self.files.values())
        if self.complete:
            return "complete"
        if "different" in states:
            return "another file in its place"
        if states == {"absent"}:
            return "there, unverified" if self.forms else "absent"
        return "incomplete"


def data_folder() -> Path:
    """$BRITTLE_DATA, else the user's cache.

    Examples:
        >>> import brittle as bt
        >>> bt.data.data_folder().is_absolute()
        True
    """
    chosen = os.environ.get("BRITTLE_DATA")
    if chosen:
        return Path(chosen).expanduser()
    import pooch

    return Path(pooch.os_cache("brittle"))


@check_kinds
def holding(name: str) -> DatasetStatus:
    """Look at the files of one data set, without any network.

    Examples:
        >>> import brittle as bt
        >>> bt.data.holding("cifar10").name
        'cifar10'
    """
    folder, wanted = data_folder() / name, source(name)
    files = {file: _state(folder / file, sha) for file, sha in wanted.files.items()}
    return DatasetStatus(name, folder, files, [form for form in wanted.forms if (folder / form).is_file()])


def source(name: str) -> DatasetSource:
    require(name in SOURCES, f"{name!r} is not a data set that can be fetched; there are {', '.join(SOURCES)}")
    return SOURCES[name]


def sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _state(path: Path, sha: str) -> str:
    if not path.is_file():
        return "absent"
    return "verified" if sha256(path) == sha else "different"


@check_kinds
def fetch(name: str, watch: Watch = silent) -> DatasetStatus:
    """Download what is missing or damaged, check every SHA-256, and say what is there now.

    Examples:
        >>> import brittle as bt
        >>> there = bt.data.fetch("mnist")  # doctest: +SKIP
        >>> there.files  # doctest: +SKIP
    """
    files = source(name).files
    folder = data_folder() / name
    for place, (file, sha) in enumerate(files.items()):
        _fetch_file(name, folder, file, sha, _Bar(watch, file, place, len(files)))
    return holding(name)


def _fetch_file(name: str, folder: Path, file: str, sha: str, bar: "_Bar") -> None:
    import pooch
    import requests

    pooch.get_logger().setLevel("ERROR")
    reason = ""
    for mirror in source(name).mirrors:
        download = pooch.HTTPDownloader(progressbar=bar, timeout=30)
        try:
            pooch.retrieve(mirror + file, f"sha256:{sha}", fname=file, path=folder, downloader=download)
            return
        except requests.RequestException as error:
            reason = f"no answer: {type(error).__name__}"
        except ValueError:
            reason = "what came has another SHA-256"
        except OSError:
            raise InputError(f"{folder}: cannot be written; set BRITTLE_DATA to another folder") from None
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    raise InputError(f"{name}: {file} could not be fetched ({reason}); copy it into {folder} by hand")


class _Bar:
    """What pooch takes for a progress bar."""

    def __init__(self, watch: Watch, file: str, place: int, files: int) -> None:
        self.total = 0
        self._seen = 0
        self._watch, self._file, self._place, self._files = watch, file, place, files

    def update(self, size: int) -> None:
        self._seen += size
        share = min(1.0, self._seen / self.total) if self.total else 0.0
        self._watch(Progress((self._place + share) / self._files, self._file))

    def reset(self) -> None:
        self._seen = 0

    def close(self) -> None:
        """Nothing to clear away."""
