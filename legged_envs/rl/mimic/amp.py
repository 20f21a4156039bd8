"""Adversarial motion prior: a reward for moving as reference motions do, whatever the task (Peng et al. 2021)."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace

import torch
from rsl_rl.modules import MLP, EmpiricalNormalization
from tensordict import TensorDict
from torch import nn

from legged_envs import rotation
from legged_envs.managers import ObservationGroupCfg, ObservationTermCfg
from legged_envs.mdp import observations
from legged_envs.motions import MotionError, MotionLibrary, MotionSample
from legged_envs.rl.mimic.bonus import RewardBonus, Rewarded
from legged_envs.rl.mimic_config import AmpCfg
from legged_envs.robots import RobotCfg

Pairs = tuple[torch.Tensor, torch.Tensor]
"""States and those one control step later. Shapes: (n, S) both."""
Expert = Callable[[int], Pairs]
"""Draws n pairs of successive states of motions."""


def amp_observations() -> ObservationGroupCfg:
    """The states that robots and motions are compared by: gravity, angular velocity, joint positions and velocities.

    They are as noisy as what a policy sees: small differences that no motion can show then tell the discriminator
    nothing.
    """
    terms = {
        "gravity": ObservationTermCfg(observations.projected_gravity, noise=0.05, mirror="vector"),
        "ang_vel": ObservationTermCfg(observations.base_ang_vel, noise=0.2, scale=0.25, mirror="pseudovector"),
        "joint_pos": ObservationTermCfg(observations.joint_pos, noise=0.01, mirror="joint"),
        "joint_vel": ObservationTermCfg(observations.joint_vel, noise=0.5, scale=0.05, mirror="joint"),
    }
    return ObservationGroupCfg(terms, noisy=True)


class ExpertTransitions:
    """Pairs of states one control step apart, of all clips of a library, at every control step of each.

    States are what an observation group sees of a robot that does exactly what the clip does. The group's terms may
    read what a motion says of base and joints: ``env.robot``'s ``root_pos_w``, ``root_quat_w``, ``root_lin_vel_w``,
    ``lin_vel_b``, ``ang_vel_b``, ``projected_gravity``, ``joint_pos``, ``joint_offset`` and ``joint_vel``.

    Args:
        library: The clips. They count by their weights, and within a clip all pairs of valid frames count alike.
        group: The observation group.
        step_dt: Control time step, s.

    Raises:
        ValueError: If a term of the group reads something else.
        MotionError: If no clip with a weight has two valid states one after the other.
    """

    def __init__(self, library: MotionLibrary, group: ObservationGroupCfg, step_dt: float):
        self._group = group
        pairs, weights = [], []
        for clip, (duration, loops) in enumerate(zip(library.duration.tolist(), library.loops.tolist(), strict=True)):
            # A loop's last pair leads into its next repetition.
            steps = math.ceil(duration / step_dt - 1e-6) if loops else math.floor(duration / step_dt + 1e-6)
            times = step_dt * torch.arange(steps + 1, dtype=torch.float64, device=library.device)
            sample = library.sample(torch.tensor(clip, device=library.device), times)
            values = self._values(sample, library.robot)
            usable = sample.valid[:-1] & sample.valid[1:]
            pairs.append(torch.stack((values[:-1], values[1:]))[:, usable])
            weights.append((library.weight[clip] / usable.sum()).expand(len(usable))[usable])
        self.previous, self.current = torch.cat(pairs, dim=1)
        """The terms' values in all pairs, clip after clip, before noise, clip and scale. Shapes: (P, S)."""
        self.weights = torch.cat(weights)
        """How often each pair is drawn, relative to the others. Shape: (P,)."""
        if not self.weights.any():
            raise MotionError(
                f"AMP needs a clip with a weight above 0 and two valid states {step_dt:g} s apart; none of "
                f"{', '.join(library.names)} is one"
            )

    def sample(self, n: int) -> Pairs:
        """Draw ``n`` pairs, and noise where the group is noisy, from torch's generator of the library's device."""
        drawn = torch.multinomial(self.weights, n, replacement=True)
        return self._observed(self.previous[drawn]), self._observed(self.current[drawn])

    def _values(self, sample: MotionSample, robot: RobotCfg) -> torch.Tensor:
        """What the terms give for a robot that is where ``sample`` is. Shape: (n, S)."""
        to_base = rotation.conjugate(sample.root_quat_w)
        derived = {
            "lin_vel_b": rotation.rotate(to_base, sample.root_lin_vel_w),
            "ang_vel_b": sample.root_ang_vel_b,
            "projected_gravity": rotation.rotate(to_base, to_base.new_tensor((0.0, 0.0, -1.0))),
            "joint_offset": sample.joint_pos - sample.joint_pos.new_tensor(robot.default_joint_pos),
        }
        on_motion = SimpleNamespace(robot=SimpleNamespace(**vars(sample), **derived))
        values = []
        for name, term in self._group.terms.items():
            try:
                values.append(term.func(on_motion, **term.params))
            except AttributeError as error:
                raise ValueError(f"AMP's term {name!r} reads what no motion has: {error}; leave it out") from error
        self._sizes = [value.shape[1] for value in values]
        return torch.cat(values, dim=1)

    def _observed(self, values: torch.Tensor) -> torch.Tensor:
        """The terms' values as the group shows them: with noise, clipped, scaled."""
        shown = []
        for term, value in zip(self._group.terms.values(), values.split(self._sizes, dim=1), strict=True):
            if self._group.noisy and term.noise:
                value = value + term.noise * (2.0 * torch.rand_like(value) - 1.0)
            value = value if term.clip is None else value.clamp(*term.clip)
            shown.append(value * value.new_tensor(term.scale))
        return torch.cat(shown, dim=1)


class Discriminator(nn.Module):
    """Tells the reference's pairs of successive states (D = 1) from the policy's (D = −1).

    Least-squares loss, gradient penalty and reward of Peng et al. 2021 ("AMP", eq. 6 to 8) as Escontrela et al. 2022.
    """

    def __init__(self, state_size: int, cfg: AmpCfg):
        super().__init__()
        self.normalizer = EmpiricalNormalization(state_size)
        self.network = MLP(2 * state_size, 1, cfg.hidden, cfg.activation)
        self.gradient_penalty = cfg.gradient_penalty

    def forward(self, previous: torch.Tensor, current: torch.Tensor) -> torch.Tensor:
        """D of pairs of states. Shapes: (n, S), (n, S) → (n,)."""
        return self.network(self._pair(previous, current)).squeeze(1)

    def _pair(self, previous: torch.Tensor, current: torch.Tensor) -> torch.Tensor:
        return torch.cat((self.normalizer(previous), self.normalizer(current)), dim=1)

    def reward(self, previous: torch.Tensor, current: torch.Tensor) -> torch.Tensor:
        """max(0, 1 − ¼ (D − 1)²). Shapes: (n, S), (n, S) → (n,)."""
        return (1.0 - 0.25 * (self(previous, current) - 1.0).square()).clamp_(min=0.0)

    def losses(
        self, policy: tuple[torch.Tensor, torch.Tensor], expert: tuple[torch.Tensor, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """``amp`` = E_expert (D − 1)² + E_policy (D + 1)² + w/2 · E_expert ‖∇D‖², and the mean D of both."""
        pair = self._pair(*expert).requires_grad_()
        of_expert, of_policy = self.network(pair), self(*policy)
        (gradient,) = torch.autograd.grad(of_expert.sum(), pair, create_graph=True)
        penalty = 0.5 * self.gradient_penalty * gradient.square().sum(dim=1).mean()
        fit = (of_expert - 1.0).square().mean() + (of_policy + 1.0).square().mean()
        return {"amp": fit + penalty, "amp_expert": of_expert.mean(), "amp_policy": of_policy.mean()}


class StylePrior(RewardBonus):
    """A reward from 0 to 1 for transitions that a :class:`Discriminator` takes for those of motions.

    Args:
        cfg: Weights, networks and observation group.
        expert: Draws so many pairs of motions: see :meth:`ExpertTransitions.sample`.
        env_obs: An observation of the environment.
        num_steps: Steps of a rollout.

    Raises:
        ValueError: If the environment has no such group.
    """

    network: Discriminator

    def __init__(self, cfg: AmpCfg, expert: Expert, env_obs: TensorDict, num_steps: int):
        super().__init__("amp", cfg.group, env_obs, num_steps)
        self.cfg, self.expert = cfg, expert
        self.network = Discriminator(self.after.shape[2], cfg).to(self.after.device)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=cfg.learning_rate, fused=True)

    def _add(self, rewards: torch.Tensor, before: torch.Tensor, after: torch.Tensor) -> Rewarded:
        style = self.network.reward(before, after)
        total = self.cfg.task_reward_weight * rewards + self.cfg.amp_reward_weight * style
        return total, {"style_reward": style.mean()}

    def _losses(self, before: torch.Tensor, after: torch.Tensor) -> dict[str, torch.Tensor]:
        return self.network.losses((before, after), self.expert(len(before)))

    def update_normalizer(self) -> None:
        states = self.after.flatten(0, 1)
        self.network.normalizer.update(torch.cat((states, self.expert(len(states))[1])))
