"""A plugin of pytest: options of the conformance tests, which only a run of these has."""

import pytest


def pytest_load_initial_conftests(parser: pytest.Parser, args: list[str]) -> None:
    if any(
        "legged_envs.conformance" in word.replace("/", ".")
        for word in args
        if not word.startswith("-")
    ):
        parser.addoption("--sim", default="mujoco", help="the engine to test")
        parser.addoption("--sim-device", default="cpu", help="where it runs, such as cuda:0")
