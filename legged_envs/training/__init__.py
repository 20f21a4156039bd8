"""Training of a policy for a task: options, algorithms, warm start, checkpoints and trainer."""
