"""Recorded episodes, and files of them."""
