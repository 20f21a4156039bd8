"""Environments can be made and closed all day."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CYCLES = """
import gc, resource, sys
import gymnasium as gym, numpy as np, legged_envs

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20

for cycle in range(20 + {cycles}):
    if cycle == 20:
        before = resident()
    env = gym.make_vec(("Legged/Go2-Flat-v0", "Legged/G1-Flat-v0", "Legged/Go2-Mimic-v0")[cycle % 3], num_envs=4)
    env.reset(seed=cycle)
    env.step(np.zeros(env.action_space.shape, np.float32))
    env.close()
print(resident() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="needs the process table of Linux"
)
def test_environments_that_were_closed_leave_no_memory_behind():
    """500 cycles are for ``python -m benchmarks.ab``; each used to leave 3 MB behind."""
    result = subprocess.run(
        [sys.executable, "-c", CYCLES.format(cycles=45)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr[-1500:]
    assert float(result.stdout) < 12.0, f"45 environments left {float(result.stdout):.1f} MB behind"
