"""Adapters to RL libraries, one file for each library."""
