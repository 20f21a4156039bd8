"""What the wrappers share."""
