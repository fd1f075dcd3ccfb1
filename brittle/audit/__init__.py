"""The verdict on one network."""
