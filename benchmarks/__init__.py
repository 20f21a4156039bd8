"""Measurements of the package's speed and memory. They are run from a checkout, and are no part of the wheel."""
