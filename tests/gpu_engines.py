"""Simulations of an engine for GPUs, and of the CPU engine that it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from legged_envs.conformance import test_engine
from legged_envs.conformance.conftest import begin
from legged_envs.robots import GO2
from legged_envs.sim import SceneCfg, SimCfg, Simulation, make_simulation

CONFORMANCE_TESTS = [value for name, value in vars(test_engine).items() if name.startswith("test_")]
SLIDES = test_engine.test_a_robot_slides_as_far_as_its_friction_lets_it


def simulations(engine: str) -> Iterator[Callable[..., Simulation]]:
    """Yield a function that makes Go2s in an engine, or in the CPU engine; close them afterwards."""
    made = []

    def make(
        num_envs: int = 2, reference: bool = False, scene: SceneCfg | None = None, **cfg: Any
    ) -> Simulation:
        name = "mujoco" if reference else engine
        sim = make_simulation(name, GO2, SimCfg(num_threads=1, **cfg), num_envs, "cpu", scene)
        made.append(sim)
        begin(sim)
        return sim

    yield make
    for sim in made:
        sim.close()


def run_conformance_test(test: Callable[..., None], make: Callable[..., Simulation]) -> None:
    """Run a test of the contract of an engine; the long one for a shorter time."""
    options = {"seconds": 0.3} if test is SLIDES else {}
    test(make, **options)


def assert_near(
    own: Mapping[str, torch.Tensor],
    reference: Mapping[str, torch.Tensor],
    tolerances: Mapping[str, float],
) -> None:
    """Compare quantities by name, each with its absolute tolerance."""
    for name, atol in tolerances.items():
        torch.testing.assert_close(
            own[name], reference[name], atol=atol, rtol=0.0, msg=f"{name}: {{}}".format
        )
