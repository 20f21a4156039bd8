"""A task without managers: the hooks of the core, filled by hand."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import torch

from legged_envs.envs import CoreVectorEnv, Evaluation
from legged_envs.envs.manager_task import OBSERVATION_LIMIT


class StandUp(CoreVectorEnv):
    """Keep the base at a drawn height, and let the torques cost something."""

    cost_names, cost_limits, log_names = (
        ("torque",),
        (0.5,),
        ("reward/height", "cost/torque", "termination/fallen"),
    )

    def _build(self) -> tuple[dict[str, gym.Space], gym.Space]:
        joints = self.cfg.robot.num_joints
        self.target = torch.zeros(self.num_envs, 1)
        self.action = torch.zeros(self.num_envs, joints)
        self.sums = torch.zeros(self.num_envs, 2)
        self.fallen = torch.zeros(self.num_envs, dtype=torch.bool)
        sizes = {"policy": 1 + 3 + 2 * joints, "height": 1}
        spaces = {
            name: gym.spaces.Box(-OBSERVATION_LIMIT, OBSERVATION_LIMIT, (size,))
            for name, size in sizes.items()
        }
        return spaces, gym.spaces.Box(-1.0, 1.0, (joints,))

    def _act(self, action: torch.Tensor) -> None:
        self.action = action.clamp(-1.0, 1.0)
        self.sim.set_joint_targets(self.robot.default_joint_pos + 0.5 * self.action)
        self.sim.step(self.cfg.sim.decimation)

    def _evaluate(self) -> Evaluation:
        self.robot.compute()
        reward = -(self.robot.root_pos_w[:, 2] - self.target[:, 0]).abs()
        costs = (self.robot.joint_torque.abs() > 20.0).float().mean(1, keepdim=True)
        self.fallen = self.robot.projected_gravity[:, 2] > -0.5
        self.sums += torch.cat((reward.unsqueeze(1), costs), dim=1)
        return Evaluation(self.fallen, reward, costs.sum(1), costs)

    def _advance(self) -> None:
        due = (
            (self.random.stream("push").uniform(0.0, 1.0, 1) < 0.05).squeeze(1).nonzero().squeeze(1)
        )
        if len(due):
            self.robot.push(due, torch.tensor([[0.3, 0.0, 0.0]]).expand(len(due), 3))

    def _observe(self, env_ids: torch.Tensor | None) -> dict[str, torch.Tensor]:
        robot, rows = self.robot, slice(None) if env_ids is None else env_ids
        policy = torch.cat(
            (self.target, robot.projected_gravity, robot.joint_offset, self.action), dim=1
        )[rows]
        height = robot.root_pos_w[rows, 2:3].clone()
        return {"policy": policy.clamp(-OBSERVATION_LIMIT, OBSERVATION_LIMIT), "height": height}

    def _place(self, env_ids: torch.Tensor, seeded: bool) -> None:
        self.target[env_ids] = self.random.stream("target").uniform(0.2, 0.3, 1, env_ids)

    def _begin_episodes(self, env_ids: torch.Tensor) -> None:
        self.sums[env_ids] = 0.0
        self.action = self.action.index_fill(0, env_ids, 0.0)

    def _end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        return torch.cat(
            (self.sums[env_ids] / steps.unsqueeze(1), self.fallen[env_ids].float().unsqueeze(1)),
            dim=1,
        )

    def _own_state(self) -> dict[str, Any]:
        return {
            name: getattr(self, name).clone() for name in ("target", "action", "sums", "fallen")
        }

    def _load_own_state(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value.clone())
