"""Common parts of the wrappers and adapters: their base classes, and functions on arrays and
stacks."""
