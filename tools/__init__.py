"""Programs that make the repository. The package does not need them."""
