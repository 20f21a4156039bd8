"""Measurements of the package's speed and memory. They run from a checkout, not from the wheel."""
