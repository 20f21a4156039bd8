"""PPO for an actor that reads reference frames, with optional constraints, teacher and bonuses."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from tensordict import TensorDict
from torch import nn
from torch.nn import functional

from legged_envs.checks import check_number
from legged_envs.storage import MiniBatch
from legged_envs.tasks.mimic import ACTOR_GROUPS, CRITIC_GROUPS
from legged_envs.training.mimic.algorithm import (
    MimicAlgorithm,
    Teacher,
    inputs,
    means,
    stored_inputs,
)
from legged_envs.training.mimic.bonus import Novelty, RewardBonus
from legged_envs.training.mimic.lagrange import Lagrange
from legged_envs.training.mimic.networks import MimicNetwork
from legged_envs.training.mimic.style_prior import Expert, StylePrior
from legged_envs.training.mimic_options import MimicPPOCfg

LEARNING_RATES = (1e-5, 1e-2)
"""Smallest and largest learning rate of the adaptive schedule, as in rsl_rl."""

ADAPTATION = 1.5
"""Factor by which the adaptive schedule divides or multiplies the learning rate, as in rsl_rl."""


class MimicPPO(MimicAlgorithm):
    """PPO (Schulman et al. 2017), with rsl_rl's interface, for an actor that reads reference
    frames.

    Options add constraints on costs (``cfg.lagrange``), imitation of a teacher (``cfg.dagger``) and
    reward bonuses (``cfg.amp``, ``cfg.rnd``). With bonuses the reward is task_reward_weight · r +
    amp_reward_weight · style + novelty, and novelty includes the weight of ``cfg.rnd``.

    Args:
        env_obs: Example observation of all environments; see :class:`MimicAlgorithm`.
        num_actions: Number of actions of a robot.
        frames: Number of future frames in a reference window.
        cfg: Options of the algorithm.
        cost_names: Names of the cost terms. Required for ``cfg.lagrange``.
        cost_limits: Limit of each cost term: its largest mean per control step. Required for
            ``cfg.lagrange``.
        teacher: Policy that labels visited states with actions. Required for ``cfg.dagger``.
        expert: Function that draws transitions from the clips. Required for ``cfg.amp``.

    Raises:
        ValueError: If a required argument is missing or does not suit the others.
    """

    cfg: MimicPPOCfg

    def __init__(
        self,
        env_obs: TensorDict,
        num_actions: int,
        frames: int,
        cfg: MimicPPOCfg,
        *,
        cost_names: Sequence[str] = (),
        cost_limits: Sequence[float] = (),
        teacher: Teacher | None = None,
        expert: Expert | None = None,
    ):
        groups = CRITIC_GROUPS if cfg.privileged_actor else ACTOR_GROUPS
        super().__init__(env_obs, num_actions, frames, cfg, groups)
        if cfg.dagger.coefficient and teacher is None:
            raise ValueError(
                f"dagger.coefficient = {cfg.dagger.coefficient} needs a teacher, got None"
            )
        self.teacher = teacher if cfg.dagger.coefficient else None
        """Teacher of the DAgger loss. None: the loss is off."""
        # The order of the networks must not change: their random weights depend on it.
        self.critic = MimicNetwork(self._sizes[CRITIC_GROUPS], frames, 1, cfg)
        """Network of the value function."""
        self.cost_critic: MimicNetwork | None = None
        """Network of the value functions of the costs. None: costs are not constrained."""
        self.lagrange: Lagrange | None = None
        """Lagrange multipliers of the costs. None: costs are not constrained."""
        self.calm_envs = 0
        """Number of environments that act without exploration noise. They have indices 0 to
        ``calm_envs`` − 1."""
        num_costs = 0
        networks: dict[str, nn.Module] = {"critic": self.critic}
        if cfg.lagrange.enabled:
            check_number("lagrange.calm_fraction", cfg.lagrange.calm_fraction, 0.0, below=1.0)
            calm_envs = math.ceil(cfg.lagrange.calm_fraction * self._num_envs)
            # At least one environment explores.
            self.calm_envs = min(calm_envs, self._num_envs - 1)
            discount = cfg.gamma * cfg.gae_lambda
            self.lagrange = Lagrange(cost_names, cost_limits, discount, cfg.lagrange, self.device)
            self._parts["lagrange"] = self.lagrange
            num_costs = len(self.lagrange.names)
            self.cost_critic = MimicNetwork(self._sizes[CRITIC_GROUPS], frames, num_costs, cfg)
            networks["cost_critic"] = self.cost_critic
        self.bonuses = self._make_bonuses(env_obs, expert)
        """Reward bonuses that are added to the environment's reward, in this order."""
        for bonus in self.bonuses:
            self._parts[bonus.option] = bonus.network
            self._parts[f"{bonus.option}_optimizer"] = bonus.optimizer
        self._begin(
            "rl", networks, apply_dagger_actions=self.teacher is not None, num_costs=num_costs
        )
        self._time_outs = torch.zeros(
            cfg.steps_per_env, self._num_envs, dtype=torch.bool, device=self.device
        )

        self._final_inputs: list[list[torch.Tensor]] = []
        """Inputs of the critics in the final states of episodes that timed out in this rollout.

        Step after step, and by environment within a step, as boolean indexing orders them.
        """

    def _make_bonuses(self, env_obs: TensorDict, expert: Expert | None) -> list[RewardBonus]:
        cfg = self.cfg
        bonuses: list[RewardBonus] = []
        if cfg.amp.amp_reward_weight:
            if expert is None:
                raise ValueError(
                    f"amp.amp_reward_weight = {cfg.amp.amp_reward_weight} needs an expert, got None"
                )
            bonuses.append(StylePrior(cfg.amp, expert, env_obs, cfg.steps_per_env))
        if cfg.rnd.weight:
            bonuses.append(Novelty(cfg.rnd, cfg.activation, env_obs, cfg.steps_per_env))
        return bonuses

    @torch.no_grad()
    def act(self, obs: TensorDict) -> torch.Tensor:
        """Sample actions from the policy, and store them with values and labels for the update.

        The first ``calm_envs`` environments receive the mean actions.

        Args:
            obs: Observation before the step.

        Returns:
            Actions. Shape: (num_envs, num_actions).
        """
        # The base samples actions for all environments, so that the random stream does not depend
        # on calm_envs.
        actions = super().act(obs)
        distribution = self.actor.distribution
        actions[: self.calm_envs] = distribution.mean[: self.calm_envs]
        transition = self.transition
        seen = self._critic_inputs(obs)
        transition.action_mean, transition.action_sigma = distribution.params
        transition.actions_log_prob = distribution.log_prob(actions)
        transition.values = self.critic(*seen)
        if self.cost_critic is not None:
            transition.cost_values = self.cost_critic(*seen)
        if self.teacher is not None:
            # After the loss has faded out, the storage still requires labels. Nothing reads them,
            # so the teacher need not be evaluated.
            transition.dagger_actions = self.teacher(*seen) if self.dagger_coefficient else actions
        self._acted_on = obs
        return actions

    def _critic_inputs(self, obs: TensorDict) -> list[torch.Tensor]:
        """Return the inputs of the critics, and store them in the transition."""
        seen = inputs(obs, CRITIC_GROUPS)
        observation, reference, mask = seen
        self.transition.critic_observations = observation
        self.transition.critic_reference_observations = reference
        self.transition.critic_reference_observations_mask = mask.squeeze(1) > 0.5
        return seen

    @torch.no_grad()
    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: Mapping[str, Any]
    ) -> None:
        """Store the outcome of a step for the update, and add the bonuses to its rewards.

        Args:
            obs: Observation after the step, of the new episode where one ended.
            rewards: Rewards of the environment. Shape: (num_envs,).
            dones: True where an episode ended. Shape: (num_envs,).
            extras: ``time_outs``, (num_envs,) bool. ``final_obs``, the last observations of ended
                episodes, if any ended. ``costs``, if costs are constrained.

        Raises:
            ValueError: If ``costs`` or ``final_obs`` is needed but missing in ``extras``.
        """
        if "final_obs" not in extras and dones.any():
            raise ValueError(
                "extras must have final_obs, the true last observations, when episodes end"
            )
        if self.lagrange is not None:
            if extras.get("costs") is None:
                raise ValueError(
                    "extras must have costs, (num_envs, K), as lagrange.enabled is on; got none"
                )
            self.transition.cost_rewards = self.lagrange.scaled(extras["costs"])
        step = self.storage.step
        time_outs = extras["time_outs"]
        following = extras.get("final_obs", obs)
        # A bonus or a value must be that of the state that ended the episode, not that of the first
        # state of the next episode.
        if step == 0:
            self._final_inputs = []
        self._time_outs[step] = time_outs
        if time_outs.any():
            final = [part[time_outs] for part in inputs(following, CRITIC_GROUPS)]
            self._final_inputs.append(final)
        for bonus in self.bonuses:
            rewards = bonus.add(step, rewards, self._acted_on, following)
        super().process_env_step(obs, rewards, dones, extras)

    @torch.no_grad()
    def compute_returns(self, obs: TensorDict) -> None:
        """Compute returns and advantages of the rollout, and write them to the storage.

        An episode that timed out is bootstrapped with the value of its final observation. The other
        episodes end with value 0, or with the value of ``obs`` if they continue.

        Args:
            obs: Observation after the rollout.
        """
        # One pass of the critic over the observation after the rollout and all final observations
        # costs less than one pass each.
        seen = []
        for parts in zip(inputs(obs, CRITIC_GROUPS), *self._final_inputs, strict=True):
            seen.append(torch.cat(parts))
        last_values, final_values = self._last_and_final_values(self.critic, seen)
        values: dict[str, Any] = {"last_values": last_values, "final_values": final_values}
        if self.cost_critic is not None:
            last_costs, final_costs = self._last_and_final_values(self.cost_critic, seen)
            values["last_cost_values"] = last_costs
            values["final_cost_values"] = final_costs
        self.storage.compute_returns(
            gamma=self.cfg.gamma, lam=self.cfg.gae_lambda, time_outs=self._time_outs, **values
        )

    def _last_and_final_values(
        self, critic: MimicNetwork, seen: Sequence[torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the values after the rollout, and those of final states of timed-out episodes.

        Shapes: (num_envs, K), and (num_steps, num_envs, K) with 0 where no episode timed out.
        """
        last, finals = critic(*seen).tensor_split([self.storage.num_envs])
        final_values = last.new_zeros(*self._time_outs.shape, last.shape[1])
        final_values[self._time_outs] = finals
        return last, final_values

    @property
    def dagger_coefficient(self) -> float:
        """Weight of the DAgger loss in the current update. It falls linearly with the updates."""
        cfg = self.cfg.dagger
        faded = self.iteration / cfg.decay_iterations if cfg.decay_iterations else 0.0
        return cfg.coefficient * max(0.0, 1.0 - faded)

    def update(self) -> dict[str, float]:
        """Train all networks on the rollout.

        Returns:
            Losses, mean bonuses, mean costs and multipliers by name. Losses are means over
            mini-batches, bonuses over robots and steps.
        """
        # Before the mini-batches, because it changes the advantages that they contain.
        constraints = self._constrain()
        rows: list[dict[str, torch.Tensor]] = []
        for bonus in self.bonuses:
            for mean in bonus.means:
                rows.append({bonus.reward_name: mean})
        for batch in self.storage.mini_batches(self.cfg.mini_batches, self.cfg.epochs):
            loss, terms = self._loss(batch)
            self._descend(loss)
            rows.append(terms)
            for bonus in self.bonuses:
                rows.append(bonus.learn(batch.indices))
        seen = self._stored_critic_inputs()
        self.critic.update_normalizers(*seen)
        if self.cost_critic is not None:
            self.cost_critic.update_normalizers(*seen)
        for bonus in self.bonuses:
            bonus.update_normalizer()
        self._end_update()
        return {**means(rows), **constraints}

    def _stored_critic_inputs(self) -> list[torch.Tensor]:
        if self.cfg.privileged_actor:
            # The actor reads the groups of the critics, which are stored only once.
            return stored_inputs(self.storage)
        storage: Any = self.storage
        return [
            storage.privileged_observations,
            storage.privileged_reference_observations,
            storage.privileged_reference_observations_mask,
        ]

    def _constrain(self) -> dict[str, float]:
        """Update the multipliers, and subtract the costs from the advantages.

        Returns:
            Mean costs and multipliers by name. Empty if costs are not constrained.
        """
        lagrange = self.lagrange
        if lagrange is None:
            return {}
        storage: Any = self.storage
        referenced = storage.reference_observations_mask
        # The limits are for a policy without noise, so only the costs of environments without noise
        # are measured, if there are any. slice(None) selects all environments.
        measured = slice(self.calm_envs or None)
        costs = lagrange.ascend(storage.cost_rewards[:, measured], referenced[:, measured])
        lagrange.combine_(storage.advantages, storage.cost_advantages, referenced)
        # A mean action holds no information on which deviation from the mean is better.
        storage.advantages[:, : self.calm_envs] = 0.0
        return lagrange.report(costs)

    def _loss(self, batch: MiniBatch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Return the loss of a mini-batch, and its terms by name."""
        cfg = self.cfg
        mean = self.actor(*stored_inputs(batch))
        # The divergence is measured before the step of the optimiser, as in rsl_rl.
        kl = self._kl_divergence(batch)
        if cfg.schedule == "adaptive":
            self._adapt_learning_rate(kl.item())
        surrogate = self._surrogate(batch)
        entropy = self.actor.distribution.entropy.mean()
        seen = [
            batch.critic_observations,
            batch.critic_reference_observations,
            batch.critic_reference_observations_mask,
        ]
        value = functional.mse_loss(self.critic(*seen), batch.returns)
        loss = surrogate + cfg.value_loss * value - cfg.entropy * entropy
        terms = {"surrogate": surrogate, "value": value, "entropy": entropy, "kl": kl}
        if batch.cost_returns is not None:
            assert self.cost_critic is not None
            terms["cost_value"] = functional.mse_loss(self.cost_critic(*seen), batch.cost_returns)
            loss = loss + cfg.value_loss * terms["cost_value"]
        if self.dagger_coefficient and batch.dagger_actions is not None:
            terms["dagger"] = functional.mse_loss(mean, batch.dagger_actions)
            loss = loss + self.dagger_coefficient * terms["dagger"]
        return loss, terms

    @torch.no_grad()
    def _kl_divergence(self, batch: MiniBatch) -> torch.Tensor:
        """Return the mean KL divergence between the collecting policy and the current one."""
        distribution = self.actor.distribution
        before = (batch.action_mean, batch.action_sigma)
        return distribution.kl_divergence(before, distribution.params).mean()

    def _surrogate(self, batch: MiniBatch) -> torch.Tensor:
        """Return PPO's clipped surrogate loss (Schulman et al. 2017, eq. 7)."""
        advantages = batch.advantages.squeeze(1)
        log_prob = self.actor.distribution.log_prob(batch.actions)
        # The minimum removes the incentive to move the ratio outside the clipping range.
        ratio = (log_prob - batch.actions_log_prob.squeeze(1)).exp()
        clipped = ratio.clamp(1.0 - self.cfg.clip, 1.0 + self.cfg.clip)
        return -torch.min(advantages * ratio, advantages * clipped).mean()

    def _adapt_learning_rate(self, kl: float) -> None:
        """Lower the learning rate if the KL divergence is too large, raise it if too small."""
        lowest, highest = LEARNING_RATES
        if kl > 2.0 * self.cfg.desired_kl:
            self.learning_rate = max(lowest, self.learning_rate / ADAPTATION)
        elif 0.0 < kl < 0.5 * self.cfg.desired_kl:
            self.learning_rate = min(highest, self.learning_rate * ADAPTATION)
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate
