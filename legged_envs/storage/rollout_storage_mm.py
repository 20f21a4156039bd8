"""The rollout buffer of motion-mimic PPO: what every environment did, and the batches that learning takes from it."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from legged_envs.checks import check_choice, check_number, whole_number
from legged_envs.storage.amp import AmpExtractors
from legged_envs.storage.fields import (
    BATCH_FIELDS,
    FIELDS,
    TRANSITION_FIELDS,
    MiniBatch,
    Shape,
    entry_shape,
    fitting,
)
from legged_envs.storage.fields import Transition as _Transition
from legged_envs.storage.gae import Returns
from legged_envs.storage.rows import HiddenStates, has_previous, take, trajectory_indices
from legged_envs.tables import TableRepr


class RolloutStorageMM(TableRepr):
    """A rollout of ``num_transitions_per_env`` steps in ``num_envs`` environments, with reference motions and costs:
    :meth:`add_transitions`, :meth:`compute_returns`, learn from :meth:`mini_batches`, :meth:`clear`, start again. In
    ``training_type`` ``"distillation"``, not ``"rl"``, it keeps the teacher's actions for :meth:`generator`.

    Every field of a :class:`Transition` has a buffer, an attribute of the same name but for ``mu`` (``action_mean``),
    ``sigma`` (``action_sigma``), ``privileged_observations``, ``privileged_reference_observations`` and its ``…_mask``
    (``critic_…`` in a transition). So have ``returns``, ``advantages``, ``cost_returns`` and ``cost_advantages``. Those
    that the arguments do not ask for are None; those of the other training type are no attributes. A buffer is
    (num_transitions_per_env, num_envs, …), of torch's default dtype, masks bool and ``dones`` uint8; another tensor may
    be assigned. Nothing is cast, moved or broadcast: a field that does not fit raises and leaves the storage as it was.

    Shapes are those of one environment's entry, None or [None] where there is none. ``privileged_…`` is of the critic
    or teacher, who else sees what the actor sees; its reference is kept only if the actor has one too. Each of
    ``num_costs`` cost terms has a critic. ``amp_cfg`` adds previous AMP states to batches, see
    :class:`~legged_envs.storage.amp.AmpExtractors`; ``torch.save`` takes it along, so its functions must be importable.
    ValueError if an argument is out of range or has no meaning, TypeError if of the wrong type."""

    Transition = _Transition

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
        self._rows: dict[str, list[torch.Tensor]] = {}
        """Buffer → its rows, none if it is None: slicing at each step would take long."""
        check_choice("training_type", training_type, ("rl", "distillation"))
        self.training_type = training_type
        self.num_envs = whole_number("num_envs", num_envs)
        self.num_transitions_per_env = whole_number(
            "num_transitions_per_env", num_transitions_per_env
        )
        self.obs_shape = entry_shape("obs_shape", obs_shape)
        self.ref_obs_shape = entry_shape("ref_obs_shape", ref_obs_shape)
        self.privileged_obs_shape = entry_shape("privileged_obs_shape", privileged_obs_shape)
        self.privileged_ref_obs_shape = entry_shape(
            "privileged_ref_obs_shape", privileged_ref_obs_shape
        )
        self.actions_shape = entry_shape("actions_shape", actions_shape)
        self.rnd_state_shape = entry_shape("rnd_state_shape", rnd_state_shape)
        if self.obs_shape is None or self.actions_shape is None:
            raise ValueError(
                f"obs_shape and actions_shape are needed, got {obs_shape!r} and {actions_shape!r}"
            )
        self.apply_dagger_actions = bool(apply_dagger_actions)
        self.num_costs = whole_number("num_costs", num_costs, 0)
        if self.num_costs and training_type != "rl":
            raise ValueError(
                f"num_costs must be 0 in distillation, which learns from no cost, got {num_costs}"
            )
        self.amp_cfg = amp_cfg
        self.device = torch.device(device)
        self.step = 0
        self._amp = AmpExtractors(amp_cfg, self.ref_obs_shape is not None) if amp_cfg else None
        with torch.inference_mode(
            False
        ):  # a tensor made inside it could not be written outside of it
            self._make_buffers()
        self._given = [
            (field.name, field.buffer)
            for field in TRANSITION_FIELDS
            if self._rows.get(field.buffer)
        ]
        self._hidden = HiddenStates(
            self.num_transitions_per_env, self.num_envs, self.observations.device
        )
        self._stale_returns = self._written_returns()
        """What :meth:`_written_returns` says as long as the returns are not those of this rollout."""

    def _make_buffers(self) -> None:
        shapes = vars(self) | {
            "privileged_ref_obs_shape": self.ref_obs_shape and self.privileged_ref_obs_shape,
            "dagger_actions_shape": self.actions_shape if self.apply_dagger_actions else None,
            "column": (1,),
            "costs": (self.num_costs,) if self.num_costs else None,
        }
        for field in FIELDS:
            if field.only in (None, self.training_type):
                buffer, shape = None, shapes[field.shape]
                if shape is not None:
                    size = (
                        self.num_transitions_per_env,
                        self.num_envs,
                        *(() if field.dtype is torch.bool else shape),
                    )
                    buffer = torch.zeros(size, dtype=field.dtype, device=self.device)
                self._rows[field.buffer] = []
                setattr(self, field.buffer, buffer)

    def __getattr__(self, name: str) -> Any:  # a type checker takes the buffers' names from it
        raise AttributeError(f"this RolloutStorageMM has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in vars(self).get("_rows", ()):
            self._rows[name] = [] if value is None else list(value)

    def _describe(self) -> str:
        progress = f"step {self.step} of {self.num_transitions_per_env}"
        return f"{self.training_type!r}, num_envs={self.num_envs}, {progress}"

    def _buffers(self) -> dict[str, torch.Tensor]:
        return {name: getattr(self, name) for name, rows in self._rows.items() if rows}

    def add_transitions(self, transition: _Transition) -> None:
        """Copy one step of all environments behind those that are there. OverflowError if the rollout is full,
        ValueError if a field is missing or of wrong shape or device, TypeError if of another dtype."""
        if (step := self.step) >= (steps := self.num_transitions_per_env):
            raise OverflowError(
                f"the storage is full: num_transitions_per_env = {steps} steps are there; call clear()"
            )
        rows, tensors, buffers = [], [], self._rows
        for name, buffer in self._given:
            tensor, row = getattr(transition, name), buffers[buffer][step]
            fits = (
                type(tensor) is torch.Tensor
                and tensor.shape == row.shape
                and tensor.dtype is row.dtype
            )
            if not fits or tensor.device != row.device or tensor.requires_grad:
                tensor = fitting(f"transition.{name}", tensor, row).detach()
            rows.append(row)
            tensors.append(tensor)
        for row, tensor in self._hidden.copies(step, transition.hidden_states):
            rows.append(row)
            tensors.append(tensor)
        torch._foreach_copy_(
            rows, tensors
        )  # one call pays for the checks, and on a GPU few kernels do it all
        self.step += 1

    def clear(self) -> None:
        """Begin to fill it anew."""
        self.step = 0
        self._stale_returns = self._written_returns()

    def _written_returns(self) -> tuple[torch.Tensor | None, int]:
        """The buffer of the returns and how often it was written, which inference tensors do not count."""
        returns = self.returns if self.training_type == "rl" else None
        return returns, -1 if returns is None or returns.is_inference() else returns._version

    @property
    def has_returns(self) -> bool:
        """Whether :meth:`compute_returns`, or an estimator of one's own, wrote ``returns`` since the rollout began."""
        (returns, times), (old, old_times) = self._written_returns(), self._stale_returns
        return returns is not old or times != old_times

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
        """Write ``returns`` and ``advantages`` (generalised advantage estimates), and those of the costs. A terminal
        done ends the return; after a time-out it goes on with the value of that episode's true last observation.
        Without ``time_outs`` every done is terminal.

        ``last_values`` (num_envs,) or (num_envs, 1) are of the observations after the last step. ``time_outs``, bool,
        says which dones are time-outs; ``final_values`` are those of the last observations there, other rows are not
        read: (num_transitions_per_env, num_envs) or (…, 1). Those of costs have K columns; ``cost_gamma`` and
        ``cost_lam`` default to ``gamma`` and ``lam``. ``normalize_…`` brings advantages to mean 0 and standard
        deviation 1. RuntimeError if the rollout is not full; ValueError if a value is missing, out of range, not finite
        or of another shape or device, or a time-out is where no episode ended; TypeError for another dtype."""
        self._require("compute_returns", "rl")
        cost_gamma, cost_lam = (
            gamma if cost_gamma is None else cost_gamma,
            lam if cost_lam is None else cost_lam,
        )
        for name, factor in {
            "gamma": gamma,
            "lam": lam,
            "cost_gamma": cost_gamma,
            "cost_lam": cost_lam,
        }.items():
            check_number(name, factor, 0.0, 1.0)
        if not self.num_costs and (last_cost_values is not None or final_cost_values is not None):
            raise ValueError(
                "last_cost_values and final_cost_values are for costs, but num_costs is 0"
            )
        dones = self.dones != 0
        if time_outs is not None:
            time_outs = fitting("time_outs", time_outs, dones)
            running = (time_outs & ~dones).nonzero()
            if len(running):
                step, env, _ = running[0].tolist()
                raise ValueError(
                    f"time_outs has an end at step {step} in environment {env}, dones has none there"
                )
        buffers = self.rewards, self.values, self.returns, self.advantages
        rewards = Returns("", *buffers, gamma, lam, normalize_advantage)
        jobs = [(rewards, rewards.next_values(last_values, final_values, dones, time_outs))]
        if self.num_costs:
            buffers = self.cost_rewards, self.cost_values, self.cost_returns, self.cost_advantages
            costs = Returns("cost_", *buffers, cost_gamma, cost_lam, normalize_cost_advantage)
            jobs.append(
                (costs, costs.next_values(last_cost_values, final_cost_values, dones, time_outs))
            )
        for returns, next_values in jobs:
            returns.write(next_values, dones)
        self._stale_returns = self._written_returns()  # until they are found to be finite
        for returns, next_values in jobs:
            returns.finish(next_values, time_outs)
        self._stale_returns = None, 0

    def get_statistics(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean length of trajectories, ended by their episode or the rollout, and mean reward of a step: scalars."""
        self._require("get_statistics")
        num_trajectories = self.num_envs + self.dones[:-1].count_nonzero()
        return self.num_envs * self.num_transitions_per_env / num_trajectories, self.rewards.mean()

    def mini_batches(self, num_mini_batches: int, num_epochs: int = 8) -> Iterator[MiniBatch]:
        """Each transition exactly once per epoch, in random order, in batches of sizes that differ by at most one.
        RuntimeError if the rollout is not full or has no returns; ValueError if batches outnumber transitions."""
        return self._epochs("mini_batches", num_mini_batches, num_epochs)

    def mini_batch_generator(
        self, num_mini_batches: int, num_epochs: int = 8
    ) -> Iterator[tuple[Any, ...]]:
        """:meth:`mini_batches` as tuples of 18, which :meth:`MiniBatch.as_tuple` lists."""
        return map(MiniBatch.as_tuple, self.mini_batches(num_mini_batches, num_epochs))

    def trajectory_batches(self, num_mini_batches: int, num_epochs: int = 8) -> Iterator[MiniBatch]:
        """Whole trajectories of environments, whose numbers in an epoch's batches differ by at most one, in random
        order, with the recurrent states that they began with. Errors: see :meth:`mini_batches`."""
        return self._epochs("trajectory_batches", num_mini_batches, num_epochs, whole=True)

    def recurrent_mini_batch_generator(
        self, num_mini_batches: int, num_epochs: int = 8
    ) -> Iterator[tuple[Any, ...]]:
        """:meth:`trajectory_batches` as tuples of 18 in the order of :meth:`mini_batch_generator`, with masks."""
        return map(MiniBatch.as_tuple, self.trajectory_batches(num_mini_batches, num_epochs))

    def _epochs(
        self, caller: str, num_mini_batches: int, num_epochs: int, whole: bool = False
    ) -> Iterator[MiniBatch]:
        self._require(caller, "rl", returns=True)
        size = self.num_envs * (1 if whole else self.num_transitions_per_env)
        check_number("num_mini_batches", num_mini_batches, 1, size)
        num_mini_batches = whole_number("num_mini_batches", num_mini_batches)
        num_epochs = whole_number("num_epochs", num_epochs)
        continues = has_previous(self.dones.squeeze(-1) != 0)
        orders = (torch.randperm(size, device=continues.device) for _ in range(num_epochs))
        drawn = (share for order in orders for share in order.tensor_split(num_mini_batches))
        chosen = (
            trajectory_indices(continues, share) if whole else (share, None) for share in drawn
        )
        return (self._batch(indices, masks, continues.flatten()) for indices, masks in chosen)

    def _batch(
        self, indices: torch.Tensor, masks: torch.Tensor | None, continues: torch.Tensor
    ) -> MiniBatch:
        """The transitions at ``indices``, with ``masks`` trajectories; ``continues`` is :func:`has_previous`, flat."""
        items: dict[str, Any] = {}
        for field in BATCH_FIELDS:
            buffer = getattr(self, field.buffer)
            if buffer is not None:
                items[field.name] = take(buffer, indices)
            elif field.name.startswith("critic_"):  # it sees what the actor sees
                items[field.name] = items.get(field.name.removeprefix("critic_"))
        if self._amp is not None:
            items["has_previous"] = has_one = continues[indices]
            previous = torch.where(has_one, indices - self.num_envs, indices)
            items["obs_prev_state"] = self._amp.states(take(self.observations, previous))
            if self.reference_observations is not None:
                mask = take(self.reference_observations_mask, previous) & has_one
                reference = self._amp.reference_states(
                    take(self.reference_observations, previous), mask
                )
                items["ref_obs_prev_state"], items["ref_obs_prev_mask"] = reference
        hidden_states = self._hidden.take(indices if masks is None else indices[0])
        return MiniBatch(indices=indices, masks=masks, hidden_states=hidden_states, **items)

    def generator(self) -> Iterator[tuple[Any, ...]]:
        """The steps of a distillation rollout in order, as views: tuples of observations, the teacher's observations
        (or the student's), (reference observations, mask) or None, the same of the teacher, actions, the teacher's
        actions, dones. RuntimeError if the rollout is not full, ValueError unless in distillation."""
        self._require("generator", "distillation")
        teacher = (
            self.observations
            if self.privileged_observations is None
            else self.privileged_observations
        )
        actor = self.reference_observations, self.reference_observations_mask
        critic = self.privileged_reference_observations, self.privileged_reference_observations_mask
        nothing = (None,) * self.num_transitions_per_env
        references = [
            nothing if pair[0] is None else zip(*pair, strict=True) for pair in (actor, critic)
        ]
        actions = self.actions, self.privileged_actions
        return zip(self.observations, teacher, *references, *actions, self.dones, strict=True)

    def _require(
        self, caller: str, training_type: str | None = None, returns: bool = False
    ) -> None:
        if training_type not in (None, own := self.training_type):
            raise ValueError(
                f"{caller} is for training_type {training_type!r}, this storage's is {own!r}"
            )
        if self.step < (steps := self.num_transitions_per_env):
            held = f"observations and the other buffers hold {self.step} of num_transitions_per_env = {steps} steps"
            raise RuntimeError(
                f"{caller} needs a full rollout: {held}; go on with add_transitions()"
            )
        if returns and not self.has_returns:
            raise RuntimeError(
                f"{caller} needs returns and advantages of this rollout: call compute_returns() first"
            )

    def state_dict(self) -> dict[str, Any]:
        """Copies of everything, also of an unfinished rollout; ``torch.save`` takes it as it is."""
        return {
            "step": self.step,
            "has_returns": self.has_returns,
            "buffers": {name: buffer.clone() for name, buffer in self._buffers().items()},
            "hidden_states": self._hidden.state_dict(),
        }

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Return exactly to a state from :meth:`state_dict`, of any device; ValueError if it is of another storage."""
        buffers, saved = self._buffers(), state["buffers"]
        if buffers.keys() != saved.keys():
            differing = sorted(buffers.keys() ^ saved.keys())
            raise ValueError(
                f"the state is of a storage with other arguments: only one of the two has {differing}"
            )
        for name, buffer in buffers.items():
            expected, got = ((tuple(t.shape), t.dtype) for t in (buffer, saved[name]))
            if expected != got:
                raise ValueError(
                    f"{name}: expected {expected}, the state's is {got}: it is of another storage"
                )
        step = whole_number("state['step']", state["step"], 0)
        check_number("state['step']", step, 0, self.num_transitions_per_env)
        self._hidden.check_state(state["hidden_states"])
        for name, buffer in buffers.items():
            buffer.copy_(saved[name])
        self.step = step
        self._stale_returns = (None, 0) if state["has_returns"] else self._written_returns()
        self._hidden.load_state_dict(state["hidden_states"])

    def __getstate__(self) -> dict[str, Any]:
        arguments = inspect.signature(RolloutStorageMM).parameters
        return {
            "arguments": {name: getattr(self, name) for name in arguments},
            "state": self.state_dict(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        # torch.load(map_location=...) moves the buffers, and the storage goes with them.
        arguments = state["arguments"] | {
            "device": state["state"]["buffers"]["observations"].device
        }
        self.__init__(**arguments)  # type: ignore[misc]
        for name, buffer in state["state"][
            "buffers"
        ].items():  # of which one may have been replaced
            setattr(self, name, torch.empty_like(buffer))
        self.load_state_dict(state["state"])
