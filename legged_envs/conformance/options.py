"""A plugin of pytest with the options of the conformance tests."""

import pytest


def pytest_load_initial_conftests(parser: pytest.Parser, args: list[str]) -> None:
    """Add the options, only to a run that names the conformance tests."""
    for word in args:
        is_option = word.startswith("-")
        if not is_option and "legged_envs.conformance" in word.replace("/", "."):
            parser.addoption("--sim", default="mujoco", help="the engine to test")
            parser.addoption("--sim-device", default="cpu", help="where it runs, such as cuda:0")
            return
