"""Make the motions that come with the package."""
