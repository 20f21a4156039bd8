"""Sweeps: many trainings of one task, which differ in seeds and settings, scheduled by Ray Tune."""
