"""Files of a training run, experiment trackers, progress, and types of options that verbs share."""
