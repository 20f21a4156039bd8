"""The buffers of a rollout: which of them exist, their shapes, and their saved state."""

import torch

from legged_envs.checks import check_choice, check_number, whole_number
from legged_envs.state import State
from legged_envs.storage.amp import AmpCfg
from legged_envs.storage.fields import BUFFERS, Shape, entry_shape
from legged_envs.storage.hidden_states import HiddenStateBuffers
from legged_envs.tables import TableRepr


class RolloutBuffers(TableRepr):
    """The arguments and the buffers of :class:`RolloutStorageMM`.

    A buffer has the shape (num_transitions_per_env, num_envs, …) and torch's default dtype; masks
    are bool and ``dones`` uint8. Another tensor may be assigned. A buffer that the arguments do not
    ask for is None. Buffers of the other training type are not attributes.

    Raises:
        ValueError: If an argument is out of range or has no meaning.
    """

    observations: torch.Tensor
    """Observations of the actor. Shape: (num_transitions_per_env, num_envs, *obs_shape)."""

    privileged_observations: torch.Tensor | None
    """Observations of the critic, or of the teacher, if ``privileged_obs_shape`` is given.
    Shape: (num_transitions_per_env, num_envs, *privileged_obs_shape)."""

    reference_observations: torch.Tensor | None
    """Reference observations of the actor, if ``ref_obs_shape`` is given.
    Shape: (num_transitions_per_env, num_envs, *ref_obs_shape)."""

    reference_observations_mask: torch.Tensor | None
    """True where the actor had a reference. Shape: (num_transitions_per_env, num_envs), bool."""

    privileged_reference_observations: torch.Tensor | None
    """Reference observations of the critic, if both reference shapes are given.
    Shape: (num_transitions_per_env, num_envs, *privileged_ref_obs_shape)."""

    privileged_reference_observations_mask: torch.Tensor | None
    """True where the critic had a reference. Shape: (num_transitions_per_env, num_envs), bool."""

    actions: torch.Tensor
    """Actions that were taken. Shape: (num_transitions_per_env, num_envs, *actions_shape)."""

    rewards: torch.Tensor
    """Rewards. Shape: (num_transitions_per_env, num_envs, 1)."""

    dones: torch.Tensor
    """1 where a step ended an episode. Shape: (num_transitions_per_env, num_envs, 1), uint8."""

    dagger_actions: torch.Tensor | None
    """Actions of the DAgger network, with ``apply_dagger_actions``.
    Shape: (num_transitions_per_env, num_envs, *actions_shape)."""

    privileged_actions: torch.Tensor
    """Actions of the teacher, only in distillation.
    Shape: (num_transitions_per_env, num_envs, *actions_shape)."""

    values: torch.Tensor
    """Values that the critic gave, only in ``"rl"``.
    Shape: (num_transitions_per_env, num_envs, 1)."""

    actions_log_prob: torch.Tensor
    """Log probabilities of the actions, only in ``"rl"``.
    Shape: (num_transitions_per_env, num_envs, 1)."""

    returns: torch.Tensor
    """Returns, only in ``"rl"``. Shape: (num_transitions_per_env, num_envs, 1)."""

    advantages: torch.Tensor
    """Advantages, only in ``"rl"``. Shape: (num_transitions_per_env, num_envs, 1)."""

    mu: torch.Tensor
    """Means of the policy's distribution, only in ``"rl"``.
    Shape: (num_transitions_per_env, num_envs, *actions_shape)."""

    sigma: torch.Tensor
    """Standard deviations of the policy's distribution, only in ``"rl"``.
    Shape: (num_transitions_per_env, num_envs, *actions_shape)."""

    rnd_state: torch.Tensor | None
    """Input of random network distillation, if ``rnd_state_shape`` is given.
    Shape: (num_transitions_per_env, num_envs, *rnd_state_shape)."""

    cost_rewards: torch.Tensor | None
    """Costs, with ``num_costs``. Shape: (num_transitions_per_env, num_envs, num_costs)."""

    cost_values: torch.Tensor | None
    """Values of the cost critics, with ``num_costs``.
    Shape: (num_transitions_per_env, num_envs, num_costs)."""

    cost_returns: torch.Tensor | None
    """Returns of each cost, with ``num_costs``.
    Shape: (num_transitions_per_env, num_envs, num_costs)."""

    cost_advantages: torch.Tensor | None
    """Advantages with respect to each cost, with ``num_costs``.
    Shape: (num_transitions_per_env, num_envs, num_costs)."""

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
        apply_dagger_actions: bool,
        rnd_state_shape: Shape,
        amp_cfg: AmpCfg | None,
        device: str | torch.device,
        num_costs: int,
    ):
        check_choice("training_type", training_type, ("rl", "distillation"))
        self.training_type = training_type
        """``"rl"`` or ``"distillation"``."""
        self.num_envs = whole_number("num_envs", num_envs)
        """Number of environments."""
        self.num_transitions_per_env = whole_number(
            "num_transitions_per_env", num_transitions_per_env
        )
        """Steps of a rollout."""
        self.obs_shape = entry_shape("obs_shape", obs_shape)
        """Shape of the actor's observations of one environment."""
        self.ref_obs_shape = entry_shape("ref_obs_shape", ref_obs_shape)
        """Shape of the actor's reference observations, or None."""
        self.privileged_obs_shape = entry_shape("privileged_obs_shape", privileged_obs_shape)
        """Shape of the critic's or teacher's observations, or None."""
        self.privileged_ref_obs_shape = entry_shape(
            "privileged_ref_obs_shape", privileged_ref_obs_shape
        )
        """Shape of the critic's reference observations, or None."""
        self.actions_shape = entry_shape("actions_shape", actions_shape)
        """Shape of the actions of one environment."""
        self.rnd_state_shape = entry_shape("rnd_state_shape", rnd_state_shape)
        """Shape of the input of random network distillation, or None."""
        if self.obs_shape is None or self.actions_shape is None:
            raise ValueError(
                f"obs_shape and actions_shape are needed, got {obs_shape!r} and {actions_shape!r}"
            )
        self.apply_dagger_actions = bool(apply_dagger_actions)
        """True if the actions of a DAgger network are kept."""
        self.num_costs = whole_number("num_costs", num_costs, 0)
        """Number of cost terms, each with a critic."""
        # A student imitates its teacher, and has no critics.
        if self.num_costs and training_type != "rl":
            raise ValueError(
                f"num_costs must be 0 in distillation, which learns from no cost, got {num_costs}"
            )
        self.amp_cfg = amp_cfg
        """Configuration of the adversarial motion prior, or None."""
        self.device = torch.device(device)
        """Device of the buffers."""
        self.step = 0
        """Number of transitions that the rollout has so far."""
        self._row_views: dict[str, tuple[torch.Tensor, list[torch.Tensor]]] = {}
        # A tensor made in inference mode could not be written outside of it.
        with torch.inference_mode(False):
            self._allocate_observations()
            self._allocate_actions_and_rewards()
            if training_type == "rl":
                self._allocate_rl()
            else:
                self.privileged_actions = self._zeros(self.actions_shape)
        self._hidden = HiddenStateBuffers(
            self.num_transitions_per_env, self.num_envs, self.observations.device
        )

    def _allocate_observations(self) -> None:
        assert self.obs_shape is not None
        self.observations = self._zeros(self.obs_shape)
        self.privileged_observations = self._zeros_or_none(self.privileged_obs_shape)
        self.reference_observations = self._zeros_or_none(self.ref_obs_shape)
        self.reference_observations_mask = None
        self.privileged_reference_observations = None
        self.privileged_reference_observations_mask = None
        if self.ref_obs_shape is not None:
            self.reference_observations_mask = self._zeros((), torch.bool)
            # Without a reference of the actor there is no reference motion at all.
            if self.privileged_ref_obs_shape is not None:
                self.privileged_reference_observations = self._zeros(self.privileged_ref_obs_shape)
                self.privileged_reference_observations_mask = self._zeros((), torch.bool)
        self.rnd_state = self._zeros_or_none(self.rnd_state_shape)

    def _allocate_actions_and_rewards(self) -> None:
        assert self.actions_shape is not None
        self.actions = self._zeros(self.actions_shape)
        self.rewards = self._zeros((1,))
        # uint8 and not bool, as in rsl_rl's storage.
        self.dones = self._zeros((1,), torch.uint8)
        self.dagger_actions = None
        if self.apply_dagger_actions:
            self.dagger_actions = self._zeros(self.actions_shape)
        costs_shape = (self.num_costs,) if self.num_costs else None
        self.cost_rewards = self._zeros_or_none(costs_shape)
        self.cost_values = self._zeros_or_none(costs_shape)
        self.cost_returns = self._zeros_or_none(costs_shape)
        self.cost_advantages = self._zeros_or_none(costs_shape)

    def _allocate_rl(self) -> None:
        assert self.actions_shape is not None
        self.values = self._zeros((1,))
        self.actions_log_prob = self._zeros((1,))
        self.returns = self._zeros((1,))
        self.advantages = self._zeros((1,))
        self.mu = self._zeros(self.actions_shape)
        self.sigma = self._zeros(self.actions_shape)

    def _zeros(self, shape: tuple[int, ...], dtype: torch.dtype | None = None) -> torch.Tensor:
        """Return a buffer for entries of a shape; a dtype of None is torch's default."""
        size = (self.num_transitions_per_env, self.num_envs, *shape)
        return torch.zeros(size, dtype=dtype, device=self.device)

    def _zeros_or_none(self, shape: tuple[int, ...] | None) -> torch.Tensor | None:
        return None if shape is None else self._zeros(shape)

    def _buffer(self, name: str) -> torch.Tensor | None:
        """Return a buffer by its name; None if this storage does not keep it."""
        buffer: torch.Tensor | None = getattr(self, name, None)
        return buffer

    def _buffers(self) -> dict[str, torch.Tensor]:
        """Return the buffers that this storage keeps, by name."""
        kept = {}
        for name in BUFFERS:
            buffer = self._buffer(name)
            if buffer is not None:
                kept[name] = buffer
        return kept

    def _rows_of(self, name: str) -> list[torch.Tensor]:
        """Return views of the steps of a buffer."""
        buffer = getattr(self, name)
        views = self._row_views.get(name)
        # Slicing at each step would take long, so views are kept until another tensor is assigned.
        if views is None or views[0] is not buffer:
            with torch.inference_mode(False):
                views = (buffer, list(buffer))
            self._row_views[name] = views
        return views[1]

    def state_dict(self) -> State:
        """Return copies of all buffers and counters, for ``torch.save``.

        The rollout need not be finished.
        """
        buffers = {name: buffer.clone() for name, buffer in self._buffers().items()}
        return {
            "step": self.step,
            "buffers": buffers,
            "hidden_states": self._hidden.state_dict(),
        }

    @torch.no_grad()
    def load_state_dict(self, state: State) -> None:
        """Return exactly to a state from :meth:`state_dict`.

        Args:
            state: The state, of any device.

        Raises:
            ValueError: If the state belongs to another storage. Nothing is changed then.
        """
        buffers = self._buffers()
        saved = state["buffers"]
        if buffers.keys() != saved.keys():
            differing = sorted(buffers.keys() ^ saved.keys())
            raise ValueError(
                "the state belongs to a storage with other arguments: only one of the two has "
                f"{differing}"
            )
        for name, buffer in buffers.items():
            expected = (tuple(buffer.shape), buffer.dtype)
            got = (tuple(saved[name].shape), saved[name].dtype)
            if expected != got:
                raise ValueError(
                    f"{name}: expected {expected}, but the state has {got}: it belongs to another "
                    "storage"
                )
        # All checks come before the first write.
        step = whole_number("state['step']", state["step"], 0)
        check_number("state['step']", step, 0, self.num_transitions_per_env)
        self._hidden.check_state(state["hidden_states"])
        for name, buffer in buffers.items():
            buffer.copy_(saved[name])
        self.step = step
        self._hidden.load_state_dict(state["hidden_states"])

    # By arguments and copies of the buffers: the views of their rows are made again.
    def __getstate__(self) -> State:
        return {"arguments": self._arguments(), "state": self.state_dict()}

    def __setstate__(self, state: State) -> None:
        buffers = state["state"]["buffers"]
        arguments = dict(state["arguments"])
        # torch.load(map_location=...) moves the buffers, and the storage goes with them.
        arguments["device"] = buffers["observations"].device
        self.__init__(**arguments)  # type: ignore[misc]
        for name, buffer in buffers.items():
            # A tensor of another shape or dtype may have been assigned.
            setattr(self, name, torch.empty_like(buffer))
        self.load_state_dict(state["state"])

    def _arguments(self) -> State:
        """Return the arguments of the constructor by name, for a pickle."""
        return {
            "training_type": self.training_type,
            "num_envs": self.num_envs,
            "num_transitions_per_env": self.num_transitions_per_env,
            "obs_shape": self.obs_shape,
            "ref_obs_shape": self.ref_obs_shape,
            "privileged_obs_shape": self.privileged_obs_shape,
            "privileged_ref_obs_shape": self.privileged_ref_obs_shape,
            "actions_shape": self.actions_shape,
            "apply_dagger_actions": self.apply_dagger_actions,
            "rnd_state_shape": self.rnd_state_shape,
            "amp_cfg": self.amp_cfg,
            "device": self.device,
            "num_costs": self.num_costs,
        }
