"""One table per folder: every exported part has a row here, and every row runs through the folder's shared tests.

A row is (name, part): the name becomes the test's id, the part is a small instance that runs in milliseconds.
"""

from brittle.networks import Kaiming, Lazy, PyTorch

INITIALISATIONS = [
    ("pytorch", PyTorch()),
    ("kaiming", Kaiming()),
    ("lazy", Lazy()),
]

TABLES = [INITIALISATIONS]
