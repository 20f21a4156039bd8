"""Readers of robot files that other people wrote."""
