"""Differential fuzzing of the readers: a generated model is read as the function that it computes, or refused."""
