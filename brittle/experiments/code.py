"""Which code a cell's numbers depend on: the file that measures it, and every file of brittle that it imports.

Imports are read from the sources, at any depth and inside functions too, so nothing is imported to name a cell. A
package's `__init__` counts where something is imported from the package itself, not where it is only passed through:
otherwise the claims of a figure would count as code of its cells.
"""

import ast
import hashlib
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from brittle import ROOMS, __version__


@dataclass(frozen=True)
class Sources:
    """The files of a package, by the names of their modules; `folder` is the package's own."""

    package: str  # its name
    folder: Traversable  # where it lies; a zip file may be one

    def read(self, module: str) -> str | None:
        """A module's text with plain line ends; None where there is no such module in the package."""
        first, *rest = module.split(".")
        if first != self.package:
            return None
        for name in ("/".join([*rest, "__init__.py"]), f"{'/'.join(rest)}.py"):
            if (file := self.folder.joinpath(name)).is_file():
                return file.read_text(encoding="utf-8").replace("\r\n", "\n")
        return None


INSTALLED = Sources("brittle", files("brittle"))


@cache
def code_hash(module: str, sources: Sources = INSTALLED) -> str:
    """Changes when brittle's version does, the module, or a module of brittle that it uses."""
    digest = hashlib.sha256(__version__.encode())
    for name in sorted(used_modules(module, sources)):
        digest.update(f"\0{name}\0{_text(name, sources)}".encode())
    return digest.hexdigest()[:16]


def used_modules(module: str, sources: Sources = INSTALLED) -> frozenset[str]:
    """The module, and what it imports from the package, directly or by way of others."""
    found, waiting = {module}, [module]
    while waiting:
        more = find_imports(waiting.pop(), sources) - found
        found |= more
        waiting += more
    return frozenset(found)


@cache
def find_imports(module: str, sources: Sources = INSTALLED) -> frozenset[str]:
    """The modules of the package that one module names in its imports."""
    return frozenset(name for name in _named(_text(module, sources), sources.package) if sources.read(name) is not None)


@cache
def _named(text: str, package: str) -> frozenset[str]:
    """What the imports of a text may name, once for every text: most files of two versions are the same."""
    return frozenset(name for node in _running(ast.parse(text)) for name in _names(node, package))


def _text(module: str, sources: Sources) -> str:
    """Of the package, or of a module from elsewhere that is imported already: a figure of one's own."""
    text = sources.read(module)
    return inspect.getsource(sys.modules[module]) if text is None else text


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below but those that only a type checker sees."""
    if isinstance(node, ast.expr):
        return  # imports are statements
    unseen = node.body if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING") else ()
    for child in ast.iter_child_nodes(node):
        if child not in unseen:
            yield child
            yield from _running(child)


def _names(node: ast.AST, package: str) -> Iterator[str]:
    """What an import may name: `from a import b` the module a, and a.b if that is one."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        if any(alias.name == package for alias in node.names):
            yield from (f"{package}.{room}" for room in ROOMS)  # any folder can be reached by `brittle.folder`
    if isinstance(node, ast.ImportFrom) and node.module is not None:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
