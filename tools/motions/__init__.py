"""Programs that make the motions of the package."""
