"""Smoke tests of a wheel, for ``make release``.

They run with the Python of an environment in which only the wheel is installed, outside of the
repository, with the wheel as their argument.
"""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch

import legged_envs
from legged_envs.policy.policy import SHIPPED, load_shipped_policy
from legged_envs.tasks import TASKS

LARGEST_WHEEL = 5e6
"""Largest size of a wheel, bytes."""


def check_wheel(wheel: Path) -> None:
    """Raise an AssertionError if the wheel is too large, or is not what is imported."""
    megabytes = wheel.stat().st_size / 1e6
    most = LARGEST_WHEEL / 1e6
    assert megabytes <= most, f"{wheel} has {megabytes:.1f} MB, more than {most:.0f} MB"
    package = Path(legged_envs.__file__)
    assert package.is_relative_to(sys.prefix), f"{package} is not the installed package"
    named = wheel.name.split("-")[1]
    installed = version("legged-envs")
    own = legged_envs.__version__
    assert named == installed == own, (named, installed, own)
    print(f"{wheel.name}: {megabytes:.2f} MB")


def check_flat_tasks() -> None:
    """Make each flat task and let it act at random for a few steps."""
    for task_id in TASKS:
        if "Flat" not in task_id:
            continue
        envs = gym.make_vec(task_id, num_envs=2)
        envs.reset(seed=0)
        for _ in range(5):
            observation, reward, _, _, info = envs.step(envs.action_space.sample())
        assert np.isfinite(observation).all(), task_id
        assert np.isfinite(reward).all(), task_id
        assert (info["cost"] >= 0.0).all(), task_id
        envs.close()
        print(f"{task_id}: steps")


def check_shipped_policies() -> None:
    """Load each shipped policy, and let it act once."""
    assert SHIPPED, "no policy ships"
    for task_id in SHIPPED:
        policy = load_shipped_policy(task_id)
        observations = []
        for terms in policy.inputs.values():
            size = sum(term["size"] for term in terms)
            observations.append(torch.zeros(1, size))
        action = policy(*observations)
        num_joints = len(policy.contract["joint_names"])
        assert action.shape == (1, num_joints), task_id
        assert action.isfinite().all(), task_id
        print(f"{task_id}: its policy acts")


def check_command() -> None:
    """Run ``legged-envs list``, which must print all tasks."""
    program = Path(sys.executable).with_name("legged-envs")
    done = subprocess.run(
        [str(program), "list"], capture_output=True, text=True, check=True, env={"COLUMNS": "200"}
    )
    for task_id in TASKS:
        assert task_id in done.stdout, done.stdout
    print("legged-envs list: all tasks")


if __name__ == "__main__":
    check_wheel(Path(sys.argv[1]))
    check_flat_tasks()
    check_shipped_policies()
    check_command()
