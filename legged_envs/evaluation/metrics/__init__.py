"""What an evaluation measures, one file per kind of task."""
