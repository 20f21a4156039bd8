"""Draws pictures of a simulation and shows it in a window."""
