"""What the repository is made with and the package does not need."""
