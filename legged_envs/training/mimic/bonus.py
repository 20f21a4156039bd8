"""Rewards that an algorithm itself gives for the states that the robots get to: for style, and for what is new."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from rsl_rl.extensions import RandomNetworkDistillation
from rsl_rl.modules import MLP, EmpiricalNormalization
from tensordict import TensorDict
from torch import nn

from legged_envs import rotation
from legged_envs.checks import check_choice
from legged_envs.managers import ObservationGroupCfg, ObservationTermCfg
from legged_envs.mdp import observations
from legged_envs.motions import MotionError, MotionLibrary, MotionSample
from legged_envs.robots import RobotCfg
from legged_envs.training.mimic_options import AmpCfg, RndCfg

Pairs = tuple[torch.Tensor, torch.Tensor]
Expert = Callable[[int], Pairs]
"""States and those one control step later, (n, S) both; and what draws n such pairs from motions."""


class RewardBonus(ABC):
    """A reward by a network that learns from the states ``group`` of ``env_obs``. In a rollout of ``num_steps`` an
    algorithm calls :meth:`add` each step, then :meth:`learn` for each mini-batch and :meth:`update_normalizer`."""

    option: str
    reward_name: str
    """What the bonus is called among the options, in checkpoints and losses; and what :attr:`means` are called."""
    network: nn.Module
    optimizer: torch.optim.Optimizer
    task_weight = weight = 1.0
    """Weights of the reward that the bonus is added to, and of the bonus."""

    def __init__(self, group: str, env_obs: TensorDict, num_steps: int):
        check_choice(f"{self.option}.group", group, sorted(env_obs.keys()))
        self.group = group
        self.before, self.after = torch.zeros_like(env_obs[group]).repeat(2, num_steps, 1, 1)
        self.means = self.after.new_zeros(num_steps)
        """States before and after each step, of one episode, (num_steps, num_envs, S); mean bonuses, (num_steps,)."""

    def add(
        self, step: int, rewards: torch.Tensor, obs: TensorDict, following: TensorDict
    ) -> torch.Tensor:
        """The ``rewards`` (num_envs,) of a step from ``obs`` to ``following``, of the same episodes, with the bonus."""
        self.before[step], self.after[step] = obs[self.group], following[self.group]
        bonus = self._reward(self.before[step], self.after[step])
        self.means[step] = bonus.mean()
        return self.task_weight * rewards + self.weight * bonus

    def learn(self, indices: torch.Tensor) -> dict[str, torch.Tensor]:
        """One step of the optimizer on the transitions ``indices`` of the flattened rollout. Returns losses by name."""
        losses = self._losses(self.before.flatten(0, 1)[indices], self.after.flatten(0, 1)[indices])
        self.optimizer.zero_grad()
        losses[self.option].backward()
        self.optimizer.step()
        return losses

    @abstractmethod
    def _reward(self, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        """The bonus. Shapes: (num_envs, S), (num_envs, S) → (num_envs,)."""

    @abstractmethod
    def _losses(self, before: torch.Tensor, after: torch.Tensor) -> dict[str, torch.Tensor]:
        """What :meth:`learn` minimises, named as the ``option``, and what else it reports, for states (n, S)."""

    @abstractmethod
    def update_normalizer(self) -> None:
        """Take the rollout's states into the running statistics."""


class Discriminator(nn.Module):
    """Tells pairs of successive states of motions (D = 1) from the policy's (D = −1): least-squares loss, gradient
    penalty and reward of Peng et al. 2021 ("AMP", eq. 6 to 8) as Escontrela et al. 2022."""

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

    def losses(self, policy: Pairs, expert: Pairs) -> dict[str, torch.Tensor]:
        """``amp`` = E_expert (D − 1)² + E_policy (D + 1)² + w/2 · E_expert ‖∇D‖², and the mean D of both."""
        pair = self._pair(*expert).requires_grad_()
        of_expert, of_policy = self.network(pair), self(*policy)
        (gradient,) = torch.autograd.grad(of_expert.sum(), pair, create_graph=True)
        penalty = 0.5 * self.gradient_penalty * gradient.square().sum(dim=1).mean()
        fit = (of_expert - 1.0).square().mean() + (of_policy + 1.0).square().mean()
        return {
            "amp": fit + penalty,
            "amp_expert": of_expert.mean(),
            "amp_policy": of_policy.mean(),
        }


class StylePrior(RewardBonus):
    """Adversarial motion prior: a reward from 0 to 1 for what a :class:`Discriminator` takes for motions."""

    option, reward_name = "amp", "style_reward"
    network: Discriminator

    def __init__(self, cfg: AmpCfg, expert: Expert, env_obs: TensorDict, num_steps: int):
        super().__init__(cfg.group, env_obs, num_steps)
        self.expert, self.task_weight, self.weight = (
            expert,
            cfg.task_reward_weight,
            cfg.amp_reward_weight,
        )
        self.network = Discriminator(self.after.shape[2], cfg).to(self.after.device)
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), lr=cfg.learning_rate, fused=True
        )

    def _reward(self, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        return self.network.reward(before, after)

    def _losses(self, before: torch.Tensor, after: torch.Tensor) -> dict[str, torch.Tensor]:
        return self.network.losses((before, after), self.expert(len(before)))

    def update_normalizer(self) -> None:
        states = self.after.flatten(0, 1)
        self.network.normalizer.update(torch.cat((states, self.expert(len(states))[1])))


def amp_observations() -> ObservationGroupCfg:
    """The states that robots and motions are compared by, as noisy as what a policy sees."""
    terms = {
        "gravity": ObservationTermCfg(observations.projected_gravity, noise=0.05, mirror="vector"),
        "ang_vel": ObservationTermCfg(
            observations.base_ang_vel, noise=0.2, scale=0.25, mirror="pseudovector"
        ),
        "joint_pos": ObservationTermCfg(observations.joint_pos, noise=0.01, mirror="joint"),
        "joint_vel": ObservationTermCfg(
            observations.joint_vel, noise=0.5, scale=0.05, mirror="joint"
        ),
    }
    return ObservationGroupCfg(terms, noisy=True)


class ExpertTransitions:
    """Pairs of states ``step_dt`` s apart at every control step of all clips: what an observation group sees of a robot
    that does exactly what the clip does. Its terms may read ``root_pos_w``, ``root_quat_w``, ``root_lin_vel_w``,
    ``lin_vel_b``, ``ang_vel_b``, ``projected_gravity``, ``joint_pos``, ``joint_offset`` and ``joint_vel`` of
    ``env.robot``, else ValueError. Clips count by weight, a clip's valid pairs alike; MotionError if there is none."""

    def __init__(self, library: MotionLibrary, group: ObservationGroupCfg, step_dt: float):
        self._group = group
        steps = library.duration.double() / step_dt
        # A loop's last pair leads into its next repetition.
        num_steps = torch.where(library.loops, (steps - 1e-6).ceil(), (steps + 1e-6).floor()).long()
        clips = torch.arange(library.num_clips, device=library.device).repeat_interleave(
            num_steps + 1
        )
        times = step_dt * torch.cat(
            [torch.arange(n + 1, dtype=torch.float64) for n in num_steps]
        ).to(library.device)
        sample = library.sample(clips, times)
        usable = sample.valid[:-1] & sample.valid[1:] & (clips[:-1] == clips[1:])
        values, of_clip = self._values(sample, library.robot), clips[:-1][usable]
        self.previous, self.current = values[:-1][usable], values[1:][usable]
        self.weights = (library.weight / of_clip.bincount(minlength=library.num_clips))[of_clip]
        """All pairs' values before noise, clip and scale, (P, S), and how often each pair is drawn, (P,)."""
        if not self.weights.any():
            needed = f"a clip with a weight above 0 and two valid states {step_dt:g} s apart"
            raise MotionError(f"AMP needs {needed}; none of {', '.join(library.names)} is one")

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
                raise ValueError(
                    f"AMP's term {name!r} reads what no motion has: {error}; leave it out"
                ) from error
        self._sizes = [value.shape[1] for value in values]
        return torch.cat(values, dim=1)

    def _observed(self, values: torch.Tensor) -> torch.Tensor:
        shown = []
        for term, value in zip(
            self._group.terms.values(), values.split(self._sizes, dim=1), strict=True
        ):
            if self._group.noisy and term.noise:
                value = value + term.noise * (2.0 * torch.rand_like(value) - 1.0)
            value = value if term.clip is None else value.clamp(*term.clip)
            shown.append(value * value.new_tensor(term.scale))
        return torch.cat(shown, dim=1)


class Novelty(RewardBonus):
    """rsl_rl's random network distillation: the error of a predictor in states that it has not learnt from."""

    option, reward_name = "rnd", "rnd_reward"
    network: RandomNetworkDistillation

    def __init__(self, cfg: RndCfg, activation: str, env_obs: TensorDict, num_steps: int):
        super().__init__(cfg.group, env_obs, num_steps)
        sizes: Any = (
            self.after.shape[2],
            {"rnd_state": [cfg.group]},
            cfg.outputs,
            cfg.hidden,
            cfg.hidden,
        )
        options: Any = {
            "weight": cfg.weight,
            "learning_rate": cfg.learning_rate,
            "device": str(self.after.device),
        }
        self.network = RandomNetworkDistillation(
            *sizes, activation, state_normalization=True, **options
        )
        self.optimizer = self.network.optimizer

    def _reward(self, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        return self.network.get_intrinsic_reward({self.group: after})

    def _losses(self, before: torch.Tensor, after: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"rnd": self.network.compute_loss({self.group: after})}

    def update_normalizer(self) -> None:
        self.network.update_normalization({self.group: self.after.flatten(0, 1)})
