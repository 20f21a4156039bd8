"""Adversarial motion prior (AMP): a reward for moving in the style of reference clips."""

from collections.abc import Callable
from types import SimpleNamespace

import torch
from rsl_rl.modules import MLP, EmpiricalNormalization
from tensordict import TensorDict
from torch import nn

from legged_envs import rotation
from legged_envs.managers import ObservationGroupCfg
from legged_envs.motions import MotionError, MotionLibrary, MotionSample
from legged_envs.robots import RobotCfg
from legged_envs.training import processes
from legged_envs.training.learner.bonus import RewardBonus
from legged_envs.training.learner_options import AmpCfg

Pairs = tuple[torch.Tensor, torch.Tensor]
"""Transitions: n states, and the n states one control step later. Shapes: (n, S), (n, S)."""

Expert = Callable[[int], Pairs]
"""Function that draws a given number of transitions from the clips."""


class Discriminator(nn.Module):
    """Network D that distinguishes transitions of clips (D = 1) from transitions of the policy (D =
    −1).

    Least-squares loss, gradient penalty and reward follow Peng et al. 2021, eq. 6 to 8, as in
    Escontrela et al. 2022.

    Args:
        state_size: Size S of a state.
        cfg: Options of the adversarial motion prior.
    """

    def __init__(self, state_size: int, cfg: AmpCfg):
        super().__init__()
        self.normalizer = EmpiricalNormalization(state_size)
        self.network = MLP(2 * state_size, 1, cfg.hidden, cfg.activation)
        self.gradient_penalty = cfg.gradient_penalty

    def forward(self, previous: torch.Tensor, current: torch.Tensor) -> torch.Tensor:
        """Return D of transitions. Shapes: (n, S), (n, S) → (n,)."""
        return self.network(self._pair(previous, current)).squeeze(1)

    def _pair(self, previous: torch.Tensor, current: torch.Tensor) -> torch.Tensor:
        return torch.cat((self.normalizer(previous), self.normalizer(current)), dim=1)

    def reward(self, previous: torch.Tensor, current: torch.Tensor) -> torch.Tensor:
        """Return the style reward max(0, 1 − ¼ (D − 1)²) of transitions, from 0 to 1.

        Args:
            previous: States before the transitions. Shape: (n, S).
            current: States after the transitions. Shape: (n, S).

        Returns:
            Rewards. Shape: (n,).
        """
        excess = self(previous, current) - 1.0
        return (1.0 - 0.25 * excess.square()).clamp_(min=0.0)

    def losses(self, policy: Pairs, expert: Pairs) -> dict[str, torch.Tensor]:
        """Return the loss of the discriminator, and its mean outputs.

        Args:
            policy: Transitions of the policy.
            expert: Transitions of the clips.

        Returns:
            ``amp``: the loss E_expert (D − 1)² + E_policy (D + 1)² + w/2 · E_expert ‖∇D‖², with the
            weight w of the gradient penalty. ``amp_expert`` and ``amp_policy``: mean D of the
            transitions of clips and of the policy.
        """
        # The gradient is with respect to the normalized states, which need no separate scale.
        pair = self._pair(*expert).requires_grad_()
        of_expert = self.network(pair)
        of_policy = self(*policy)
        (gradient,) = torch.autograd.grad(of_expert.sum(), pair, create_graph=True)
        penalty = 0.5 * self.gradient_penalty * gradient.square().sum(dim=1).mean()
        fit = (of_expert - 1.0).square().mean() + (of_policy + 1.0).square().mean()
        return {
            "amp": fit + penalty,
            "amp_expert": of_expert.mean(),
            "amp_policy": of_policy.mean(),
        }


class StylePrior(RewardBonus):
    """Reward from 0 to 1 for transitions that a :class:`Discriminator` takes for transitions of
    clips.

    Args:
        cfg: Options of the adversarial motion prior.
        expert: Function that draws transitions from the clips.
        env_obs: Example observation of all environments.
        num_steps: Number of control steps in a rollout.
    """

    name = "amp"
    reward_name = "style_reward"
    network: Discriminator

    def __init__(self, cfg: AmpCfg, expert: Expert, env_obs: TensorDict, num_steps: int):
        super().__init__(cfg.group, env_obs, num_steps)
        self.expert = expert
        self.task_weight = cfg.task_reward_weight
        self.weight = cfg.amp_reward_weight
        self.network = Discriminator(self.after.shape[2], cfg).to(self.after.device)
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), lr=cfg.learning_rate, fused=True
        )

    def _reward(self, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        return self.network.reward(before, after)

    def _losses(self, before: torch.Tensor, after: torch.Tensor) -> dict[str, torch.Tensor]:
        return self.network.losses((before, after), self.expert(len(before)))

    def update_normalizer(self) -> None:
        """Update the running statistics with the states of the rollout and as many of the clips."""
        states = self.after.flatten(0, 1)
        _, expert_states = self.expert(len(states))
        self.network.normalizer.update(torch.cat((states, expert_states)))


class ExpertTransitions:
    """Transitions of the reference clips, observed through an observation group of the task.

    The states belong to a robot that follows the clips exactly. There is a transition at every
    control step of every clip. A clip is drawn with a probability proportional to its weight, and
    the valid transitions of a clip are equally likely.

    Args:
        library: The reference clips.
        group: Observation group. Its terms may read ``root_pos_w``, ``root_quat_w``,
            ``root_lin_vel_w``, ``lin_vel_b``, ``ang_vel_b``, ``projected_gravity``, ``joint_pos``,
            ``joint_offset`` and ``joint_vel`` of ``env.robot``.
        step_dt: Duration of a control step, s.

    Raises:
        ValueError: If a term of the group reads another quantity.
        MotionError: If no clip with a weight above 0 has a valid transition.
    """

    def __init__(self, library: MotionLibrary, group: ObservationGroupCfg, step_dt: float):
        self._group = group
        clips, times = _control_steps(library, step_dt)
        sample = library.sample(clips, times)
        # The last step of a clip and the first of the next one are not a transition.
        usable = sample.valid[:-1] & sample.valid[1:] & (clips[:-1] == clips[1:])
        values = self._values(sample, library.robot)

        self.previous = values[:-1][usable]
        """States before all P transitions, without noise, clipping and scale. Shape: (P, S)."""
        self.current = values[1:][usable]
        """States after all P transitions, without noise, clipping and scale. Shape: (P, S)."""
        clip_of_pair = clips[:-1][usable]
        pairs_of_clip = clip_of_pair.bincount(minlength=library.num_clips)

        self.weights = (library.weight / pairs_of_clip)[clip_of_pair]
        """Relative probability of drawing each transition. Shape: (P,)."""
        if not self.weights.any():
            raise MotionError(
                f"AMP needs a clip with a weight above 0 and two valid states {step_dt:g} s apart; "
                f"none of {', '.join(library.names)} is one"
            )

    def sample(self, n: int) -> Pairs:
        """Draw ``n`` transitions with torch's global random generator.

        The states have the noise, clipping and scale of the observation group. Several processes
        draw different transitions, together the same ones as a single process.
        """
        of_all = torch.multinomial(self.weights, n * processes.count(), replacement=True)
        drawn = processes.own_rows(of_all)
        previous = self._observed(self.previous[drawn])
        current = self._observed(self.current[drawn])
        return previous, current

    def _values(self, sample: MotionSample, robot: RobotCfg) -> torch.Tensor:
        """Return the values of the terms for a robot in the state of ``sample``. Shape: (n, S)."""
        env = SimpleNamespace(robot=_robot_state(sample, robot))
        values = []
        for name, term in self._group.terms.items():
            try:
                values.append(term.func(env, **term.params))
            except AttributeError as error:
                raise ValueError(
                    f"AMP's term {name!r} reads a quantity that motions do not have: {error}; "
                    "leave it out"
                ) from error
        self._sizes = [value.shape[1] for value in values]
        return torch.cat(values, dim=1)

    def _observed(self, values: torch.Tensor) -> torch.Tensor:
        """Return values with the noise, clip and scale of their terms. Shape: (n, S) → (n, S)."""
        parts = values.split(self._sizes, dim=1)
        shown = []
        for term, value in zip(self._group.terms.values(), parts, strict=True):
            # In the order of the observation manager: noise, then clipping, then scale.
            if self._group.noisy and term.noise:
                value = value + term.noise * (2.0 * processes.uniform_like(value) - 1.0)
            if term.clip is not None:
                value = value.clamp(*term.clip)
            shown.append(value * value.new_tensor(term.scale))
        return torch.cat(shown, dim=1)


def _control_steps(library: MotionLibrary, step_dt: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the control steps of all clips, one clip after the other.

    Args:
        library: The reference clips.
        step_dt: Duration of a control step, s.

    Returns:
        Index of the clip and time since its start, s, of each control step. Shapes: (T,), (T,).
    """
    steps = library.duration.double() / step_dt
    # The last transition of a looping clip leads into its repetition, so its duration is rounded
    # up. The tolerance of 1e-6 steps keeps rounding errors from adding or removing a step.
    num_steps = torch.where(library.loops, (steps - 1e-6).ceil(), (steps + 1e-6).floor()).long()
    clips = torch.arange(library.num_clips, device=library.device)
    clips = clips.repeat_interleave(num_steps + 1)
    counts = [torch.arange(n + 1, dtype=torch.float64) for n in num_steps]
    times = step_dt * torch.cat(counts).to(library.device)
    return clips, times


def _robot_state(sample: MotionSample, robot: RobotCfg) -> SimpleNamespace:
    """Return a stand-in for ``env.robot`` in the states of a clip, for observation terms."""
    to_base = rotation.conjugate(sample.root_quat_w)
    down = to_base.new_tensor((0.0, 0.0, -1.0))
    default_joint_pos = sample.joint_pos.new_tensor(robot.default_joint_pos)
    return SimpleNamespace(
        **vars(sample),
        lin_vel_b=rotation.rotate(to_base, sample.root_lin_vel_w),
        ang_vel_b=sample.root_ang_vel_b,
        projected_gravity=rotation.rotate(to_base, down),
        joint_offset=sample.joint_pos - default_joint_pos,
    )
