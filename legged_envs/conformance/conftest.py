"""Fixture of the conformance tests that makes simulations on the tested engine."""

from collections.abc import Callable, Iterator

import pytest

from legged_envs.conformance.motions import indices
from legged_envs.robots import GO2
from legged_envs.sim import SimCfg, Simulation, make_simulation


@pytest.fixture
def make(request: pytest.FixtureRequest) -> Iterator[Callable[..., Simulation]]:
    """Return a function that makes a simulation of ``num_envs`` Go2 robots on the tested engine.

    With ``reference=True`` it makes them on MuJoCo on the CPU, the engine to compare with.
    """
    tested_engine = request.config.getoption("--sim")
    tested_device = request.config.getoption("--sim-device")
    made: list[Simulation] = []

    def make(num_envs: int, reference: bool = False) -> Simulation:
        engine = "mujoco" if reference else tested_engine
        device = "cpu" if reference else tested_device
        sim = make_simulation(engine, GO2, SimCfg(num_threads=1), num_envs, device)
        made.append(sim)
        begin(sim)
        return sim

    yield make
    for sim in made:
        sim.close()


def begin(sim: Simulation, env_ids: list[int] | None = None) -> None:
    """Reset robots to their first pose and update all quantities, as an environment does.

    Args:
        sim: Simulation of the robots.
        env_ids: Indices of the environments to reset. None: all environments.
    """
    ids = indices(sim, env_ids)
    sim.reset(ids)
    # After only a reset, body, foot and contact quantities still belong to the last step.
    sim.forward(ids)
