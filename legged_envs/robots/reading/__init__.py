"""Readers of robot files that other people wrote: a first description of any URDF or MJCF file."""
