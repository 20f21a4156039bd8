"""Files of a training run, experiment trackers, progress display and shared types of options."""
