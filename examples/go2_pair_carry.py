"""How well a pair of agents that multi_agent_ippo.py trained carries the beam of Legged/Go2-Pair-v0: in how many of 256
unseen episodes of 10 s neither fell nor dropped it, and how well the beam followed the command meanwhile."""

import argparse
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from pickle import UnpicklingError

import gymnasium as gym
import torch
from skrl.resources.preprocessors.torch import RunningStandardScaler
from torch import nn

import legged_envs  # noqa: F401  (registers the ids)
from legged_envs import rotation
from legged_envs.evaluation.conditions import (
    EVALUATION_ENV_OPTIONS,
    SETTLING_SECONDS,
    evaluation_cfg,
)
from legged_envs.evaluation.evaluator import EVALUATION_SEED
from legged_envs.evaluation.metrics.task import TaskMetrics
from legged_envs.tasks import make_task_cfg
from legged_envs.tasks.go2_pair import SIDES

ID = "Legged/Go2-Pair-v0"


def carrying(act: Callable[[torch.Tensor], torch.Tensor], episodes: int = 256) -> dict[str, float]:
    """What ``act``, observations of all agents in a row → actions, does on the task, randomized but undisturbed.
    Velocities are measured at the beam, in the frame of its width and length, after the first second, while it is
    carried; ``standing_…`` are the values of a pair that never moves."""
    cfg = evaluation_cfg(make_task_cfg(ID))
    with closing(gym.make_vec(ID, num_envs=episodes, cfg=cfg, **EVALUATION_ENV_OPTIONS)) as envs:
        core = envs.unwrapped
        observation, _ = envs.reset(seed=EVALUATION_SEED)
        carried, errors, counted = (
            torch.ones(episodes, dtype=torch.bool),
            torch.zeros(episodes, 4),
            torch.zeros(episodes),
        )
        for step in range(round(TaskMetrics.EPISODE_SECONDS / core.step_dt)):
            command = core.commands["velocity"].clone()
            with torch.inference_mode():
                observation, _, _, _, info = envs.step(act(observation["policy"]))
            carried = carried & ~info["agent_terminated"].any(1)
            if (step + 1) * core.step_dt > SETTLING_SECONDS:
                beam = core.sim.objects["beam"]
                velocity = rotation.rotate(
                    rotation.conjugate(beam.root_quat_w), beam.root_lin_vel_w
                )[:, :2]
                linear, turn = (
                    (command[:, :2] - velocity).norm(dim=1),
                    (command[:, 2] - beam.root_ang_vel_b[:, 2]).abs(),
                )
                row = torch.stack(
                    (linear, turn, command[:, :2].norm(dim=1), command[:, 2].abs()), 1
                )
                errors += row * carried[:, None]
                counted += carried
    means = (errors / counted[:, None]).nanmean(0).tolist()
    names = ("lin_vel_error", "ang_vel_error", "standing_lin_vel_error", "standing_ang_vel_error")
    return {
        "episodes": episodes,
        "carried": carried.float().mean().item(),
        **dict(zip(names, means, strict=True)),
    }


def load(path: Path) -> Callable[[torch.Tensor], torch.Tensor]:
    """The means of the actions of all agents of a ``policy.pt``, for their observations in a row.

    A file of other agents, such as agents of another task, is a ValueError.
    """
    saved = torch.load(path)
    if not isinstance(saved, dict) or set(saved) != set(SIDES):
        agents = ", ".join(map(str, saved)) if isinstance(saved, dict) else "no agents"
        raise ValueError(f"{path} is of {agents}; the agents of {ID} are {', '.join(SIDES)}")
    parts = []
    for policy, scaler in saved.values():
        weights = {
            name.removeprefix("net."): value
            for name, value in policy.items()
            if name.startswith("net.")
        }
        matrices = [value for name, value in weights.items() if name.endswith("weight")]
        layers = [
            layer for m in matrices for layer in (nn.Linear(m.shape[1], m.shape[0]), nn.ELU())
        ]
        net, scale = nn.Sequential(*layers[:-1]), RunningStandardScaler(size=matrices[0].shape[1])
        net.load_state_dict(weights)
        scale.load_state_dict(scaler)
        parts.append((net, scale, matrices[0].shape[1]))

    def act(joined: torch.Tensor) -> torch.Tensor:
        seen = joined.split([size for _, _, size in parts], dim=1)
        return torch.cat(
            [net(scale(part)) for (net, scale, _), part in zip(parts, seen, strict=True)], 1
        )

    return act


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--policy",
        type=Path,
        required=True,
        help=f"policy.pt that multi_agent_ippo.py --task {ID} wrote",
    )
    parser.add_argument("--episodes", type=int, default=256)
    args = parser.parse_args()
    try:
        act = load(args.policy)
    except (OSError, ValueError, RuntimeError, UnpicklingError) as error:
        parser.error(f"--policy must be of multi_agent_ippo.py --task {ID}: {error}")
    result = carrying(act, args.episodes)
    print(json.dumps({name: round(value, 3) for name, value in result.items()}))
