"""Run tests on mutants, each in a process of its own that cannot run for ever.

This process imports PyTorch and pytest, computes nothing and has one thread, so it can be forked safely. A child
imports brittle and the tests, with the changed source in the place of one file, and runs the chosen tests up to the
first that fails. It ends when its processor time is used up, or is killed with its whole process group.
"""

import ast
import contextlib
import gc
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOME = Path(__file__).parent.parent
PRELOADED = (
    *("torch", "scipy.optimize", "scipy.stats", "scipy.sparse.linalg", "pytest", "hypothesis", "typer.testing"),
    *("safetensors", "pytest_timeout", "_hypothesis_pytestplugin", "xml.etree.ElementTree", "pdb"),
)
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "MPLBACKEND": "agg",
}
PLUGINS = ("no:cacheprovider", "_hypothesis_pytestplugin", "pytest_timeout")
OPTIONS = ("-q", "--assert=plain", *(f"-p{name}" for name in PLUGINS))  # what is imported already cannot be rewritten
MEMORY = 8 * 2**30  # bytes that one mutant may allocate
WALL = 6  # a child may sleep: its wall time is limited to so many times its processor time
POLL = 0.02


def preload() -> None:
    """Import what every child needs; raise if that started a thread."""
    os.environ.update(ENVIRONMENT)
    sys.path.insert(0, str(HOME))
    for name in PRELOADED:
        importlib.import_module(name)
    importlib.import_module("torch").set_num_threads(1)
    gc.freeze()
    tasks = Path("/proc/self/task")
    assert not tasks.exists() or len(list(tasks.iterdir())) == 1, "a process with several threads cannot be forked"


@dataclass(frozen=True)
class Job:
    """Tests to run in a child: `tests` are node ids in their order, empty for all of `files`.

    `source` is the changed code of the module `module`; `seconds` limits the processor time; `covered` are the files
    whose executed lines are recorded for every test.
    """

    name: str
    files: tuple[str, ...]
    tests: tuple[str, ...] = ()
    module: str = ""
    source: str = ""
    seconds: float = 60.0
    covered: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ran:
    """How a child ended: `by` is "" where every test passes, else the first that fails, "import", "crash" or "time".

    `tests` are the processor seconds of those that pass, `lines` the tests that run each line of each file.
    """

    by: str
    seconds: float
    tests: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[str, list[str]]] = field(default_factory=dict)


def run(jobs: Sequence[Job], workers: int = 2) -> Iterator[tuple[Job, Ran]]:
    """The results of the jobs as they come, from so many children at a time."""
    waiting, running = list(reversed(jobs)), list[Child]()
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                running.append(Child(waiting.pop()))
            for child in list(running):
                if (ran := child.ended()) is not None:
                    running.remove(child)
                    yield child.job, ran
            time.sleep(POLL)
    finally:
        for child in running:
            child.kill()


class Child:
    """A forked process with a folder for its result and for the files of its tests."""

    def __init__(self, job: Job) -> None:
        self.job, self.started = job, time.monotonic()
        self.folder = Path(tempfile.mkdtemp(prefix="mutant-"))
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            code = 1
            try:
                _work(job, self.folder)
                code = 0
            finally:
                os._exit(code)

    def ended(self) -> Ran | None:
        """The result, None while it runs; a child that has had its time is killed."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        seconds = time.monotonic() - self.started
        if not pid:
            if seconds > WALL * self.job.seconds:
                self.kill()
                return Ran("time", seconds)
            return None
        result = self.folder / "result.json"
        written = json.loads(result.read_text()) if result.exists() else None
        self._clean()
        if written is not None:
            return Ran(**written, seconds=seconds)
        code = os.waitstatus_to_exitcode(status)
        return Ran("time" if code in (-signal.SIGXCPU, -signal.SIGKILL) else "crash", seconds)

    def kill(self) -> None:
        """End the child and all that it started."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self._clean()

    def _clean(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


def _work(job: Job, folder: Path) -> None:
    """In the child: run the tests and write the result."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    limit = int(job.seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.chdir(HOME)
    gc.disable()  # until the tests are collected: imports make no garbage
    if job.module:
        sys.meta_path.insert(0, Changed(job.module, job.source))
    result = _tested(job, folder)
    partial = folder / "partial.json"
    partial.write_text(json.dumps(result))
    partial.rename(folder / "result.json")


def _tested(job: Job, folder: Path) -> dict[str, Any]:
    pytest = importlib.import_module("pytest")
    switch: Callable[[str], None] = lambda name: None  # noqa: E731
    if job.covered:
        coverage = importlib.import_module("coverage")
        recorder = coverage.Coverage(data_file=None, config_file=False, include=[str(HOME / f) for f in job.covered])
        recorder.start()
        switch = recorder.switch_context
    watcher = Watcher(job.tests, switch)
    options = [*OPTIONS, f"--basetemp={folder / 'files'}", *(() if job.covered else ("-x",))]
    code = pytest.main([*options, *job.files], plugins=[watcher])
    by = watcher.failed or ("" if code in (0, 5) else "import")
    result: dict[str, Any] = {"by": by, "tests": watcher.seconds}
    if job.covered:
        recorder.stop()
        result["lines"] = _lines(recorder.get_data(), job.name)
    return result


def _lines(data: Any, name: str) -> dict[str, dict[str, list[str]]]:
    """For every file and line the tests that run it; `name` for what runs while tests are collected."""
    found = {}
    for file in data.measured_files():
        lines = data.contexts_by_lineno(file).items()
        found[str(Path(file).relative_to(HOME))] = {
            str(line): sorted({test or name for test in tests}) for line, tests in lines if tests
        }
    return found


class Watcher:
    """Chooses and orders tests, takes their times and notes the first that fails; nothing is shrunk."""

    def __init__(self, chosen: Sequence[str], switch: Callable[[str], None]) -> None:
        self.order = {name: place for place, name in enumerate(chosen)}
        self.switch, self.seconds, self.begun = switch, dict[str, float](), 0.0
        self.failed, self.broken = "", set[str]()

    def pytest_sessionstart(self) -> None:
        hypothesis = importlib.import_module("hypothesis")
        settings, phase = hypothesis.settings, hypothesis.Phase
        settings.register_profile("mutants", settings.get_profile("brittle"), phases=[phase.explicit, phase.generate])
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        gc.enable()
        if self.order:
            items[:] = sorted((i for i in items if i.nodeid in self.order), key=lambda item: self.order[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.begun = time.process_time()
        self.switch(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.switch("")
        if nodeid not in self.broken:
            self.seconds[nodeid] = time.process_time() - self.begun

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid
            self.broken.add(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed = self.failed or "import"


class Changed(importlib.abc.MetaPathFinder):
    """Imports one module from changed source; all others as ever."""

    def __init__(self, module: str, source: str) -> None:
        self.module, self.source = module, source

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name != self.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = FromSource(name, spec.origin, self.source)
        return spec


class FromSource(importlib.machinery.SourceFileLoader):
    """The loader of a file, with other source."""

    def __init__(self, name: str, path: str, changed: str) -> None:
        super().__init__(name, path)
        self.changed = changed

    def get_code(self, fullname: str) -> Any:
        return compile(ast.parse(self.changed), self.path, "exec")


def module_of(file: str) -> str:
    """The dotted name of a file of the repository."""
    return file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
