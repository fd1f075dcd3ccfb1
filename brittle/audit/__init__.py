"""The verdict on one network. The folder can be called: `brittle.audit(module, X, y)`."""

import sys
from types import ModuleType
from typing import Any

from brittle.audit.remedies import REMEDIES, Remedy
from brittle.audit.run import Audit, audit
from brittle.audit.treatment import Treatment

__all__ = ["REMEDIES", "Audit", "Remedy", "Treatment", "audit"]


class _CallableFolder(ModuleType):
    """`import brittle.audit` binds this folder to the name that the function should have: let it be both."""

    def __call__(self, *arguments: Any, **options: Any) -> Audit:
        return audit(*arguments, **options)


sys.modules[__name__].__class__ = _CallableFolder
