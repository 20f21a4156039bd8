"""Evaluation, comparison and recording of policies."""
