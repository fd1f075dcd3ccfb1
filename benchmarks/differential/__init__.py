"""Differential fuzzing of the readers: generated models must be read as the function that they compute, or be refused."""
