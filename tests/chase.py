"""A toy of motion-mimic learning: a point that follows a moving target where there is one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tensordict import TensorDict

from legged_envs.tasks.mimic import ACTOR_GROUPS, CRITIC_GROUPS
from legged_envs.training.learner.distillation import Distillation
from legged_envs.training.learner.ppo import PPO
from legged_envs.training.learner_options import AmpCfg, LagrangeCfg, RndCfg
from legged_envs.training.mimic.networks import MimicPolicy
from legged_envs.training.mimic.ppo import make_mimic_ppo, mimic_inputs
from legged_envs.training.mimic_options import DaggerCfg, MimicDistillationCfg, MimicPPOCfg

ENVS, FRAMES, STEPS, LIMIT = 32, 3, 24, 15
SIZES = {"policy": 3, "critic": 5, "reference": 2 * FRAMES, "critic_reference": 3 * FRAMES}
COSTS = ("effort", "distance")
NETWORK: dict[str, Any] = {
    "hidden": (32,),
    "encoder_hidden": (32,),
    "encoder_size": 16,
    "encoder_heads": 2,
}


class Chase:
    """A point x in the plane moves by 0.3 · clip(a, ±1); its target circles, and is the origin without a reference.

    The interface of ``RslRlVecEnv``. Reward 0.1 · (1 − |x' − target'|²), at least −0.1; time-out after 15 steps, a fall
    beyond |x| = 2. The frames are the target's next positions, for the critic with the number of the frame.
    """

    def __init__(self, num_envs: int = ENVS):
        self.num_envs = num_envs
        self.x, self.phase = torch.zeros(num_envs, 2), torch.zeros(num_envs)
        self.has_reference, self.age = (
            torch.zeros(num_envs, dtype=torch.bool),
            torch.randint(0, LIMIT, (num_envs,)),
        )
        self._reset(torch.ones(num_envs, dtype=torch.bool))

    def _reset(self, rows: torch.Tensor) -> None:
        n = int(rows.sum())
        self.x[rows] = torch.rand(n, 2) * 2.0 - 1.0
        self.phase[rows] = torch.rand(n) * 6.28
        self.has_reference[rows] = torch.rand(n) < 0.7

    def target(self, ahead: int = 0) -> torch.Tensor:
        angle = self.phase + 0.2 * ahead
        return torch.stack((angle.cos(), angle.sin()), dim=1) * self.has_reference[:, None]

    def get_observations(self) -> TensorDict:
        frames = [self.target(ahead) for ahead in range(1, FRAMES + 1)]
        number = self.has_reference[:, None].float()
        mask = self.has_reference[:, None].float()
        groups = {
            "policy": torch.cat(
                (self.x + 0.01 * torch.randn_like(self.x), torch.rand(self.num_envs, 1)), dim=1
            ),
            "critic": torch.cat((self.x, self.x.square(), self.age[:, None] / LIMIT), dim=1),
            "reference": torch.cat(frames, dim=1),
            "critic_reference": torch.cat(
                [torch.cat((f, i * number), dim=1) for i, f in enumerate(frames)], dim=1
            ),
            "reference_mask": mask,
            "critic_reference_mask": mask.clone(),
            "amp": self.x.clone(),
        }
        return TensorDict(groups, batch_size=[self.num_envs])

    def step(
        self, actions: torch.Tensor
    ) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        self.x = self.x + 0.3 * actions.clamp(-1.0, 1.0)
        self.phase, self.age = self.phase + 0.2, self.age + 1
        self.error = (self.x - self.target()).norm(dim=1)
        fallen = self.x.norm(dim=1) > 2.0
        time_outs = (self.age >= LIMIT) & ~fallen
        dones = fallen | time_outs
        extras = {
            "time_outs": time_outs,
            "costs": torch.stack((actions.abs().mean(1), self.x.norm(dim=1)), dim=1),
        }
        obs = self.get_observations()
        if dones.any():
            extras["final_obs"] = obs
            self.age = self.age.masked_fill(dones, 0)
            self._reset(dones)
            obs = torch.where(dones, self.get_observations(), obs)
        return obs, 0.1 * (1.0 - self.error.square()).clamp(min=-1.0), dones, extras


def chase_by_hand(
    critic: torch.Tensor, reference: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """Return the action of a teacher: it moves the point to its target, as far as an action reaches."""
    return ((reference[:, :2] * mask - critic[:, :2]) / 0.3).clamp(-1.0, 1.0)


def circling(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Successive positions of targets: an expert."""
    begin = 6.28 * torch.rand(n)
    before, after = (
        torch.stack((angle.cos(), angle.sin()), dim=1) for angle in (begin, begin + 0.2)
    )
    return before, after


EVERYTHING: dict[str, Any] = {
    "cost_names": COSTS,
    "cost_limits": (0.3, 0.8),
    "teacher": chase_by_hand,
    "expert": circling,
}


def make(env: Chase, arguments: dict[str, Any] | None = None, **cfg: Any) -> PPO:
    made = make_mimic_ppo(
        env.get_observations(), 2, FRAMES, MimicPPOCfg(**NETWORK | cfg), **arguments or {}
    )
    made.train_mode()
    return made


def with_everything(env: Chase, **cfg: Any) -> PPO:
    options = {
        "amp": AmpCfg(0.5, hidden=(16,)),
        "dagger": DaggerCfg(0.3, decay_iterations=10),
        "rnd": RndCfg(0.1),
        "lagrange": LagrangeCfg(enabled=True),
    }
    return make(
        env, EVERYTHING, **options | {"encoder": "transformer", "schedule": "adaptive"} | cfg
    )


def roll(algorithm: PPO | Distillation, env: Chase) -> float:
    """One rollout, as the trainer makes it. Returns the mean tracking error."""
    obs, error = env.get_observations(), 0.0
    with torch.inference_mode():
        for _ in range(algorithm.cfg.steps_per_env):
            obs, rewards, dones, extras = env.step(algorithm.act(obs))
            algorithm.process_env_step(obs, rewards, dones, extras)
            error += env.error.mean().item()
        algorithm.compute_returns(obs)
    return error / algorithm.cfg.steps_per_env


def iterate(algorithm: PPO | Distillation, env: Chase, iterations: int) -> list[dict[str, float]]:
    return [{"error": roll(algorithm, env)} | algorithm.update() for _ in range(iterations)]


def policy_error(algorithm: PPO | Distillation, env: Chase, steps: int = 60) -> float:
    """Mean tracking error of the mean action."""
    policy, groups, error = algorithm.get_policy().as_jit(), algorithm.groups, 0.0
    obs = env.get_observations()
    with torch.inference_mode():
        for _ in range(steps):
            obs, *_ = env.step(policy(*(obs[group] for group in groups)))
            error += env.error.mean().item()
    return error / steps


def mean_actions(algorithm: PPO | Distillation, obs: TensorDict) -> torch.Tensor:
    with torch.no_grad():
        return algorithm.actor(*(obs[group] for group in algorithm.groups))


def disagreement(algorithm: PPO | Distillation, env: Chase, steps: int = 20) -> float:
    """Mean squared difference to the teacher's actions, in the states of an environment that nobody has learnt from."""
    obs, total = env.get_observations(), 0.0
    for _ in range(steps):
        actions = mean_actions(algorithm, obs)
        teacher = chase_by_hand(
            obs["critic"], obs["critic_reference"], obs["critic_reference_mask"]
        )
        total += (actions - teacher).square().mean().item() / steps
        obs, *_ = env.step(actions)
    return total


def distillation(env: Chase, **cfg: Any) -> Distillation:
    options = MimicDistillationCfg(**NETWORK | cfg)
    observation = env.get_observations()
    student = mimic_inputs(observation, ACTOR_GROUPS, FRAMES)
    made = Distillation(
        observation,
        MimicPolicy((SIZES["policy"], SIZES["reference"]), FRAMES, 2, options),
        student,
        mimic_inputs(observation, CRITIC_GROUPS, FRAMES),
        options,
        teacher=chase_by_hand,
    )
    made.train_mode()
    return made


ENCODERS = pytest.mark.parametrize("encoder", ["mlp", "transformer"])
