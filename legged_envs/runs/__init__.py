"""The files of a training run, experiment trackers and progress lines."""
