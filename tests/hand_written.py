"""A task without managers: the methods of the interface, written by hand."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import torch

from legged_envs.envs import Evaluation, Spaces, Task
from legged_envs.envs.manager_set import OBSERVATION_LIMIT


class StandUp(Task):
    """Keep the base at a drawn height, and let the torques cost something."""

    cost_names = ("torque",)
    cost_limits = (0.5,)
    log_names = ("reward/height", "cost/torque", "termination/fallen")

    def build(self) -> Spaces:
        joints = self.cfg.robot.num_joints
        self.target = torch.zeros(self.env.num_envs, 1)
        self.action = torch.zeros(self.env.num_envs, joints)
        self.sums = torch.zeros(self.env.num_envs, 2)
        self.fallen = torch.zeros(self.env.num_envs, dtype=torch.bool)
        sizes = {"policy": 1 + 3 + 2 * joints, "height": 1}
        spaces = {
            name: gym.spaces.Box(-OBSERVATION_LIMIT, OBSERVATION_LIMIT, (size,))
            for name, size in sizes.items()
        }
        return Spaces(spaces, gym.spaces.Box(-1.0, 1.0, (joints,)))

    def act(self, action: torch.Tensor) -> None:
        self.action = action.clamp(-1.0, 1.0)
        self.env.sim.set_joint_targets(self.env.robot.default_joint_pos + 0.5 * self.action)
        self.env.sim.step(self.cfg.sim.decimation)

    def evaluate(self) -> Evaluation:
        self.env.robot.compute()
        reward = -(self.env.robot.root_pos_w[:, 2] - self.target[:, 0]).abs()
        costs = (self.env.robot.joint_torque.abs() > 20.0).float().mean(1, keepdim=True)
        self.fallen = self.env.robot.projected_gravity[:, 2] > -0.5
        self.sums += torch.cat((reward.unsqueeze(1), costs), dim=1)
        return Evaluation(self.fallen, reward, costs.sum(1), costs)

    def advance(self) -> None:
        due = (
            (self.env.random.stream("push").uniform(0.0, 1.0, 1) < 0.05)
            .squeeze(1)
            .nonzero()
            .squeeze(1)
        )
        if len(due):
            self.env.robot.push(due, torch.tensor([[0.3, 0.0, 0.0]]).expand(len(due), 3))

    def observe(self, env_ids: torch.Tensor | None) -> dict[str, torch.Tensor]:
        robot, rows = self.env.robot, slice(None) if env_ids is None else env_ids
        policy = torch.cat(
            (self.target, robot.projected_gravity, robot.joint_offset, self.action), dim=1
        )[rows]
        height = robot.root_pos_w[rows, 2:3].clone()
        return {"policy": policy.clamp(-OBSERVATION_LIMIT, OBSERVATION_LIMIT), "height": height}

    def place(self, env_ids: torch.Tensor, seeded: bool) -> None:
        self.target[env_ids] = self.env.random.stream("target").uniform(0.2, 0.3, 1, env_ids)

    def begin_episodes(self, env_ids: torch.Tensor) -> None:
        self.sums[env_ids] = 0.0
        self.action = self.action.index_fill(0, env_ids, 0.0)

    def end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        return torch.cat(
            (self.sums[env_ids] / steps.unsqueeze(1), self.fallen[env_ids].float().unsqueeze(1)),
            dim=1,
        )

    def state(self) -> dict[str, Any]:
        return {
            name: getattr(self, name).clone() for name in ("target", "action", "sums", "fallen")
        }

    def load_state(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value.clone())
