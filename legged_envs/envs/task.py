"""The interface between the core environment and a task."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import gymnasium as gym
import numpy as np
import torch

from legged_envs.state import State, Tree

if TYPE_CHECKING:
    from legged_envs.envs.cfg import TaskCfg
    from legged_envs.envs.core import CoreVectorEnv

Space: TypeAlias = gym.Space[Any]
"""Any space of Gymnasium."""
Action: TypeAlias = Tree
"""Actions of all environments: an array or lists for a box, otherwise as the space is nested."""
Observation: TypeAlias = Tree
"""Observations of all environments: an array, or a dict of them by group."""
Info: TypeAlias = dict[str, Tree]
"""Further results of a step or reset: arrays, or dicts of them, by name."""


class Evaluation(NamedTuple):
    """Result of a transition, which the last physics steps made. N is the number of
    environments."""

    terminated: torch.Tensor
    """Environments with an episode that the task ends. Shape: (N,), bool."""
    reward: torch.Tensor
    """Reward of the transition. Shape: (N,)."""
    cost: torch.Tensor
    """Scalar cost of the transition, at least 0. Shape: (N,)."""
    costs: torch.Tensor
    """Cost terms in the order of :attr:`Task.cost_names`. Shape: (N, K)."""
    truncated: torch.Tensor | None = None
    """Environments with an episode that the task cuts off without a failure. Shape: (N,), bool.

    None: no environment. The time limit is not included, because ``TimeLimit`` enforces it.
    """


class Spaces(NamedTuple):
    """Spaces of one environment."""

    observations: dict[str, Space]
    """Name of each observation group mapped to its space; ``"policy"`` is one of them."""
    action: Space
    """Space of the actions."""


class Task(ABC):
    """Interface of a task, which :class:`~legged_envs.envs.core.CoreVectorEnv` calls.

    The core calls the methods in this order. When an environment is made: :meth:`attach`, then
    :meth:`build`. In a step: :meth:`act`, :meth:`evaluate`, :meth:`advance`, :meth:`observe`. In a
    reset: :meth:`end_episodes` for the episodes that were running, :meth:`place`,
    :meth:`begin_episodes`, :meth:`observe`.

    Args:
        cfg: Configuration of robot, physics, scene and time limit, and of all other parts that the
            task reads.
    """

    cost_names: tuple[str, ...] = ()
    """Names of the columns of ``info["costs"]``."""
    cost_limits: tuple[float, ...] = ()
    """Largest allowed mean per step of each cost."""
    log_names: tuple[str, ...] = ()
    """Names of the columns that :meth:`end_episodes` returns."""
    uses_inference_mode = True
    """True if the methods run in PyTorch's inference mode, which is faster.

    Otherwise the methods run without gradients, so that tensors from the methods can be changed
    from outside.
    """
    is_complete = True
    """False while the constructor of a user's object runs that the task needs.

    The environment of an incomplete task is built when it is first used.
    """
    actions_are_targets = True
    """True if the joint targets depend only on the action, as defined by ``cfg.actions``."""

    def __init__(self, cfg: "TaskCfg"):
        self.cfg = cfg
        """Configuration of the task."""

    def attach(self, env: "CoreVectorEnv") -> None:
        """Bind the task to its environment, before anything else is called.

        Args:
            env: The environment, which has ``sim``, ``robot``, ``random`` and ``ground``.
        """
        self.env = env
        """The environment that has this task."""

    @abstractmethod
    def build(self) -> Spaces:
        """Build what the task needs, and return the spaces of one environment."""

    def verify(self) -> None:
        """Check the task by running it once; called after :meth:`build`, changes nothing."""

    def first_seed(self) -> int:
        """Return the seed of a first reset without a seed; the operating system draws the
        number."""
        # A number, and not a generator: it is kept as ``np_random_seed``, which repeats the run.
        return int(np.random.SeedSequence().generate_state(1)[0])

    @abstractmethod
    def act(self, action: Action) -> None:
        """Turn actions into joint targets, and step the physics.

        Args:
            action: Finite actions that are not clipped yet, shape (N, num_actions).
        """

    @abstractmethod
    def evaluate(self) -> Evaluation:
        """Evaluate the transition. The robots have already read the simulation; the task derives
        all other quantities."""

    def advance(self) -> None:
        """Advance commands and interval events, such as pushes, by one control step."""

    @abstractmethod
    def observe(self, env_ids: torch.Tensor | None) -> dict[str, Observation]:
        """Return new tensors of the observation groups.

        Args:
            env_ids: Environments with a new episode, shape (n,); None for a step of all.

        Returns:
            At least the groups of the environment's observation space, with a row for each of
            ``env_ids`` or of all environments.
        """

    def place(self, env_ids: torch.Tensor, seeded: bool) -> None:
        """Draw commands, and write the first poses of the environments ``env_ids``, shape (n,).

        Args:
            env_ids: Environments with a new episode.
            seeded: True if the random streams of ``env_ids`` have just been seeded.
        """

    def begin_episodes(self, env_ids: torch.Tensor) -> None:
        """Begin the histories of ``env_ids`` (n,); their robots stand in the first pose."""

    def end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """Return the logged values of the finished episodes.

        Args:
            env_ids: Environments with an ended episode, shape (n,).
            steps: Length of each episode in control steps, shape (n,).

        Returns:
            A row per episode with a column per name in :attr:`log_names`, shape (n, columns).
        """
        # float32 also where the caller has set another default dtype.
        columns = len(self.log_names)
        return torch.zeros(len(env_ids), columns, dtype=torch.float32, device=env_ids.device)

    def take_log(self) -> Info:
        """Return further entries of ``info["log"]`` of a reset, and forget them."""
        return {}

    def step_info(self) -> dict[str, torch.Tensor]:
        """Return further entries of ``info`` of a step. Shapes: (N, …)."""
        return {}

    def forget_last_observation(self) -> None:
        """Undo this step's entry in the observation histories: the step is observed again."""

    def state(self) -> State:
        """Return a copy of everything that later steps depend on.

        The core saves simulation, robots, random streams and the last observation.
        """
        return {}

    def state_template(self) -> State:
        """Return what a state must look like: the structure of :meth:`state`, with None for entries
        that may differ."""
        return self.state()

    def check_state(self, state: State) -> None:
        """Check a state that has the structure of :meth:`state`.

        Raises:
            ValueError: If the state belongs to another environment.
        """

    def load_changes(self, state: State) -> None:
        """Rebuild what a state needs before it can be loaded.

        Raises:
            ValueError: If rebuilding is not possible; nothing is changed then.
        """

    def load_state(self, state: State) -> None:
        """Return to a state from :meth:`state` that has been checked."""

    def close(self) -> None:
        """Release large objects."""
