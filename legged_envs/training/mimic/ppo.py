"""PPO for an actor that follows a reference, with constraints, a teacher and bonuses as far as they are asked for."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from tensordict import TensorDict
from torch.nn import functional

from legged_envs.checks import check_choice, check_number
from legged_envs.storage import MiniBatch
from legged_envs.tasks.mimic import ACTOR_GROUPS, CRITIC_GROUPS
from legged_envs.training.mimic.algorithm import MimicAlgorithm, Teacher, inputs, means, observed
from legged_envs.training.mimic.bonus import Expert, Novelty, RewardBonus, StylePrior
from legged_envs.training.mimic.networks import MimicNetwork
from legged_envs.training.mimic_options import LagrangeCfg, MimicPPOCfg
from legged_envs.wrappers.plumbing.multipliers import PIDMultipliers, relative_excess


class MimicPPO(MimicAlgorithm):
    """PPO (Schulman et al. 2017) with rsl_rl's interface for an actor that follows a reference; :meth:`update` moves
    the normalizers last. Rewards become task_reward_weight · r + amp_reward_weight · style + rnd weight · novelty.
    ``cfg.lagrange`` needs ``cost_names`` and ``cost_limits`` (mean costs per control step), ``cfg.dagger`` a
    ``teacher``, ``cfg.amp`` an ``expert``; ValueError if one is missing or they do not fit together."""

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
        super().__init__(
            env_obs,
            num_actions,
            frames,
            cfg,
            CRITIC_GROUPS if cfg.privileged_actor else ACTOR_GROUPS,
        )
        num_envs = len(env_obs)
        if cfg.dagger.coefficient and teacher is None:
            raise ValueError(
                f"dagger.coefficient = {cfg.dagger.coefficient} needs a teacher, got None"
            )
        self.teacher = teacher if cfg.dagger.coefficient else None
        self.critic = MimicNetwork(self._sizes[CRITIC_GROUPS], frames, 1, cfg)
        self.critics, critics = {"values": self.critic}, {"critic": self.critic}
        """Who predicts which column of the storage: ``values``, and with constraints ``cost_values``."""
        self.lagrange: Lagrange | None = None
        self.calm_envs = num_costs = 0
        """Number of environments, the first ones, that act without noise."""
        if cfg.lagrange.enabled:
            check_number("lagrange.calm_fraction", cfg.lagrange.calm_fraction, 0.0, below=1.0)
            self.calm_envs = min(math.ceil(cfg.lagrange.calm_fraction * num_envs), num_envs - 1)
            lagrange = Lagrange(
                cost_names, cost_limits, cfg.gamma * cfg.gae_lambda, cfg.lagrange, self.device
            )
            self.lagrange = self._parts["lagrange"] = lagrange
            num_costs = len(lagrange.names)
            cost_critic = MimicNetwork(self._sizes[CRITIC_GROUPS], frames, num_costs, cfg)
            critics["cost_critic"] = self.critics["cost_values"] = cost_critic
        self.bonuses: list[RewardBonus] = []
        if cfg.amp.amp_reward_weight:
            if expert is None:
                raise ValueError(
                    f"amp.amp_reward_weight = {cfg.amp.amp_reward_weight} needs an expert, got None"
                )
            self.bonuses.append(StylePrior(cfg.amp, expert, env_obs, cfg.steps_per_env))
        if cfg.rnd.weight:
            self.bonuses.append(Novelty(cfg.rnd, cfg.activation, env_obs, cfg.steps_per_env))
        for bonus in self.bonuses:
            self._parts |= {
                bonus.option: bonus.network,
                f"{bonus.option}_optimizer": bonus.optimizer,
            }
        self._begin(
            "rl", critics, apply_dagger_actions=self.teacher is not None, num_costs=num_costs
        )
        self._time_outs = torch.zeros(
            cfg.steps_per_env, num_envs, dtype=torch.bool, device=self.device
        )
        self._final_inputs: list[list[torch.Tensor]] = []
        """What the critics see of the episodes that timed out in this rollout, in the order of ``_time_outs``."""

    @torch.no_grad()
    def act(self, obs: TensorDict) -> torch.Tensor:
        actions, distribution = super().act(obs), self.actor.distribution
        actions[: self.calm_envs] = distribution.mean[: self.calm_envs]
        transition, seen = self.transition, self._see(obs, CRITIC_GROUPS, "critic_")
        transition.action_mean, transition.action_sigma = distribution.params
        transition.actions_log_prob = distribution.log_prob(actions)
        for column, critic in self.critics.items():
            setattr(transition, column, critic(*seen))
        if self.teacher is not None:
            # Once the loss has faded out nobody reads the label, which the storage asks for all the same.
            transition.dagger_actions = self.teacher(*seen) if self.dagger_coefficient else actions
        self._acted_on = obs
        return actions

    @torch.no_grad()
    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: Mapping[str, Any]
    ) -> None:
        """Keep a step's outcome. ValueError without ``costs`` for constraints, or ``final_obs`` where episodes end."""
        step, time_outs, following = (
            self.storage.step,
            extras["time_outs"],
            extras.get("final_obs", obs),
        )
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
        if step == 0:
            self._final_inputs = []
        self._time_outs[step] = time_outs
        if time_outs.any():
            self._final_inputs.append(
                [part[time_outs] for part in inputs(following, CRITIC_GROUPS)]
            )
        for bonus in self.bonuses:
            rewards = bonus.add(step, rewards, self._acted_on, following)
        super().process_env_step(obs, rewards, dones, extras)

    @torch.no_grad()
    def compute_returns(self, obs: TensorDict) -> None:
        """Write returns and advantages; an episode that timed out goes on with the value of its last observation."""
        seen = [
            torch.cat(parts)
            for parts in zip(inputs(obs, CRITIC_GROUPS), *self._final_inputs, strict=True)
        ]
        arguments: dict[str, Any] = {"gamma": self.cfg.gamma, "lam": self.cfg.gae_lambda}
        for column, critic in self.critics.items():
            last, finals = critic(*seen).tensor_split([self.storage.num_envs])
            final_values = last.new_zeros(*self._time_outs.shape, last.shape[1])
            final_values[self._time_outs] = finals
            arguments |= {f"last_{column}": last, f"final_{column}": final_values}
        self.storage.compute_returns(time_outs=self._time_outs, **arguments)

    @property
    def dagger_coefficient(self) -> float:
        cfg = self.cfg.dagger
        faded = self.iteration / cfg.decay_iterations if cfg.decay_iterations else 0.0
        return cfg.coefficient * max(0.0, 1.0 - faded)

    def update(self) -> dict[str, float]:
        """Learn from the rollout. Returns the means of losses and of what else tells how learning goes."""
        constraints = self._constrain()
        rows = [{bonus.reward_name: mean} for bonus in self.bonuses for mean in bonus.means]
        for batch in self.storage.mini_batches(self.cfg.mini_batches, self.cfg.epochs):
            loss, terms = self._loss(batch)
            self._descend(loss)
            rows.append(terms)
            rows += [bonus.learn(batch.indices) for bonus in self.bonuses]
        seen = observed(self.storage, "" if self.cfg.privileged_actor else "privileged_")
        for critic in self.critics.values():
            critic.update_normalizers(*seen)
        for bonus in self.bonuses:
            bonus.update_normalizer()
        self._end_of_update()
        return means(rows) | constraints

    def _constrain(self) -> dict[str, float]:
        lagrange, storage = self.lagrange, self.storage
        if lagrange is None:
            return {}
        referenced, measured = storage.reference_observations_mask, slice(self.calm_envs or None)
        costs = lagrange.ascend(storage.cost_rewards[:, measured], referenced[:, measured])
        lagrange.combine_(storage.advantages, storage.cost_advantages, referenced)
        storage.advantages[:, : self.calm_envs] = (
            0.0  # actions without noise say nothing about which noise is good
        )
        return lagrange.report(costs)

    def _loss(self, batch: MiniBatch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        cfg, distribution = self.cfg, self.actor.distribution
        mean, seen = self.actor(*observed(batch)), observed(batch, "critic_")
        with torch.no_grad():
            kl = distribution.kl_divergence(
                (batch.action_mean, batch.action_sigma), distribution.params
            ).mean()
        if cfg.schedule == "adaptive":
            self._adapt_learning_rate(kl.item())
        advantages = batch.advantages.squeeze(1)
        ratio = (distribution.log_prob(batch.actions) - batch.actions_log_prob.squeeze(1)).exp()
        clipped = ratio.clamp(1.0 - cfg.clip, 1.0 + cfg.clip)
        surrogate = -torch.min(advantages * ratio, advantages * clipped).mean()
        entropy = distribution.entropy.mean()
        value = functional.mse_loss(self.critic(*seen), batch.returns)
        loss = surrogate + cfg.value_loss * value - cfg.entropy * entropy
        terms = {"surrogate": surrogate, "value": value, "entropy": entropy, "kl": kl}
        if batch.cost_returns is not None:
            terms["cost_value"] = functional.mse_loss(
                self.critics["cost_values"](*seen), batch.cost_returns
            )
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


class Lagrange:
    """A multiplier λ_k ≥ 0 for each of K cost terms, with and without a reference by itself. The storage gets (1 − γλ)
    · cost / limit: as a generalised advantage sums temporal differences with weights that add up to 1 / (1 − γλ), cost
    advantages are mean excesses of cost per control step in units of the limit. ``cfg.costs`` chooses of ``names``,
    whose ``limits`` are mean costs per control step; ``discount`` is γλ. ValueError if a value is invalid."""

    def __init__(
        self,
        names: Sequence[str],
        limits: Sequence[float],
        discount: float,
        cfg: LagrangeCfg,
        device: torch.device,
    ):
        if not limits or len(limits) != len(names) or min(limits) <= 0.0:
            given = f"cost_names = {tuple(names)} and cost_limits = {tuple(limits)}"
            raise ValueError(
                f"lagrange needs a cost name and a positive limit for each cost term, got {given}"
            )
        check_number("gamma · gae_lambda with lagrange", discount, below=1.0)
        for name in cfg.costs:
            check_choice("each of lagrange.costs", name, names)
        self._columns = [k for k, name in enumerate(names) if not cfg.costs or name in cfg.costs]
        self.names = tuple(names[k] for k in self._columns)
        self.limits = torch.tensor(
            [limits[k] for k in self._columns], dtype=torch.float32, device=device
        )
        self.scale = 1.0 - discount
        gains = {
            name: getattr(cfg, name)
            for name in ("integral", "proportional", "derivative", "maximum")
        }
        initial = torch.full((2, len(self.names)), cfg.initial, dtype=torch.float32, device=device)
        self.multipliers = PIDMultipliers(initial, **gains)
        """Without a reference, and with one. Shape of the values: (2, K)."""

    def scaled(self, costs: torch.Tensor) -> torch.Tensor:
        """What the storage gets of the costs of a step. Shapes: (…, all terms) → (…, K)."""
        return costs[..., self._columns] * (self.scale / self.limits)

    def ascend(self, scaled_costs: torch.Tensor, referenced: torch.Tensor) -> torch.Tensor:
        """Let the multipliers follow the :func:`relative_excess` of a rollout's costs. Returns mean costs per step
        without and with a reference (or NaN). Shapes: (num_steps, num_envs, K), (num_steps, num_envs) → (2, K)."""
        fractions = (
            torch.stack([scaled_costs[rows].mean(dim=0) for rows in (~referenced, referenced)])
            / self.scale
        )
        self.multipliers.update(relative_excess(fractions, torch.ones_like(fractions)))
        return fractions * self.limits

    def combine_(
        self, advantages: torch.Tensor, cost_advantages: torch.Tensor, referenced: torch.Tensor
    ) -> None:
        """Write (A − Σ λ_k A^c_k) / (1 + Σ λ_k) to ``advantages`` A, which are standardised. Each A^c_k is centred and
        divided by its standard deviation, with and without a reference by itself, but by no less than 1 − γλ, a step's
        cost at the limit. Shapes: (num_steps, num_envs, 1), (num_steps, num_envs, K), (num_steps, num_envs)."""
        for rows, multipliers in zip(
            (~referenced, referenced), self.multipliers.values, strict=True
        ):
            costs = cost_advantages[rows]
            if not len(costs):
                continue
            std, mean = torch.std_mean(costs, dim=0, correction=0)
            excess = (costs - mean) @ (multipliers / std.clamp(min=self.scale))
            advantages[rows] = (advantages[rows] - excess.unsqueeze(1)) / (1.0 + multipliers.sum())

    def report(self, costs: torch.Tensor) -> dict[str, float]:
        """Mean ``costs`` (2, K) from :meth:`ascend` and the multipliers by name, ``free_…`` without a reference."""
        kinds = ("free_cost", "cost", "free_multiplier", "multiplier")
        names = [f"{kind}/{name}" for kind in kinds for name in self.names]
        values = torch.stack((costs, self.multipliers.values)).flatten().tolist()
        return {
            name: value for name, value in zip(names, values, strict=True) if not math.isnan(value)
        }

    def state_dict(self) -> dict[str, Any]:
        return self.multipliers.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.multipliers.load_state_dict(
            {name: part.to(self.limits.device) for name, part in state.items()}
        )
