"""The rollout buffer of motion-mimic PPO: what every environment did, and the batches that learning takes from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from legged_envs.storage.amp import AmpExtractors
from legged_envs.storage.checks import (
    Shape,
    check_finite,
    checked_time_outs,
    count,
    entry_shape,
    fitting,
    optional_shape,
)
from legged_envs.storage.gae import next_values, normalise_, write_advantages
from legged_envs.storage.hidden_states import HiddenStateBuffer, check_hidden_state
from legged_envs.storage.kept_field import KeptField
from legged_envs.storage.mini_batch import MiniBatch
from legged_envs.storage.trajectories import has_previous, trajectory_indices
from legged_envs.storage.transition import Transition as _Transition

_BUFFER_NAMES = {
    "critic_observations": "privileged_observations",
    "critic_reference_observations": "privileged_reference_observations",
    "critic_reference_observations_mask": "privileged_reference_observations_mask",
    "action_mean": "mu",
    "action_sigma": "sigma",
}
"""Field of a transition → buffer that keeps it, where the names differ."""
_DTYPES = {
    "dones": torch.uint8,
    "reference_observations_mask": torch.bool,
    "critic_reference_observations_mask": torch.bool,
}
"""Field of a transition → dtype, where it is not torch's default one."""
_COMPUTED = ("returns", "advantages", "cost_returns", "cost_advantages")
"""Buffers that :meth:`RolloutStorageMM.compute_returns` writes."""
_HIDDEN_NAMES = ("transition.hidden_states[0] (actor)", "transition.hidden_states[1] (critic)")
_ARGUMENTS = (
    "training_type",
    "num_envs",
    "num_transitions_per_env",
    "obs_shape",
    "ref_obs_shape",
    "privileged_obs_shape",
    "privileged_ref_obs_shape",
    "actions_shape",
    "apply_dagger_actions",
    "rnd_state_shape",
    "amp_cfg",
    "device",
    "num_costs",
)
"""Arguments of the constructor, which are attributes as well."""


class RolloutStorageMM:
    """A rollout of ``num_transitions_per_env`` steps in ``num_envs`` environments, with reference motions and costs.

    Fill it with :meth:`add_transitions`, call :meth:`compute_returns`, learn from :meth:`mini_batches` (by name) or
    :meth:`mini_batch_generator` (the same as a tuple), :meth:`clear` it and start again. ``training_type``
    ``"distillation"`` keeps the teacher's actions instead of PPO's quantities, and :meth:`generator` reads them.

    Every buffer is (num_transitions_per_env, num_envs, …) on ``device``, float32 (torch's default dtype) unless said
    otherwise. Nothing is cast, moved or broadcast: a field that does not fit raises, and leaves the storage as it was.

    ``torch.save`` takes the storage with its ``amp_cfg``, whose functions must then be importable: no lambdas, nor
    functions inside others. With such functions save :meth:`state_dict`, which does not hold them.

    Args:
        training_type: ``"rl"`` or ``"distillation"``.
        num_envs: Number of environments.
        num_transitions_per_env: Steps of a rollout.
        obs_shape: Shape of the actor's observation of one environment.
        ref_obs_shape: Of its reference observation, or None or [None] without one.
        privileged_obs_shape: Of the critic's (or teacher's) observation, or None or [None] if it sees the actor's.
        privileged_ref_obs_shape: Of the critic's reference observation; kept only if the actor has one too.
        actions_shape: Of the action.
        apply_dagger_actions: Keep the actions of a DAgger network.
        rnd_state_shape: Of the state for random network distillation, or None.
        amp_cfg: Adds previous AMP states to the batches: see :class:`legged_envs.storage.amp.AmpExtractors`.
        device: Where the buffers are.
        num_costs: Number of cost terms, each with its own critic.

    Raises:
        ValueError: If an argument is out of range or has no meaning.
        TypeError: If an argument has the wrong type.
    """

    Transition = _Transition

    observations: torch.Tensor
    """The actor's. Shape of this and of every buffer: (num_transitions_per_env, num_envs, …)."""
    privileged_observations: torch.Tensor | None
    """The critic's or the teacher's, if it has its own."""
    reference_observations: torch.Tensor | None
    """The actor's of the reference motion."""
    reference_observations_mask: torch.Tensor | None
    """Where there was one, bool. Shape: (num_transitions_per_env, num_envs)."""
    privileged_reference_observations: torch.Tensor | None
    """The critic's of the reference motion, if it has its own."""
    privileged_reference_observations_mask: torch.Tensor | None
    """Where there was one, bool. Shape: (num_transitions_per_env, num_envs)."""
    actions: torch.Tensor
    """What was done."""
    rewards: torch.Tensor
    """Shape: (num_transitions_per_env, num_envs, 1)."""
    dones: torch.Tensor
    """1 where an episode ended with the step, uint8. Shape: (num_transitions_per_env, num_envs, 1)."""
    dagger_actions: torch.Tensor | None
    """The DAgger network's, if asked for."""
    rnd_state: torch.Tensor | None
    """For random network distillation, if asked for."""
    privileged_actions: torch.Tensor
    """The teacher's. Only in distillation."""
    values: torch.Tensor
    """The critic's values. Only in RL. Shape: (num_transitions_per_env, num_envs, 1)."""
    actions_log_prob: torch.Tensor
    """Only in RL. Shape: (num_transitions_per_env, num_envs, 1)."""
    mu: torch.Tensor
    """Means of the policy's distribution. Only in RL."""
    sigma: torch.Tensor
    """Standard deviations of the policy's distribution. Only in RL."""
    returns: torch.Tensor
    """What the critic is to learn. Only in RL. Shape: (num_transitions_per_env, num_envs, 1)."""
    advantages: torch.Tensor
    """Only in RL. Shape: (num_transitions_per_env, num_envs, 1)."""
    cost_rewards: torch.Tensor | None
    """Costs, with ``num_costs``. Shape: (num_transitions_per_env, num_envs, num_costs)."""
    cost_values: torch.Tensor | None
    """The cost critics' values, with ``num_costs``. Shape: (num_transitions_per_env, num_envs, num_costs)."""
    cost_returns: torch.Tensor | None
    """What the cost critics are to learn. Shape: (num_transitions_per_env, num_envs, num_costs)."""
    cost_advantages: torch.Tensor | None
    """Of each cost term. Shape: (num_transitions_per_env, num_envs, num_costs)."""

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
        amp_cfg: Mapping[str, Any] | None = None,
        device: str | torch.device = "cpu",
        num_costs: int = 0,
    ):
        if training_type not in ("rl", "distillation"):
            raise ValueError(f"training_type must be 'rl' or 'distillation', got {training_type!r}")
        self.training_type = training_type
        self.num_envs = count("num_envs", num_envs, least=1)
        self.num_transitions_per_env = count("num_transitions_per_env", num_transitions_per_env, least=1)
        self.obs_shape = entry_shape("obs_shape", obs_shape)
        self.ref_obs_shape = optional_shape("ref_obs_shape", ref_obs_shape)
        self.privileged_obs_shape = optional_shape("privileged_obs_shape", privileged_obs_shape)
        self.privileged_ref_obs_shape = optional_shape("privileged_ref_obs_shape", privileged_ref_obs_shape)
        self.actions_shape = entry_shape("actions_shape", actions_shape)
        self.apply_dagger_actions = bool(apply_dagger_actions)
        self.rnd_state_shape = optional_shape("rnd_state_shape", rnd_state_shape)
        self.num_costs = count("num_costs", num_costs, least=0)
        if self.num_costs and training_type != "rl":
            raise ValueError(f"num_costs must be 0 in distillation, which learns from no cost, got {num_costs}")
        self.amp_cfg = amp_cfg
        self.device = torch.device(device)
        self.step = 0
        """Number of steps in the buffers."""
        self._amp = AmpExtractors(amp_cfg, self.ref_obs_shape is not None) if amp_cfg else None
        self._hidden: tuple[HiddenStateBuffer, HiddenStateBuffer] | None = None
        self._fields: list[KeptField] = []
        with torch.inference_mode(False):  # a tensor made inside it could not be written outside of it
            self._make_buffers()
        self._forget_returns()

    def _make_buffers(self) -> None:
        for field, shape in self._entry_shapes().items():
            name = _BUFFER_NAMES.get(field, field)
            buffer = None if shape is None else self._zeros(shape, _DTYPES.get(field))
            setattr(self, name, buffer)
            if buffer is not None:
                self._fields.append(KeptField(field, name, buffer))
        if self.training_type == "rl":
            self.returns, self.advantages = self._zeros((1,)), self._zeros((1,))
        self.cost_returns = self._zeros((self.num_costs,)) if self.num_costs else None
        self.cost_advantages = self._zeros((self.num_costs,)) if self.num_costs else None

    def _entry_shapes(self) -> dict[str, tuple[int, ...] | None]:
        """Field of a transition → its shape in one environment, None if this storage does not keep it."""
        reference, costs = self.ref_obs_shape, (self.num_costs,) if self.num_costs else None
        critic_reference = self.privileged_ref_obs_shape if reference else None
        shapes = {
            "observations": self.obs_shape,
            "critic_observations": self.privileged_obs_shape,
            "reference_observations": reference,
            "reference_observations_mask": () if reference else None,
            "critic_reference_observations": critic_reference,
            "critic_reference_observations_mask": () if critic_reference else None,
            "actions": self.actions_shape,
            "rewards": (1,),
            "dones": (1,),
            "dagger_actions": self.actions_shape if self.apply_dagger_actions else None,
            "rnd_state": self.rnd_state_shape,
            "cost_rewards": costs,
            "cost_values": costs,
        }
        if self.training_type == "distillation":
            return shapes | {"privileged_actions": self.actions_shape}
        policy = {"action_mean": self.actions_shape, "action_sigma": self.actions_shape}
        return shapes | {"values": (1,), "actions_log_prob": (1,)} | policy

    def _zeros(self, shape: tuple[int, ...], dtype: torch.dtype | None = None) -> torch.Tensor:
        return torch.zeros(self.num_transitions_per_env, self.num_envs, *shape, dtype=dtype, device=self.device)

    # --- filling ------------------------------------------------------------------------------------------------------

    def add_transitions(self, transition: _Transition) -> None:
        """Copy one step of all environments behind those that are there.

        Raises:
            OverflowError: If the rollout is full.
            ValueError: If a field is missing, or has another shape or device than its buffer.
            TypeError: If a field is no tensor or has another dtype.
        """
        if self.step >= self.num_transitions_per_env:
            raise OverflowError(
                f"the storage is full: it holds all num_transitions_per_env = {self.num_transitions_per_env} steps; "
                "call clear() before the next rollout"
            )
        rows, tensors = [], []
        for kept in self._fields:
            buffer, tensor = getattr(self, kept.name), getattr(transition, kept.field)
            if buffer is not kept.buffer:  # the user put another one in its place
                kept.bind(buffer)
            rows.append(kept.rows[self.step])
            tensors.append(tensor if kept.takes(tensor) else kept.fitted(tensor))
        for row, tensor in self._hidden_copies(transition.hidden_states):
            rows.append(row)
            tensors.append(tensor)
        torch._foreach_copy_(rows, tensors)  # one call pays for the checks, and on a GPU few kernels do it all
        self.step += 1

    def _hidden_copies(self, hidden_states: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """What to copy of the recurrent states; the first ones of a storage make its buffers."""
        name = "transition.hidden_states"
        given = hidden_states if hidden_states is not None else (None, None)
        if not isinstance(given, tuple) or len(given) != 2:
            raise TypeError(f"{name} must be (actor's, critic's) with None where there is none, got {given!r}")
        for part_name, state in zip(_HIDDEN_NAMES, given, strict=True):
            check_hidden_state(part_name, state, self.num_envs, self.observations.device)
        if self._hidden is None:
            if given[0] is None and given[1] is None:
                return []
            if self.step:
                raise ValueError(f"{name}: given in transition {self.step}, but not in those before: call clear()")
            steps = self.num_transitions_per_env
            actor, critic = _HIDDEN_NAMES
            self._hidden = HiddenStateBuffer(actor, given[0], steps), HiddenStateBuffer(critic, given[1], steps)
        actor_buffer, critic_buffer = self._hidden
        return actor_buffer.rows(self.step, given[0]) + critic_buffer.rows(self.step, given[1])

    def clear(self) -> None:
        """Start the next rollout: the next transition is the first one."""
        self.step = 0
        self._forget_returns()

    def _forget_returns(self) -> None:
        """From here on the returns are not those of this rollout, until somebody writes them."""
        self._blank = (self.returns, _version(self.returns)) if self.training_type == "rl" else None

    def _has_returns(self) -> bool:
        """Whether :meth:`compute_returns`, or the user's own code, wrote returns since the rollout began."""
        if self._blank is None:
            return self.training_type == "rl"
        returns, version = self._blank
        return self.returns is not returns or _version(returns) != version

    # --- returns ------------------------------------------------------------------------------------------------------

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
    ) -> None:
        """Write ``returns`` and ``advantages`` (generalised advantage estimates), and those of the costs.

        A done ends the sequence. A terminal one ends the return with it; a time-out does not: the return goes on with
        the value of that episode's true last observation. Without ``time_outs`` every done is terminal.

        Args:
            last_values: Values of the observations after the last step. A column: (num_envs,) or (num_envs, 1).
            gamma: Discount factor.
            lam: λ of the estimate.
            normalize_advantage: Bring the advantages to mean 0 and standard deviation 1.
            time_outs: Which dones are time-outs, bool. Shape: (num_transitions_per_env, num_envs) or (…, 1).
            final_values: Values of the last observations of the episodes that timed out; other rows are not read.
                Shape: (num_transitions_per_env, num_envs) or (…, 1).
            last_cost_values: As ``last_values`` for the costs. Shape: (num_envs, num_costs).
            final_cost_values: As ``final_values`` for the costs. Shape: (num_transitions_per_env, num_envs, num_costs).
            cost_gamma: Discount factor of the costs, ``gamma`` if None.
            cost_lam: λ of the costs, ``lam`` if None.
            normalize_cost_advantage: Bring each term's advantages to mean 0 and standard deviation 1.

        Raises:
            RuntimeError: If the rollout is not full.
            ValueError: If a value is missing, out of range, or has another shape or device than the buffers, if a
                time-out is where no episode ended, or if a number that the returns are made of is not finite.
            TypeError: If a tensor has another dtype than its buffer.
        """
        self._require("compute_returns", "rl")
        factors = {"gamma": gamma, "lam": lam, "cost_gamma": cost_gamma, "cost_lam": cost_lam}
        for name, factor in factors.items():
            if factor is not None and not 0.0 <= factor <= 1.0:
                raise ValueError(f"{name} must be in [0, 1], got {factor!r}")
        if not self.num_costs and (last_cost_values is not None or final_cost_values is not None):
            raise ValueError("last_cost_values and final_cost_values are for costs, but num_costs is 0")
        dones = self.dones != 0
        time_outs = checked_time_outs(time_outs, dones)
        following = self._next_values("", last_values, dones, time_outs, final_values)
        if self.num_costs:
            following_costs = self._next_values("cost_", last_cost_values, dones, time_outs, final_cost_values)
            cost_gamma, cost_lam = gamma if cost_gamma is None else cost_gamma, lam if cost_lam is None else cost_lam
            self._write_returns("cost_", following_costs, dones, cost_gamma, cost_lam)
            self._check_returns("cost_", following_costs, time_outs)
            if normalize_cost_advantage and self.cost_advantages is not None:
                normalise_(self.cost_advantages)
        self._write_returns("", following, dones, gamma, lam)
        self._check_returns("", following, time_outs)
        if normalize_advantage:
            normalise_(self.advantages)
        self._blank = None

    def _next_values(
        self,
        kind: str,
        last: torch.Tensor | None,
        dones: torch.Tensor,
        time_outs: torch.Tensor | None,
        final: torch.Tensor | None,
    ) -> torch.Tensor:
        """What each transition bootstraps from; ``kind`` is ``""`` for rewards and ``"cost_"`` for costs."""
        values = getattr(self, f"{kind}values")
        if (time_outs is None) != (final is None):
            missing = "time_outs" if time_outs is None else f"final_{kind}values"
            raise ValueError(f"{missing} is missing: time_outs and final_{kind}values are needed together")
        if final is not None:
            final = fitting(f"final_{kind}values", final, values)
        return next_values(values, fitting(f"last_{kind}values", last, values[0]), dones, time_outs, final)

    def _write_returns(self, kind: str, following: torch.Tensor, dones: torch.Tensor, gamma: float, lam: float) -> None:
        rewards, values = getattr(self, f"{kind}rewards"), getattr(self, f"{kind}values")
        advantages = getattr(self, f"{kind}advantages")
        write_advantages(advantages, rewards, values, following, dones, gamma, lam)
        torch.add(advantages, values, out=getattr(self, f"{kind}returns"))

    def _check_returns(self, kind: str, following: torch.Tensor, time_outs: torch.Tensor | None) -> None:
        """Raise at the first number that keeps the returns from being finite; their sum is finite if there is none."""
        returns = getattr(self, f"{kind}returns")
        if torch.isfinite(returns.sum()):
            return
        self._forget_returns()
        for name in (f"{kind}rewards", f"{kind}values"):
            check_finite(name, getattr(self, name))
        if time_outs is not None:
            check_finite(f"final_{kind}values", following.masked_fill(~time_outs, 0.0))
        check_finite(f"last_{kind}values", following)
        check_finite(f"{kind}returns", returns)

    def get_statistics(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean length of the trajectories and mean reward of a step, both scalars. Changes nothing.

        A trajectory ends with its episode or with the rollout.

        Raises:
            RuntimeError: If the rollout is not full.
        """
        self._require("get_statistics")
        num_trajectories = self.num_envs + self.dones[:-1].count_nonzero()
        return self.num_envs * self.num_transitions_per_env / num_trajectories, self.rewards.mean()

    # --- batches ------------------------------------------------------------------------------------------------------

    def mini_batches(self, num_mini_batches: int, num_epochs: int = 8) -> Iterator[MiniBatch]:
        """Single transitions in random order: every one of them exactly once per epoch, each epoch in its own order.

        Where the transitions do not divide evenly, the sizes of the batches differ by one. The order is drawn from
        torch's generator of the storage's device.

        Args:
            num_mini_batches: Batches per epoch.
            num_epochs: Passes over the rollout.

        Raises:
            RuntimeError: If the rollout is not full, or its returns are not computed.
            ValueError: If there are more batches than transitions, or in distillation.
        """
        self._require("mini_batches", "rl", returns=True)
        size = self.num_envs * self.num_transitions_per_env
        num_mini_batches = count("num_mini_batches", num_mini_batches, least=1, most=size)
        num_epochs = count("num_epochs", num_epochs, least=1)
        return self._shuffled(size, num_mini_batches, num_epochs)

    def _shuffled(self, size: int, num_mini_batches: int, num_epochs: int) -> Iterator[MiniBatch]:
        continues = self._continues()
        for _ in range(num_epochs):
            for indices in torch.randperm(size, device=self.observations.device).tensor_split(num_mini_batches):
                yield self._batch(indices, continues)

    def trajectory_batches(self, num_mini_batches: int, num_epochs: int = 8) -> Iterator[MiniBatch]:
        """Whole trajectories of environments in random order, with the recurrent states that they began with.

        Each epoch deals out all environments anew; their numbers differ by at most one between batches. The
        trajectories of an environment stand one after another in time. See :class:`MiniBatch` for the shapes.

        Args:
            num_mini_batches: Batches per epoch.
            num_epochs: Passes over the rollout.

        Raises:
            RuntimeError: If the rollout is not full, or its returns are not computed.
            ValueError: If there are more batches than environments, or in distillation.
        """
        self._require("trajectory_batches", "rl", returns=True)
        num_mini_batches = count("num_mini_batches", num_mini_batches, least=1, most=self.num_envs)
        num_epochs = count("num_epochs", num_epochs, least=1)
        return self._trajectories(num_mini_batches, num_epochs)

    def _trajectories(self, num_mini_batches: int, num_epochs: int) -> Iterator[MiniBatch]:
        dones, continues = self.dones.squeeze(-1) != 0, self._continues()
        for _ in range(num_epochs):
            for envs in torch.randperm(self.num_envs, device=dones.device).tensor_split(num_mini_batches):
                indices, masks = trajectory_indices(dones, envs)
                yield self._batch(indices, continues, masks)

    def mini_batch_generator(self, num_mini_batches: int, num_epochs: int = 8) -> Iterator[tuple[Any, ...]]:
        """:meth:`mini_batches` as tuples of 18.

        They are: observations, (reference observations, mask) or None, critic observations, (critic reference
        observations, mask) or None, actions, values, advantages, returns, log-probabilities, action means, action
        standard deviations, DAgger actions or None, hidden states (actor's, critic's), None, RND states or None, and
        with AMP the states before: observations', reference's, reference's mask, else None three times.
        """
        self._require("mini_batch_generator", "rl", returns=True)
        return (batch.as_tuple() for batch in self.mini_batches(num_mini_batches, num_epochs))

    def recurrent_mini_batch_generator(self, num_mini_batches: int, num_epochs: int = 8) -> Iterator[tuple[Any, ...]]:
        """:meth:`trajectory_batches` as tuples of 18 in the order of :meth:`mini_batch_generator`, with masks."""
        self._require("recurrent_mini_batch_generator", "rl", returns=True)
        return (batch.as_tuple() for batch in self.trajectory_batches(num_mini_batches, num_epochs))

    def generator(self) -> Iterator[tuple[Any, ...]]:
        """The steps of a distillation rollout in order, as views of the buffers.

        Each is a tuple of 7: observations, the teacher's observations (the student's if it has none of its own),
        (reference observations, mask) or None, (privileged reference observations, mask) or None, actions, the
        teacher's actions, dones.

        Raises:
            RuntimeError: If the rollout is not full.
            ValueError: If the training type is not ``"distillation"``.
        """
        self._require("generator", "distillation")
        return map(self._distillation_step, range(self.num_transitions_per_env))

    def _distillation_step(self, step: int) -> tuple[Any, ...]:
        teacher = self.observations if self.privileged_observations is None else self.privileged_observations
        pairs = (
            (self.reference_observations, self.reference_observations_mask),
            (self.privileged_reference_observations, self.privileged_reference_observations_mask),
        )
        references = (None if obs is None or mask is None else (obs[step], mask[step]) for obs, mask in pairs)
        actions = self.actions[step], self.privileged_actions[step]
        return self.observations[step], teacher[step], *references, *actions, self.dones[step]

    def _continues(self) -> torch.Tensor | None:
        """With AMP: which transitions have a previous one. Shape: (num_transitions_per_env · num_envs,), bool."""
        return None if self._amp is None else has_previous(self.dones.squeeze(-1) != 0).flatten()

    def _batch(
        self, indices: torch.Tensor, continues: torch.Tensor | None, masks: torch.Tensor | None = None
    ) -> MiniBatch:
        """The transitions at ``indices``, of any shape; with ``masks`` these are trajectories."""
        observations = _take(self.observations, indices)
        reference = _take_if(self.reference_observations, indices)
        reference_mask = _take_if(self.reference_observations_mask, indices)
        critic, critic_reference, critic_mask = observations, reference, reference_mask
        if self.privileged_observations is not None:
            critic = _take(self.privileged_observations, indices)
        if self.privileged_reference_observations is not None:
            critic_reference = _take(self.privileged_reference_observations, indices)
            critic_mask = _take_if(self.privileged_reference_observations_mask, indices)
        begins = indices if masks is None else indices[0]
        actor_hidden, critic_hidden = (None, None) if self._hidden is None else (h.take(begins) for h in self._hidden)
        return MiniBatch(
            indices=indices,
            observations=observations,
            reference_observations=reference,
            reference_observations_mask=reference_mask,
            critic_observations=critic,
            critic_reference_observations=critic_reference,
            critic_reference_observations_mask=critic_mask,
            actions=_take(self.actions, indices),
            values=_take(self.values, indices),
            advantages=_take(self.advantages, indices),
            returns=_take(self.returns, indices),
            actions_log_prob=_take(self.actions_log_prob, indices),
            action_mean=_take(self.mu, indices),
            action_sigma=_take(self.sigma, indices),
            dagger_actions=_take_if(self.dagger_actions, indices),
            hidden_states=(actor_hidden, critic_hidden),
            masks=masks,
            rnd_state=_take_if(self.rnd_state, indices),
            cost_values=_take_if(self.cost_values, indices),
            cost_returns=_take_if(self.cost_returns, indices),
            cost_advantages=_take_if(self.cost_advantages, indices),
            **self._previous_states(indices, continues),
        )

    def _previous_states(self, indices: torch.Tensor, continues: torch.Tensor | None) -> dict[str, torch.Tensor | None]:
        """The AMP states one step before ``indices``, where ``continues`` says that there is one."""
        names = ("has_previous", "obs_prev_state", "ref_obs_prev_state", "ref_obs_prev_mask")
        states: dict[str, torch.Tensor | None] = dict.fromkeys(names)
        if self._amp is None or continues is None:
            return states
        has_one = states["has_previous"] = continues[indices]
        previous = torch.where(has_one, indices - self.num_envs, indices)
        states["obs_prev_state"] = self._amp.states(_take(self.observations, previous))
        if self.reference_observations is not None and self.reference_observations_mask is not None:
            mask = _take(self.reference_observations_mask, previous) & has_one
            reference = _take(self.reference_observations, previous)
            states["ref_obs_prev_state"], states["ref_obs_prev_mask"] = self._amp.reference_states(reference, mask)
        return states

    def _require(self, caller: str, training_type: str | None = None, returns: bool = False) -> None:
        """Raise unless ``caller`` fits the training type, the rollout is full and, if needed, has its returns."""
        if training_type not in (None, self.training_type):
            raise ValueError(
                f"{caller} is for training_type {training_type!r}, this storage's is {self.training_type!r}"
            )
        if self.step < self.num_transitions_per_env:
            raise RuntimeError(
                f"{caller} needs a full rollout: observations and the other buffers hold {self.step} of "
                f"num_transitions_per_env = {self.num_transitions_per_env} steps; go on with add_transitions()"
            )
        if returns and not self._has_returns():
            raise RuntimeError(f"{caller} needs returns and advantages of this rollout: call compute_returns() first")

    # --- state --------------------------------------------------------------------------------------------------------

    def _buffers(self) -> dict[str, torch.Tensor]:
        names = [kept.name for kept in self._fields] + [n for n in _COMPUTED if getattr(self, n, None) is not None]
        return {name: getattr(self, name) for name in names}

    def state_dict(self) -> dict[str, Any]:
        """Copies of everything, also of an unfinished rollout; ``torch.save`` takes it as it is."""
        return {
            "step": self.step,
            "has_returns": self._has_returns(),
            "buffers": {name: buffer.clone() for name, buffer in self._buffers().items()},
            "hidden_states": None if self._hidden is None else [hidden.state_dict() for hidden in self._hidden],
        }

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Return exactly to a state from :meth:`state_dict`, from whatever device it was saved on.

        Raises:
            ValueError: If it is of a storage with other buffers, or buffers of other shapes, or with more steps.
        """
        buffers, saved = self._buffers(), state["buffers"]
        if buffers.keys() != saved.keys():
            differing = sorted(buffers.keys() ^ saved.keys())
            raise ValueError(f"the state is of a storage with other arguments: only one of the two has {differing}")
        for name, buffer in buffers.items():
            expected, got = ((tuple(t.shape), t.dtype) for t in (buffer, saved[name]))
            if expected != got:
                raise ValueError(
                    f"{name}: expected {expected}, the state's is {got}: of a storage with other arguments"
                )
        step = count("state['step']", state["step"], least=0, most=self.num_transitions_per_env)
        for name, buffer in buffers.items():
            buffer.copy_(saved[name])
        self.step = step
        self._forget_returns()
        if state["has_returns"]:
            self._blank = None
        self._hidden = None
        if state["hidden_states"] is not None:
            device = self.observations.device
            actor, critic = map(HiddenStateBuffer.from_state_dict, _HIDDEN_NAMES, state["hidden_states"], (device,) * 2)
            self._hidden = actor, critic

    def __getstate__(self) -> dict[str, Any]:
        return {"arguments": {name: getattr(self, name) for name in _ARGUMENTS}, "state": self.state_dict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # torch.load(map_location=...) moves the buffers, and the storage goes with them.
        arguments = state["arguments"] | {"device": state["state"]["buffers"]["observations"].device}
        self.__init__(**arguments)  # type: ignore[misc]
        self.load_state_dict(state["state"])


def _version(tensor: torch.Tensor) -> int:
    """How often a tensor was written; inference tensors do not count it."""
    return -1 if tensor.is_inference() else tensor._version


def _take(buffer: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """The entries step · num_envs + env of a buffer. Shape: (``*indices.shape``, …).

    ``index_select`` copies whole rows: on a CPU it is several times as fast as ``buffer[indices]``.
    """
    taken = buffer.flatten(0, 1).index_select(0, indices.flatten())
    return taken if indices.ndim == 1 else taken.unflatten(0, indices.shape)


def _take_if(buffer: torch.Tensor | None, indices: torch.Tensor) -> torch.Tensor | None:
    return None if buffer is None else _take(buffer, indices)
