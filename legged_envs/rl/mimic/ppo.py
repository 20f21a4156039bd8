"""PPO for an actor that follows a reference, with constraints, a teacher and bonuses as far as they are asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from tensordict import TensorDict
from torch.nn import functional

from legged_envs.rl.mimic.algorithm import MimicAlgorithm, Teacher, inputs, means
from legged_envs.rl.mimic.amp import Expert, StylePrior
from legged_envs.rl.mimic.bonus import RewardBonus
from legged_envs.rl.mimic.lagrange import Lagrange
from legged_envs.rl.mimic.networks import Inputs, MimicNetwork
from legged_envs.rl.mimic.rnd import Novelty
from legged_envs.rl.mimic_config import ACTOR_GROUPS, CRITIC_GROUPS, MimicPPOCfg
from legged_envs.storage import MiniBatch


class MimicPPO(MimicAlgorithm):
    """PPO (Schulman et al. 2017) for an actor that follows a reference, with the interface of rsl_rl's PPO.

    One iteration is ``steps_per_env`` times :meth:`act`, step of the environment, :meth:`process_env_step`; then
    :meth:`compute_returns` and :meth:`update`. The normalizers move once, at the end of an update. The rewards become
    task_reward_weight · r + amp_reward_weight · style + rnd weight · novelty, as far as these are switched on.

    Args:
        env_obs: An observation of all environments, on the device to learn on: see :mod:`legged_envs.rl.mimic`.
        num_actions: Size of the action.
        frames: Frames of each reference window; critic's and actor's windows have the same number.
        cfg: What to do.
        cost_names: Names of the cost terms, for the losses.
        cost_limits: What each may cost per control step on average; needed if ``cfg.lagrange`` is on.
        teacher: Labels every visited state; needed if ``cfg.dagger`` is on.
        expert: Draws so many pairs of successive states of motions, in the terms of the group ``cfg.amp.group``: see
            :meth:`legged_envs.rl.mimic.amp.ExpertTransitions.sample`. Needed if ``cfg.amp`` is on.

    Raises:
        ValueError: If a group or an argument that ``cfg`` needs is missing, or arguments do not fit together.
    """

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
        num_envs = len(env_obs)
        self.cfg = cfg
        if cfg.dagger.coefficient and teacher is None:
            raise ValueError(f"dagger.coefficient = {cfg.dagger.coefficient} needs a teacher, got None")
        self.teacher = teacher if cfg.dagger.coefficient else None
        self.lagrange: Lagrange | None = None
        self.critic = self._make_critic("critic", frames, 1)
        self.critics = {"values": self.critic}
        """Who predicts which column of the storage: ``values``, and with constraints ``cost_values``."""
        if cfg.lagrange.enabled:
            if not 0.0 <= cfg.lagrange.calm_fraction < 1.0:
                raise ValueError(f"lagrange.calm_fraction must be in [0, 1), got {cfg.lagrange.calm_fraction}")
            self.calm_envs = min(math.ceil(cfg.lagrange.calm_fraction * num_envs), num_envs - 1)
            lagrange = Lagrange(cost_names, cost_limits, cfg.gamma * cfg.gae_lambda, cfg.lagrange, self.device)
            self.lagrange = self._add("lagrange", lagrange)
            self.critics["cost_values"] = self._make_critic("cost_critic", frames, len(lagrange.names))
        self._make_optimizer(self.actor, *self.critics.values())
        self.bonuses: list[RewardBonus] = []
        if cfg.amp.amp_reward_weight:
            if expert is None:
                raise ValueError(f"amp.amp_reward_weight = {cfg.amp.amp_reward_weight} needs an expert, got None")
            self.bonuses.append(StylePrior(cfg.amp, expert, env_obs, cfg.steps_per_env))
        if cfg.rnd.weight:
            self.bonuses.append(Novelty(cfg.rnd, cfg.activation, env_obs, cfg.steps_per_env))
        for bonus in self.bonuses:
            self._parts |= {bonus.option: bonus.network, f"{bonus.option}_optimizer": bonus.optimizer}
        self._make_storage(
            "rl",
            None if cfg.privileged_actor else self._sizes[CRITIC_GROUPS],
            apply_dagger_actions=self.teacher is not None,
            num_costs=0 if self.lagrange is None else len(self.lagrange.names),
        )
        self._time_outs = torch.zeros(cfg.steps_per_env, num_envs, dtype=torch.bool, device=self.device)
        self._final_inputs: list[Inputs] = []
        """What the critics see of the episodes that timed out in this rollout, in the order of ``_time_outs``."""
        self._bonus_means: list[dict[str, torch.Tensor]] = []
        """The means of the bonuses at each step of this rollout."""

    def _make_critic(self, name: str, frames: int, outputs: int) -> MimicNetwork:
        return self._add(name, MimicNetwork(self._sizes[CRITIC_GROUPS], frames, outputs, self.cfg).to(self.device))

    # --- rollout ------------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def act(self, obs: TensorDict) -> torch.Tensor:
        """Draw actions and keep what belongs to them. Returns the actions, (num_envs, num_actions)."""
        actions = super().act(obs)
        transition, distribution, seen = self.transition, self.actor.distribution, inputs(obs, CRITIC_GROUPS)
        transition.critic_observations, transition.critic_reference_observations = seen[:2]
        transition.critic_reference_observations_mask = seen[2].squeeze(1) > 0.5
        transition.action_mean, transition.action_sigma = distribution.params
        transition.actions_log_prob = distribution.log_prob(actions)
        for column, critic in self.critics.items():
            setattr(transition, column, critic(*seen))
        if self.teacher is not None:
            # Once the loss has faded out nobody reads the label, which the storage asks for all the same.
            transition.dagger_actions = self.teacher(*seen) if self.dagger_coefficient else actions
        for bonus in self.bonuses:
            bonus.observe(self.storage.step, obs)
        return actions

    @torch.no_grad()
    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: Mapping[str, Any]
    ) -> None:
        """Keep what the step of the environment led to.

        Args:
            obs: The observation after it, of the next episode where one ended.
            rewards: Shape: (num_envs,).
            dones: Where an episode ended, bool. Shape: (num_envs,).
            extras: ``time_outs``, ``costs`` with constraints, and ``final_obs`` if an episode ended.

        Raises:
            ValueError: If ``final_obs`` or ``costs`` is missing.
        """
        step, time_outs, following = self.storage.step, extras["time_outs"], extras.get("final_obs")
        if following is None:
            if dones.any():
                raise ValueError("extras must have final_obs, the true last observations, when episodes end")
            following = obs
        if self.lagrange is not None:
            if extras.get("costs") is None:
                raise ValueError("extras must have costs, (num_envs, K), as lagrange.enabled is on; got none")
            self.transition.cost_rewards = self.lagrange.scaled(extras["costs"])
        if step == 0:
            self._final_inputs, self._bonus_means = [], []
        self._time_outs[step] = time_outs
        if time_outs.any():
            observation, reference, mask = (part[time_outs] for part in inputs(following, CRITIC_GROUPS))
            self._final_inputs.append((observation, reference, mask))
        for bonus in self.bonuses:
            rewards, mean = bonus.add(step, rewards, following)
            self._bonus_means.append(mean)
        self._store(rewards, dones)

    @torch.no_grad()
    def compute_returns(self, obs: TensorDict) -> None:
        """Write returns and advantages; ``obs`` is the observation after the last step.

        An episode that timed out goes on with the value of its true last observation.
        """
        seen = [torch.cat(parts) for parts in zip(inputs(obs, CRITIC_GROUPS), *self._final_inputs, strict=True)]
        arguments: dict[str, Any] = {}
        for column, critic in self.critics.items():
            last, finals = critic(*seen).tensor_split([self.storage.num_envs])
            final_values = last.new_zeros(*self._time_outs.shape, last.shape[1])
            final_values[self._time_outs] = finals
            arguments |= {f"last_{column}": last, f"final_{column}": final_values}
        self.storage.compute_returns(
            gamma=self.cfg.gamma, lam=self.cfg.gae_lambda, time_outs=self._time_outs, **arguments
        )

    # --- learning -----------------------------------------------------------------------------------------------------

    @property
    def dagger_coefficient(self) -> float:
        """Weight of the DAgger loss in this iteration."""
        cfg = self.cfg.dagger
        faded = self.iteration / cfg.decay_iterations if cfg.decay_iterations else 0.0
        return cfg.coefficient * max(0.0, 1.0 - faded)

    def update(self) -> dict[str, float]:
        """Learn from the rollout. Returns the means of losses and of what else tells how learning goes.

        With constraints these are ``cost/<name>``, the mean cost per control step, and ``multiplier/<name>`` as well,
        and the same with ``free_`` before it for the steps without a reference.
        """
        constraints = self._constrain()
        rows = list(self._bonus_means)
        for batch in self.storage.mini_batches(self.cfg.mini_batches, self.cfg.epochs):
            loss, terms = self._loss(batch)
            self._descend(loss)
            rows.append(terms)
            rows += [bonus.learn(batch.indices) for bonus in self.bonuses]
        self._update_normalizers()
        self._end_of_update()
        return means(rows) | constraints

    def _constrain(self) -> dict[str, float]:
        """Move the multipliers, put the costs into the advantages. Returns mean costs and multipliers."""
        lagrange, storage = self.lagrange, self.storage
        if lagrange is None:
            return {}
        referenced = storage.reference_observations_mask
        assert storage.cost_rewards is not None and storage.cost_advantages is not None and referenced is not None
        measured = slice(self.calm_envs or None)
        costs = lagrange.ascend(storage.cost_rewards[:, measured], referenced[:, measured])
        lagrange.combine_(storage.advantages, storage.cost_advantages, referenced)
        storage.advantages[:, : self.calm_envs] = 0.0  # actions without noise say nothing about which noise is good
        return lagrange.report(costs)

    def _loss(self, batch: MiniBatch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Clipped surrogate, squared errors of the critics, entropy, and DAgger's squared error: the sum and each."""
        cfg, distribution = self.cfg, self.actor.distribution
        mean = self.actor(batch.observations, batch.reference_observations, batch.reference_observations_mask)
        with torch.no_grad():
            kl = distribution.kl_divergence((batch.action_mean, batch.action_sigma), distribution.params).mean()
        if cfg.schedule == "adaptive":
            self._adapt_learning_rate(kl.item())
        advantages = batch.advantages.squeeze(1)
        ratio = (distribution.log_prob(batch.actions) - batch.actions_log_prob.squeeze(1)).exp()
        clipped = ratio.clamp(1.0 - cfg.clip, 1.0 + cfg.clip)
        surrogate = -torch.min(advantages * ratio, advantages * clipped).mean()
        entropy = distribution.entropy.mean()
        seen = batch.critic_observations, batch.critic_reference_observations, batch.critic_reference_observations_mask
        value = functional.mse_loss(self.critic(*seen), batch.returns)
        loss = surrogate + cfg.value_loss * value - cfg.entropy * entropy
        terms = {"surrogate": surrogate, "value": value, "entropy": entropy, "kl": kl}
        if batch.cost_returns is not None:
            terms["cost_value"] = functional.mse_loss(self.critics["cost_values"](*seen), batch.cost_returns)
            loss = loss + cfg.value_loss * terms["cost_value"]
        if self.dagger_coefficient and batch.dagger_actions is not None:
            terms["dagger"] = functional.mse_loss(mean, batch.dagger_actions)
            loss = loss + self.dagger_coefficient * terms["dagger"]
        return loss, terms

    def _adapt_learning_rate(self, kl: float) -> None:
        """As rsl_rl: from 1e-5 to 1e-2."""
        if kl > 2.0 * self.cfg.desired_kl:
            self.learning_rate = max(1e-5, self.learning_rate / 1.5)
        elif 0.0 < kl < 0.5 * self.cfg.desired_kl:
            self.learning_rate = min(1e-2, self.learning_rate * 1.5)
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate

    @torch.no_grad()
    def _update_normalizers(self) -> None:
        """Take the rollout into the running statistics of every network."""
        seen = self._seen()
        self.actor.network.update_normalizers(*seen)
        for critic in self.critics.values():
            critic.update_normalizers(*(seen if self.cfg.privileged_actor else self._seen("privileged_")))
        for bonus in self.bonuses:
            bonus.update_normalizer()
