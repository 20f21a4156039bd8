"""Smoke tests of a wheel, for ``make release``: run by the Python of an environment in which nothing but the wheel is
installed, outside of the repository, with the wheel as its argument."""

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
"""Bytes."""


def check_wheel(wheel: Path) -> None:
    """Raise an AssertionError if the wheel is too large, or not what is imported."""
    size = wheel.stat().st_size
    assert size <= LARGEST_WHEEL, (
        f"{wheel} has {size / 1e6:.1f} MB, more than {LARGEST_WHEEL / 1e6:.0f} MB"
    )
    assert Path(legged_envs.__file__).is_relative_to(sys.prefix), (
        f"{legged_envs.__file__} is not the installed package"
    )
    named = wheel.name.split("-")[1]
    assert named == version("legged-envs") == legged_envs.__version__, (
        named,
        legged_envs.__version__,
    )
    print(f"{wheel.name}: {size / 1e6:.2f} MB")


def check_flat_tasks() -> None:
    """Make each flat task and let it act at random for a few steps."""
    for task_id in (task_id for task_id in TASKS if "Flat" in task_id):
        envs = gym.make_vec(task_id, num_envs=2)
        envs.reset(seed=0)
        for _ in range(5):
            observation, reward, _, _, info = envs.step(envs.action_space.sample())
        assert (
            np.isfinite(observation).all()
            and np.isfinite(reward).all()
            and (info["cost"] >= 0.0).all()
        ), task_id
        envs.close()
        print(f"{task_id}: steps")


def check_shipped_policies() -> None:
    """Load each policy that ships, and let it act once."""
    assert SHIPPED, "no policy ships"
    for task_id in SHIPPED:
        policy = load_shipped_policy(task_id)
        action = policy(
            *(
                torch.zeros(1, sum(term["size"] for term in terms))
                for terms in policy.inputs.values()
            )
        )
        assert (
            action.shape == (1, len(policy.contract["joint_names"])) and action.isfinite().all()
        ), task_id
        print(f"{task_id}: its policy acts")


def check_command() -> None:
    """Run ``legged-envs list``, which has to tell all tasks."""
    command = [str(Path(sys.executable).with_name("legged-envs")), "list"]
    listed = subprocess.run(
        command, capture_output=True, text=True, check=True, env={"COLUMNS": "200"}
    ).stdout
    assert not [task_id for task_id in TASKS if task_id not in listed], listed
    print("legged-envs list: all tasks")


if __name__ == "__main__":
    check_wheel(Path(sys.argv[1]))
    check_flat_tasks()
    check_shipped_policies()
    check_command()
