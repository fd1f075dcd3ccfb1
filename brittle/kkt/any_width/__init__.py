"""The largest margin over networks of every width: its proof, a checker of proofs, and the search for both."""
