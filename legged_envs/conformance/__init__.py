"""Tests of what every engine must do. See docs/engines.md.

Run them by ``pytest --pyargs legged_envs.conformance --sim mine``.
"""
