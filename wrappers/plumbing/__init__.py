"""What the wrappers and adapters share: their base classes, and functions on arrays and stacks."""
