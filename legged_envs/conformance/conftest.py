"""Simulations of the conformance tests."""

from collections.abc import Callable, Iterator

import pytest

from legged_envs.conformance.motions import indices
from legged_envs.robots import GO2
from legged_envs.sim import SimCfg, Simulation, make_simulation


@pytest.fixture
def make(request: pytest.FixtureRequest) -> Iterator[Callable[..., Simulation]]:
    """``make(num_envs)`` Go2 on the tested engine; ``reference=True`` makes them on the CPU
    engine."""
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
    """Put robots to their start, as an environment does.

    Args:
        sim: The simulation.
        env_ids: Indices of the environments; None is all.
    """
    ids = indices(sim, env_ids)
    sim.reset(ids)
    # A reset alone leaves body, foot and contact quantities of the last step.
    sim.forward(ids)
