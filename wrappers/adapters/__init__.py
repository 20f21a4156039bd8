"""Adapters, one file per RL library."""
