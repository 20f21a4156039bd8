"""PPO over the rollout buffer, for every task. Parts add rewards, constraints and losses."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from tensordict import TensorDict

from legged_envs.storage import MiniBatch, RolloutStorageMM
from legged_envs.training import processes
from legged_envs.training.learner.constraint_methods.method import Sample, clipped_surrogate
from legged_envs.training.learner.constraints import CostPart
from legged_envs.training.learner.inputs import Inputs
from legged_envs.training.learner.learner import Learner, means
from legged_envs.training.learner.networks import Network
from legged_envs.training.learner.part import Part, Pass, Step
from legged_envs.training.learner.settings import PPOSettings
from legged_envs.training.learner.symmetry import restore_symmetry

LEARNING_RATES = (1e-5, 1e-2)
"""Smallest and largest learning rate of the adaptive schedule, as in rsl_rl."""

ADAPTATION = 1.5
"""Factor by which the adaptive schedule divides or multiplies the learning rate, as in rsl_rl."""


class PPO(Learner):
    """Proximal policy optimization (Schulman et al. 2017) for an actor and critic of any inputs.

    Args:
        observation: Example observation of all environments, on the device to learn on.
        actor: The policy.
        critic: Network of the value function.
        actor_inputs: Inputs of the actor.
        critic_inputs: Inputs of the critics.
        cfg: Options of the algorithm.
        policy_groups: Observation groups that the policy reads once it is trained. None: the inputs
            of the actor.
        parts: What joins the algorithm, in the order in which it is called.
        constraints: Constraints on costs, which join before ``parts``. None: there are none.
        cost_critic: Network of the value function of each constrained cost. Required with
            ``constraints`` that have ``num_costs``.
    """

    def __init__(
        self,
        observation: TensorDict,
        actor: Any,
        critic: Any,
        actor_inputs: Inputs,
        critic_inputs: Inputs,
        cfg: PPOSettings,
        *,
        policy_groups: Sequence[str] | None = None,
        parts: Sequence[Part] = (),
        constraints: CostPart | None = None,
        cost_critic: Any = None,
    ):
        self.cfg = cfg
        """Numbers of the algorithm."""
        self.critic = critic
        """Network of the value function."""
        self.cost_critic = cost_critic
        """Network of the value functions of the costs. None: costs have no values."""
        self.constraints = constraints
        """Constraints on costs. None: there are none."""
        self.critic_inputs = critic_inputs
        """Inputs of the critics."""
        self.gamma = cfg.gamma
        """Discount factor per control step. The trainer changes it during the training."""
        num_costs = 0
        if constraints is not None:
            num_costs = constraints.num_costs
            parts = (constraints, *parts)
        networks = {"actor": actor, "critic": critic}
        if cost_critic is not None:
            # Both critics read the same, so that it is normalized once for both.
            cost_critic.share_normalizers(critic)
            networks["cost_critic"] = cost_critic
        keeps_labels = any(part.labels_actions for part in parts)
        storage = _make_storage(
            observation,
            actor.num_actions,
            actor_inputs,
            critic_inputs,
            cfg,
            num_costs,
            keeps_labels,
        )
        super().__init__(
            networks, actor_inputs, storage, cfg.learning_rate, cfg.max_grad_norm, parts
        )
        if policy_groups is not None:
            self.groups = tuple(policy_groups)
        self._time_outs = torch.zeros(
            cfg.steps_per_env, storage.num_envs, dtype=torch.bool, device=storage.device
        )

        self._final_inputs: list[list[torch.Tensor]] = []
        """Arguments of the critics in the final states of episodes that timed out in this rollout.

        Step after step, and by environment within a step, as boolean indexing orders them.
        """
        self._before: TensorDict | None = None

    @property
    def calm_envs(self) -> int:
        """Number of environments that act without exploration noise, from index 0."""
        return 0 if self.constraints is None else self.constraints.calm_envs

    @torch.no_grad()
    def act(self, obs: TensorDict) -> torch.Tensor:
        """Sample actions from the policy, and store them with their values for the update.

        The first ``calm_envs`` environments receive the mean actions.

        Args:
            obs: Observation before the step.

        Returns:
            Actions. Shape: (num_envs, num_actions).
        """
        seen = self.actor_inputs.read(obs)
        self.actor(*seen)
        distribution = self.actor.distribution
        # Sampled for all environments, so that the random stream does not depend on calm_envs.
        actions = processes.sample(distribution)
        actions[: self.calm_envs] = distribution.mean[: self.calm_envs]
        transition = self.transition
        self.actor_inputs.keep(seen, transition, critic=False)
        transition.actions = actions
        transition.action_mean, transition.action_sigma = distribution.params
        transition.actions_log_prob = distribution.log_prob(actions)
        judged = self.critic_inputs.read(obs)
        self.critic_inputs.keep(judged, transition, critic=True)
        normalized = self.critic.normalize(*judged)
        transition.values = self.critic.evaluate(*normalized)
        if self.cost_critic is not None:
            transition.cost_values = self.cost_critic.evaluate(*normalized)
        self._before = obs
        return actions

    @torch.no_grad()
    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: Mapping[str, Any]
    ) -> None:
        """Store the outcome of a step for the update, with what the parts add to it.

        Args:
            obs: Observation after the step, of the new episode where one ended.
            rewards: Rewards of the environment. Shape: (num_envs,).
            dones: True where an episode ended. Shape: (num_envs,).
            extras: ``time_outs``, (num_envs,) bool. ``final_obs``, the last observations of ended
                episodes, if any ended. ``costs``, if a part reads them.

        Raises:
            ValueError: If ``final_obs`` is missing in ``extras`` although an episode ended.
        """
        if "final_obs" not in extras and dones.any():
            raise ValueError(
                "extras must have final_obs, the true last observations, when episodes end"
            )
        index = self.storage.step
        following = extras.get("final_obs", obs)
        time_outs = extras["time_outs"]
        if index == 0:
            self._final_inputs = []
        self._time_outs[index] = time_outs
        if time_outs.any():
            # The value must belong to the state that ended the episode, not to the first state of
            # the next one.
            final = [part[time_outs] for part in self.critic_inputs.read(following)]
            self._final_inputs.append(final)
        assert self._before is not None, "act() comes before process_env_step()"
        step = Step(
            index=index,
            iteration=self.iteration,
            before=self._before,
            after=following,
            transition=self.transition,
            extras=extras,
            dones=dones,
        )
        for part in self.parts:
            rewards = part.collect(step, rewards)
        self.transition.rewards = rewards
        self.transition.dones = dones
        self.storage.add_transitions(self.transition)
        self.transition.clear()

    @torch.no_grad()
    def compute_returns(self, obs: TensorDict) -> None:
        """Compute returns and advantages of the rollout, and write them to the storage.

        What follows the last step of an episode in the rollout is worth the value of its final
        observation if the episode timed out, 0 if it was terminated, and the value of ``obs`` if it
        continues.

        Args:
            obs: Observation after the last step of the rollout.
        """
        # One pass of the critic over the observation after the rollout and all final observations
        # costs less than one pass each.
        seen = []
        for tensors in zip(self.critic_inputs.read(obs), *self._final_inputs, strict=True):
            seen.append(torch.cat(tensors))
        seen = self.critic.normalize(*seen)
        last_values, final_values = self._last_and_final_values(self.critic, seen)
        values: dict[str, Any] = {"last_values": last_values, "final_values": final_values}
        if self.cost_critic is not None:
            last_costs, final_costs = self._last_and_final_values(self.cost_critic, seen)
            values["last_cost_values"] = last_costs
            values["final_cost_values"] = final_costs
        is_alone = processes.count() == 1
        self.storage.compute_returns(
            gamma=self.gamma,
            lam=self.cfg.gae_lambda,
            normalize_advantage=is_alone,
            time_outs=self._time_outs,
            continuation=None if self.constraints is None else self.constraints.continuation(),
            **values,
        )
        if not is_alone:
            # Mean and deviation of the robots of all processes.
            processes.normalize_(self.storage.advantages)

    def _last_and_final_values(
        self, critic: Any, seen: Sequence[torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the values after the rollout, and the values of final states of timed-out
        episodes.

        Args:
            critic: Network of the values.
            seen: Normalized inputs of these states, those after the rollout first.

        Returns:
            Shapes: (num_envs, K), and (num_steps, num_envs, K) with 0 where no episode timed out.
        """
        last, finals = critic.evaluate(*seen).tensor_split([self.storage.num_envs])
        final_values = last.new_zeros(*self._time_outs.shape, last.shape[1])
        final_values[self._time_outs] = finals
        return last, final_values

    def update(self) -> dict[str, float]:
        """Train all networks on the rollout.

        Returns:
            Losses and what the parts report, by name. Losses are means over mini-batches.
        """
        # Drawn once for all passes, so that batches are gathered and normalized only once.
        batches = self._draw()
        report: dict[str, float] = {}
        for part in self.parts:
            report.update(part.prepare(self.storage, batches))
        prepared = [self._normalized(batch) for batch in batches]
        rows: list[dict[str, torch.Tensor]] = []
        for epoch in range(self.cfg.epochs):
            for batch, (actor_seen, critic_seen) in zip(batches, prepared, strict=True):
                loss, terms = self._loss(batch, actor_seen, critic_seen, epoch)
                if batch.cost_returns is not None:
                    terms["cost_value"] = self._cost_value_loss(batch, critic_seen, epoch)
                    loss = loss + self.cfg.value_loss * terms["cost_value"]
                self._descend(loss)
                rows.append(terms)
        self._restore_symmetry()
        self._update_normalizers()
        self.storage.clear()
        self.iteration += 1
        return {**means(rows), **report}

    def _draw(self) -> list[MiniBatch]:
        """Return the mini-batches of one pass over the rollout."""
        return list(self.storage.mini_batches(self.cfg.mini_batches, 1))

    def _normalized(self, batch: MiniBatch) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Return the normalized arguments of the actor and of the critic."""
        actor_seen = self.actor.normalize(*self.actor_inputs.stored(batch, critic=False))
        critic_seen = self.critic.normalize(*self.critic_inputs.stored(batch, critic=True))
        return actor_seen, critic_seen

    def _loss(
        self,
        batch: MiniBatch,
        actor_seen: list[torch.Tensor],
        critic_seen: list[torch.Tensor],
        epoch: int = 0,
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Return the loss of a mini-batch in a pass over the rollout, and its terms by name."""
        mean = self.actor.evaluate(*actor_seen)
        # The divergence is measured before the step of the optimizer, as in rsl_rl.
        kl = self._kl_divergence(batch)
        if self.cfg.schedule == "adaptive":
            self._adapt_learning_rate(processes.average(kl).item())
        surrogate = self._surrogate(batch)
        entropy = self.actor.distribution.entropy.mean()
        value = self._value_loss(self.critic.evaluate(*critic_seen), batch.values, batch.returns)
        loss = surrogate + self.cfg.value_loss * value - self.cfg.entropy * entropy
        terms = {"surrogate": surrogate, "value": value, "entropy": entropy, "kl": kl}
        done = Pass(self.iteration, epoch, batch, actor_seen, mean)
        for part in self.parts:
            extra, numbers = part.learn(done)
            if extra is not None:
                loss = loss + extra
            terms.update(numbers)
        return loss, terms

    @torch.no_grad()
    def _kl_divergence(self, batch: MiniBatch) -> torch.Tensor:
        """Return the mean KL divergence between the collecting policy and the present one."""
        distribution = self.actor.distribution
        before = (batch.action_mean, batch.action_sigma)
        return distribution.kl_divergence(before, distribution.params).mean()

    def _surrogate(self, batch: MiniBatch) -> torch.Tensor:
        """Return the loss of the policy: PPO's loss, or the loss of the constraint method."""
        advantages = batch.advantages.squeeze(1)
        log_prob = self.actor.distribution.log_prob(batch.actions)
        ratio = (log_prob - batch.actions_log_prob.squeeze(1)).exp()
        constraints = self.constraints
        cost_advantages = batch.cost_advantages
        if cost_advantages is None:
            cost_advantages = ratio.new_zeros(len(ratio), 0)
        kl = None
        if constraints is not None and constraints.needs_kl:
            distribution = self.actor.distribution
            before = (batch.action_mean, batch.action_sigma)
            kl = distribution.kl_divergence(distribution.params, before)
        sample = Sample(
            ratio=ratio,
            advantages=advantages,
            cost_advantages=cost_advantages,
            clip=self.cfg.clip,
            kl=kl,
        )
        if constraints is None:
            return clipped_surrogate(sample)
        return constraints.policy_loss(sample)

    def _value_loss(
        self, values: torch.Tensor, before: torch.Tensor, returns: torch.Tensor
    ) -> torch.Tensor:
        """Return the mean squared error of the value function, clipped if the options require
        it."""
        error = (values - returns).square()
        if not self.cfg.clip_value:
            return error.mean()
        # rsl_rl's: a value counts only within ± clip of the one during the rollout.
        change = (values - before).clamp(-self.cfg.clip, self.cfg.clip)
        clipped = (before + change - returns).square()
        return torch.max(error, clipped).mean()

    def _cost_value_loss(
        self, batch: MiniBatch, critic_seen: list[torch.Tensor], epoch: int
    ) -> torch.Tensor:
        """Return the mean squared error of the values of the costs at every n-th control step."""
        assert batch.cost_returns is not None
        returns = batch.cost_returns
        stride = min(self.cfg.cost_stride, self.cfg.steps_per_env)
        if stride > 1:
            # Each pass has other steps. They are the same in each of several processes.
            steps = batch.indices // self.storage.num_envs
            rows = (steps % stride == epoch % stride).nonzero().squeeze(1)
            critic_seen = [part[rows] for part in critic_seen]
            returns = returns[rows]
        errors = (self.cost_critic.evaluate(*critic_seen) - returns).square()
        # A small mini-batch may have no row of these steps.
        return errors.sum() / max(errors.numel(), 1)

    def _adapt_learning_rate(self, kl: float) -> None:
        """Lower the learning rate if the KL divergence is too large, raise it if too small."""
        lowest, highest = LEARNING_RATES
        if kl > 2.0 * self.cfg.desired_kl:
            self.learning_rate = max(lowest, self.learning_rate / ADAPTATION)
        elif 0.0 < kl < 0.5 * self.cfg.desired_kl:
            self.learning_rate = min(highest, self.learning_rate * ADAPTATION)
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate

    def _restore_symmetry(self) -> None:
        """Remove rounding errors from networks that treat left and right equally."""
        for network in self._networks.values():
            if isinstance(network, Network) and network.images is not None:
                restore_symmetry(network)

    def _update_normalizers(self) -> None:
        # The running statistics change last, so that the update normalizes the rollout exactly as
        # it was normalized when the actions were drawn.
        self.actor.update_normalizers(*self.actor_inputs.rollout(self.storage, critic=False))
        seen = self.critic_inputs.rollout(self.storage, critic=True)
        self.critic.update_normalizers(*seen)


def _make_storage(
    observation: TensorDict,
    num_actions: int,
    actor: Inputs,
    critic: Inputs,
    cfg: PPOSettings,
    num_costs: int,
    keeps_labels: bool,
) -> RolloutStorageMM:
    """Make the rollout buffer for what actor and critic read."""
    # If the critic reads what the actor reads, it is stored once.
    sees_more = critic.names != actor.names
    critic_shape = None
    critic_window_shape = None
    if sees_more:
        critic_shape = (sum(critic.sizes),)
        if critic.reference is not None:
            critic_window_shape = (critic.reference_size,)
    return RolloutStorageMM(
        "rl",
        observation.batch_size[0],
        cfg.steps_per_env,
        obs_shape=(sum(actor.sizes),),
        ref_obs_shape=None if actor.reference is None else (actor.reference_size,),
        privileged_obs_shape=critic_shape,
        privileged_ref_obs_shape=critic_window_shape,
        actions_shape=(num_actions,),
        apply_dagger_actions=keeps_labels,
        device=observation[actor.groups[0]].device,
        num_costs=num_costs,
    )
