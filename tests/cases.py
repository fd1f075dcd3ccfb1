"""One table per folder: every exported part has a row here, and every row runs through the folder's shared tests.

A row is (name, part): the name becomes the test's id, the part is a small instance that runs in milliseconds.
"""

import torch

from brittle.networks import Kaiming, Lazy, PyTorch

INITIALISATIONS = [
    ("pytorch", PyTorch()),
    ("kaiming", Kaiming()),
    ("lazy", Lazy()),
]

_rng = torch.Generator().manual_seed(0)

NETWORKS = [
    ("two layers", PyTorch().draw(4, 7, _rng)),
    ("two layers, one logit, as a deep network", PyTorch().draw_deep(4, [7], _rng)),
    ("three layers", PyTorch(scale=3, first_layer_only=True).draw_deep(4, [7, 6], _rng)),
    ("five layers, three classes", PyTorch().draw_deep(4, [7, 6, 5, 6], _rng, outputs=3)),
]

TABLES = [INITIALISATIONS, NETWORKS]
