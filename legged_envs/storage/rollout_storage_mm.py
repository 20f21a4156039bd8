"""The rollout buffer of motion-mimic PPO: steps of every environment, and batches of steps."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from legged_envs.checks import check_number, whole_number
from legged_envs.state import State
from legged_envs.storage.amp import AmpCfg, AmpExtractors
from legged_envs.storage.batches import RolloutBatches
from legged_envs.storage.buffers import RolloutBuffers
from legged_envs.storage.fields import TRANSITION_BUFFERS, Shape, fitting, is_like
from legged_envs.storage.gae import Returns, checked_time_outs
from legged_envs.storage.rows import masked_row
from legged_envs.storage.transition import Items, MiniBatch
from legged_envs.storage.transition import Transition as _Transition


class RolloutStorageMM(RolloutBuffers):
    """A rollout of every environment, with reference motions and costs.

    A training fills the storage by :meth:`add_transitions`, calls :meth:`compute_returns`, learns
    from :meth:`mini_batches`, and starts again with :meth:`clear`. In distillation the storage
    keeps the teacher's actions for :meth:`generator`.

    Nothing is cast, moved or broadcast: a field that does not fit raises an error, and the storage
    stays as it was.

    Every field of a :class:`Transition` has a buffer, an attribute with the same name except for
    ``mu`` (``action_mean``), ``sigma`` (``action_sigma``) and ``privileged_…`` (``critic_…``). See
    :class:`~legged_envs.storage.buffers.RolloutBuffers`.

    Args:
        training_type: ``"rl"`` or ``"distillation"``.
        num_envs: Number of environments.
        num_transitions_per_env: Steps of a rollout.
        obs_shape: Shape of the actor's observations of one environment.
        ref_obs_shape: Shape of the actor's reference observations; None or [None] without them.
        privileged_obs_shape: Shape of the observations of critic or teacher; None or [None] if
            critic and teacher see the actor's observations.
        privileged_ref_obs_shape: Shape of the reference observations of critic or teacher, kept
            only if the actor has one too; None or [None]: critics see the actor's, teachers none.
        actions_shape: Shape of the actions of one environment.
        apply_dagger_actions: True to keep the actions of a DAgger network.
        rnd_state_shape: Shape of the input of random network distillation; None without it.
        amp_cfg: Configuration of an adversarial motion prior, which adds previous AMP states to
            batches, see :class:`~legged_envs.storage.amp.AmpExtractors`. ``torch.save`` saves the
            configuration, so its functions must be importable.
        device: Device of the buffers.
        num_costs: Number of cost terms, each with a critic.

    Raises:
        ValueError: If an argument is out of range or has no meaning.
        TypeError: If an argument has the wrong type.
    """

    Transition = _Transition
    """One step of every environment."""

    def __init__(
        self,
        training_type: str,
        num_envs: int,
        num_transitions_per_env: int,
        obs_shape: Shape,
        ref_obs_shape: Shape,
        privileged_obs_shape: Shape,
        privileged_ref_obs_shape: Shape,
        actions_shape: Shape,
        apply_dagger_actions: bool = False,
        rnd_state_shape: Shape = None,
        amp_cfg: AmpCfg | None = None,
        device: str | torch.device = "cpu",
        num_costs: int = 0,
    ):
        super().__init__(
            training_type=training_type,
            num_envs=num_envs,
            num_transitions_per_env=num_transitions_per_env,
            obs_shape=obs_shape,
            ref_obs_shape=ref_obs_shape,
            privileged_obs_shape=privileged_obs_shape,
            privileged_ref_obs_shape=privileged_ref_obs_shape,
            actions_shape=actions_shape,
            apply_dagger_actions=apply_dagger_actions,
            rnd_state_shape=rnd_state_shape,
            amp_cfg=amp_cfg,
            device=device,
            num_costs=num_costs,
        )
        self._amp: AmpExtractors | None = None
        if amp_cfg:
            self._amp = AmpExtractors(amp_cfg, with_reference=self.ref_obs_shape is not None)
        self._kept_fields: list[tuple[str, str]] = []
        """Fields of a transition that are kept, and the names of their buffers."""
        for name, buffer_name in TRANSITION_BUFFERS.items():
            if self._buffer(buffer_name) is not None:
                self._kept_fields.append((name, buffer_name))
        self._stale_returns = self._returns_version()
        """Result of :meth:`_returns_version` while the returns do not belong to this rollout."""

    def _describe(self) -> str:
        progress = f"step {self.step} of {self.num_transitions_per_env}"
        return f"{self.training_type!r}, num_envs={self.num_envs}, {progress}"

    def add_transitions(self, transition: _Transition) -> None:
        """Copy one step of all environments into the next row of the buffers.

        Args:
            transition: The step.

        Raises:
            OverflowError: If the rollout is full.
            ValueError: If a field is missing, or has the wrong shape or device.
            TypeError: If a field has the wrong dtype.
        """
        step = self.step
        if step >= self.num_transitions_per_env:
            raise OverflowError(
                f"the storage is full: num_transitions_per_env = {self.num_transitions_per_env} "
                "steps are there; call clear()"
            )
        rows: list[torch.Tensor] = []
        tensors: list[torch.Tensor] = []
        for name, buffer_name in self._kept_fields:
            tensor = getattr(transition, name)
            row = self._rows_of(buffer_name)[step]
            # Most tensors fit as they are; the full check, which explains, takes several times as
            # long.
            if not is_like(tensor, row):
                tensor = fitting(f"transition.{name}", tensor, row).detach()
            rows.append(row)
            tensors.append(tensor)
        # Everything is checked before anything is copied: an error leaves the storage as it was.
        for row, tensor in self._hidden.copies(step, transition.hidden_states):
            rows.append(row)
            tensors.append(tensor)
        # One call for all: its checks are paid once, and on a GPU it needs few kernels.
        torch._foreach_copy_(rows, tensors)
        self.step += 1

    def clear(self) -> None:
        """Start a new rollout."""
        self.step = 0
        # Other code may write returns too; a new version of the buffer shows that it has.
        self._stale_returns = self._returns_version()

    def _returns_version(self) -> tuple[torch.Tensor | None, int]:
        """Return the buffer of the returns, and torch's count of how often it was written.

        The count is -1 for inference tensors, which torch does not count.
        """
        if self.training_type != "rl":
            return None, -1
        if self.returns.is_inference():
            return self.returns, -1
        return self.returns, self.returns._version

    @property
    def has_returns(self) -> bool:
        """True if ``returns`` were written in this rollout, by this storage or by other code."""
        buffer, version = self._returns_version()
        stale_buffer, stale_version = self._stale_returns
        return buffer is not stale_buffer or version != stale_version

    @torch.no_grad()
    def compute_returns(
        self,
        last_values: torch.Tensor,
        gamma: float,
        lam: float,
        normalize_advantage: bool = True,
        *,
        time_outs: torch.Tensor | None = None,
        final_values: torch.Tensor | None = None,
        last_cost_values: torch.Tensor | None = None,
        final_cost_values: torch.Tensor | None = None,
        cost_gamma: float | None = None,
        cost_lam: float | None = None,
        normalize_cost_advantage: bool = False,
        continuation: torch.Tensor | None = None,
    ) -> None:
        """Write ``returns`` and ``advantages`` (generalized advantage estimates), also of costs.

        A terminal done ends the return. After a time-out the return continues with the value of the
        episode's true last observation. Without ``time_outs`` every done is terminal.

        Args:
            last_values: Values after the last step. Shape: (num_envs,) or (num_envs, 1).
            gamma: Discount γ per step.
            lam: λ of the estimator: 0 for one-step differences, 1 for whole returns.
            normalize_advantage: True to bring advantages to mean 0 and standard deviation 1.
            time_outs: True where a done is a time-out.
                Shape: (num_transitions_per_env, num_envs) or (…, 1), bool.
            final_values: Values of the true last observations of time-outs; other rows are not
                read. Shape: (num_transitions_per_env, num_envs) or (…, 1).
            last_cost_values: Cost values after the last step. Shape: (num_envs, num_costs).
            final_cost_values: Cost values of the true last observations of time-outs.
                Shape: (num_transitions_per_env, num_envs, num_costs).
            cost_gamma: Discount of costs; None is ``gamma``.
            cost_lam: λ of costs; None is ``lam``.
            normalize_cost_advantage: True to normalize each column of cost advantages.
            continuation: Factor on all rewards after a step; None is 1. Shape: as ``time_outs``.

        Raises:
            RuntimeError: If the rollout is not full.
            ValueError: If a value is missing, out of range, not finite or of another shape or
                device, or a time-out is where no episode ended.
            TypeError: If a dtype differs.
        """
        self._require("compute_returns", "rl")
        cost_gamma = gamma if cost_gamma is None else cost_gamma
        cost_lam = lam if cost_lam is None else cost_lam
        factors = {"gamma": gamma, "lam": lam, "cost_gamma": cost_gamma, "cost_lam": cost_lam}
        for name, factor in factors.items():
            check_number(name, factor, 0.0, 1.0)
        if not self.num_costs and (last_cost_values is not None or final_cost_values is not None):
            raise ValueError("last_cost_values and final_cost_values are for costs; num_costs is 0")
        dones = self.dones != 0  # ``~`` of uint8 would flip all eight bits
        if time_outs is not None:
            time_outs = checked_time_outs(time_outs, dones)
        rewards = self._reward_returns(gamma, lam, normalize_advantage)
        rewards = replace(rewards, continuation=continuation)
        next_values = rewards.next_values(last_values, final_values, dones, time_outs)
        # Both are checked before either is written.
        jobs = [(rewards, next_values)]
        if self.num_costs:
            costs = self._cost_returns(cost_gamma, cost_lam, normalize_cost_advantage)
            next_values = costs.next_values(last_cost_values, final_cost_values, dones, time_outs)
            jobs.append((costs, next_values))
        for returns, next_values in jobs:
            returns.write(next_values, dones)
        # They count as written only after they are found to be finite.
        self._stale_returns = self._returns_version()
        for returns, next_values in jobs:
            returns.finish(next_values, time_outs)
        self._stale_returns = (None, 0)  # no version of the returns is like this

    def _reward_returns(self, gamma: float, lam: float, normalize: bool) -> Returns:
        return Returns(
            prefix="",
            rewards=self.rewards,
            values=self.values,
            returns=self.returns,
            advantages=self.advantages,
            gamma=gamma,
            lam=lam,
            normalize=normalize,
        )

    def _cost_returns(self, gamma: float, lam: float, normalize: bool) -> Returns:
        assert self.cost_rewards is not None and self.cost_values is not None
        assert self.cost_returns is not None and self.cost_advantages is not None
        return Returns(
            prefix="cost_",
            rewards=self.cost_rewards,
            values=self.cost_values,
            returns=self.cost_returns,
            advantages=self.cost_advantages,
            gamma=gamma,
            lam=lam,
            normalize=normalize,
        )

    def get_statistics(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return statistics of the rollout.

        Returns:
            Mean length of trajectories, which end with their episode or with the rollout, and mean
            reward of a step: scalars.

        Raises:
            RuntimeError: If the rollout is not full.
        """
        self._require("get_statistics")
        # A done in the last step starts no trajectory.
        num_trajectories = self.num_envs + self.dones[:-1].count_nonzero()
        mean_length = self.num_envs * self.num_transitions_per_env / num_trajectories
        return mean_length, self.rewards.mean()

    def mini_batches(self, num_mini_batches: int, num_epochs: int = 8) -> Iterator[MiniBatch]:
        """Yield each transition exactly once per epoch, in random order.

        Args:
            num_mini_batches: Batches in an epoch. Their sizes differ by at most one.
            num_epochs: Number of epochs.

        Raises:
            RuntimeError: If the rollout is not full or has no returns.
            ValueError: If there are more batches than transitions.
        """
        num_transitions = self.num_envs * self.num_transitions_per_env
        num_mini_batches, num_epochs = self._checked_counts(
            "mini_batches", num_mini_batches, num_epochs, num_transitions
        )
        return self._batches().transitions(num_mini_batches, num_epochs)

    def mini_batch_generator(self, num_mini_batches: int, num_epochs: int = 8) -> Iterator[Items]:
        """Yield the batches of :meth:`mini_batches` as tuples of 18 items.

        The items are: observations, (reference observations, mask) or None, critic observations,
        (critic reference observations, mask) or None, actions, values, advantages, returns, log
        probabilities of the actions, action means, action standard deviations, DAgger actions,
        hidden states, masks, RND states, previous AMP states, previous reference AMP states and
        their mask. Entries that the storage does not keep are None.

        Args:
            num_mini_batches: Batches in an epoch.
            num_epochs: Number of epochs.
        """
        batches = self.mini_batches(num_mini_batches, num_epochs)
        return (batch.as_tuple() for batch in batches)

    def trajectory_batches(self, num_mini_batches: int, num_epochs: int = 8) -> Iterator[MiniBatch]:
        """Yield mini-batches of whole trajectories, each with its first recurrent states.

        Args:
            num_mini_batches: Batches in an epoch. Their numbers of environments differ by at most
                one.
            num_epochs: Number of epochs.

        Raises:
            RuntimeError: If the rollout is not full or has no returns.
            ValueError: If there are more batches than environments.
        """
        num_mini_batches, num_epochs = self._checked_counts(
            "trajectory_batches", num_mini_batches, num_epochs, self.num_envs
        )
        return self._batches().trajectories(num_mini_batches, num_epochs)

    def recurrent_mini_batch_generator(
        self, num_mini_batches: int, num_epochs: int = 8
    ) -> Iterator[Items]:
        """Yield the batches of :meth:`trajectory_batches` as tuples of 18 items.

        The items are the items of :meth:`mini_batch_generator`.

        Args:
            num_mini_batches: Batches in an epoch.
            num_epochs: Number of epochs.
        """
        batches = self.trajectory_batches(num_mini_batches, num_epochs)
        return (batch.as_tuple() for batch in batches)

    def _batches(self) -> RolloutBatches:
        return RolloutBatches(self._buffers(), self._hidden, self._amp)

    def _checked_counts(
        self, caller: str, num_mini_batches: int, num_epochs: int, num_items: int
    ) -> tuple[int, int]:
        """Return the numbers of batches and epochs in which ``num_items`` can be drawn."""
        self._require(caller, "rl", returns=True)
        check_number("num_mini_batches", num_mini_batches, 1, num_items)
        num_mini_batches = whole_number("num_mini_batches", num_mini_batches)
        return num_mini_batches, whole_number("num_epochs", num_epochs)

    def generator(self) -> Iterator[Items]:
        """Yield the steps of a distillation rollout in order, as views.

        Each step is a tuple of observations, observations of the teacher (or the student's),
        (reference observations, mask) or None, (reference observations of the teacher, mask) or
        None, actions, actions of the teacher, and dones.

        Raises:
            RuntimeError: If the rollout is not full.
            ValueError: If the training type is not distillation.
        """
        self._require("generator", "distillation")
        return (self._distillation_step(step) for step in range(self.num_transitions_per_env))

    def _distillation_step(self, step: int) -> Items:
        teacher_observations = self.observations
        if self.privileged_observations is not None:
            teacher_observations = self.privileged_observations
        return (
            self.observations[step],
            teacher_observations[step],
            masked_row(self.reference_observations, self.reference_observations_mask, step),
            masked_row(
                self.privileged_reference_observations,
                self.privileged_reference_observations_mask,
                step,
            ),
            self.actions[step],
            self.privileged_actions[step],
            self.dones[step],
        )

    def _require(
        self, caller: str, training_type: str | None = None, returns: bool = False
    ) -> None:
        """Raise unless the rollout is full, of a training type, and has returns if asked for."""
        if training_type not in (None, self.training_type):
            raise ValueError(
                f"{caller} is for training_type {training_type!r}, "
                f"this storage's is {self.training_type!r}"
            )
        if self.step < self.num_transitions_per_env:
            raise RuntimeError(
                f"{caller} needs a full rollout: observations and the other buffers hold "
                f"{self.step} of num_transitions_per_env = {self.num_transitions_per_env} steps; "
                "call add_transitions() for the others"
            )
        if returns and not self.has_returns:
            raise RuntimeError(
                f"{caller} needs returns and advantages of this rollout: "
                "call compute_returns() first"
            )

    def state_dict(self) -> State:
        """Return copies of all buffers and counters, for ``torch.save``.

        The rollout need not be finished.
        """
        state = super().state_dict()
        state["has_returns"] = self.has_returns
        return state

    def load_state_dict(self, state: State) -> None:
        """Return exactly to a state from :meth:`state_dict`.

        Args:
            state: The state, of any device.

        Raises:
            ValueError: If the state belongs to another storage. Nothing is changed then.
        """
        super().load_state_dict(state)
        self._stale_returns = (None, 0) if state["has_returns"] else self._returns_version()
