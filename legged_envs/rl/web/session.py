"""Robots that act for a viewer, and what can be done to them between two control steps."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv

from legged_envs.envs import unwrap
from legged_envs.rl.policy import Policy, load_policy
from legged_envs.rl.velocity_metrics import hold_velocity
from legged_envs.rl.watch import Command, Scene, begin

SMOOTHING = 0.5
"""Time over which rewards and costs are averaged, s: most jump from step to step."""
PULL, MOST_PULL = 20.0, 30.0
"""Acceleration that the mouse gives for each metre that it is away from where it took hold, 1/s², and at most, m/s²."""


class Session:
    """Robots in ``envs``, which have the options ``EVALUATED``, with a policy, in a scene without end. A robot whose
    episode ends begins the scene again."""

    def __init__(self, envs: VectorEnv, policy: Policy, scene: Scene):
        self.envs, self.core, self.scene = envs, unwrap(envs), scene
        self.act: Callable[..., torch.Tensor] = policy
        self.groups = tuple(policy.inputs)
        """What gives actions, and the observation groups that it takes."""
        self.rewards = torch.zeros_like(self.core.rewards.episode_sums)
        self.costs = torch.zeros_like(self.core.costs.episode_sums)
        """Weighted reward terms a second and cost terms a step, averaged. Shape: (num_envs, num_terms)."""
        self.pulls: dict[str, tuple[int, np.ndarray]] = {}
        """Robots and objects that the mouse holds: their environment, and from there to the mouse, m in the world."""
        self.observation: dict[str, torch.Tensor] = begin(envs, scene, seed=0)

    def restart(self, scene: Scene | None = None) -> None:
        """Begin every episode anew, in another scene if one is given."""
        self.scene = scene or self.scene
        self.observation = begin(self.envs, self.scene)

    def step(self) -> None:
        """Let one control step pass."""
        core, before, step_dt = self.core, self.core.rewards.episode_sums.clone(), self.core.step_dt
        for name, (env_id, way) in tuple(self.pulls.items()):
            pull = way * PULL
            pull *= min(1.0, MOST_PULL / max(float(np.linalg.norm(pull)), 1e-9))
            body = {**core.sim.robots, **core.sim.objects}[name]
            body.push(torch.tensor([env_id]), torch.from_numpy(pull * step_dt).float()[None])
        with torch.inference_mode():
            action = self.act(*(self.observation[group] for group in self.groups))
        self.observation, _, terminated, truncated, info = self.envs.step(action)
        rate = (core.rewards.episode_sums - before) / step_dt
        self.rewards += (rate - self.rewards) * step_dt / SMOOTHING
        self.costs += (info["costs"] - self.costs) * step_dt / SMOOTHING
        if (ended := terminated | truncated).any():
            self.observation = begin(self.envs, self.scene, options={"reset_mask": ended})

    def command(self, command: Command) -> None:
        """Ask every robot for a velocity from the next step on."""
        if command != self.scene.command:
            self.scene = replace(self.scene, command=command)
            hold_velocity(self.core, command, self.observation)

    def place(self, kind: str, level: int) -> None:
        """Begin anew on the tiles of one kind and level."""
        ground: Any = self.core.sim.ground
        columns = torch.tensor([i for i, name in enumerate(ground.terrain.kinds) if name == kind])
        ground.levels.fill_(level)
        ground.columns.copy_(columns[torch.arange(self.core.num_envs) % len(columns)])
        self.restart()

    def take_policy(self, policy: Policy | Path | None) -> None:
        """Act by another policy, or a file or run folder with one; by None hold the pose of action 0. ValueError or
        FileNotFoundError, and the old one stays, if there is none or it does not fit."""
        if policy is None:
            self.act, self.groups = lambda *_: torch.zeros(self.core.num_envs, self.core.actions.size), ()
            return
        loaded = load_policy(policy) if isinstance(policy, Path) else policy
        loaded.check(self.core)
        self.act, self.groups = loaded, tuple(loaded.inputs)
