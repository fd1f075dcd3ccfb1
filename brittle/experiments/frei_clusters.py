"""frei2023: KKT networks on clustered data generalise and are flipped by one short direction."""

FIGURES: tuple = ()
