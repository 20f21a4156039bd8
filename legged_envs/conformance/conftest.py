"""Simulations of the conformance tests."""

from collections.abc import Callable, Iterator

import pytest
import torch

from legged_envs.robots import GO2
from legged_envs.sim import SimCfg, Simulation, make_simulation


@pytest.fixture
def make(request: pytest.FixtureRequest) -> Iterator[Callable[..., Simulation]]:
    """``make(num_envs)`` Go2 on the engine that is tested, or ``make(num_envs, reference=True)`` on the CPU engine."""
    made, tested = [], [request.config.getoption(option) for option in ("--sim", "--sim-device")]

    def make(num_envs: int, reference: bool = False) -> Simulation:
        engine, where = ("mujoco", "cpu") if reference else tested
        made.append(make_simulation(engine, GO2, SimCfg(num_threads=1), num_envs, where))
        begin(made[-1])
        return made[-1]

    yield make
    for sim in made:
        sim.close()


def begin(sim: Simulation, env_ids: list[int] | None = None) -> None:
    """Put robots to their start, as an environment does."""
    ids = (
        torch.arange(sim.num_envs, device=sim.device)
        if env_ids is None
        else torch.tensor(env_ids, device=sim.device)
    )
    sim.reset(ids)
    sim.forward(ids)
