"""Training, evaluating, playing and benchmarking from the command line."""
