"""Tests that every physics engine must pass, also engines of other packages. See docs/engines.md.

Run them for the engine ``mine`` by ``pytest --pyargs legged_envs.conformance --sim mine``.
"""
