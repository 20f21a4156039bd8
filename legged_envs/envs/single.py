"""The unbatched environment: one robot as a plain ``gymnasium.Env``."""

from operator import index, itemgetter
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np

from legged_envs.envs.arguments import action_array, check_seed
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.make import make_core
from legged_envs.envs.pictures import LiveWindow
from legged_envs.envs.spec import HasTaskSpec, TaskSpec
from legged_envs.envs.task import Action, Info, Observation
from legged_envs.state import State, map_tree
from legged_envs.system_checks import has_display
from legged_envs.tables import Table, TableRepr


class LeggedEnv(HasTaskSpec, TableRepr, gym.Env):
    """One robot, without the batch dimension and without a time limit.

    ``info`` of a step holds ``cost``, a float, and ``costs``, shape (K,), in the order of
    :attr:`cost_names`.

    Args:
        cfg: Configuration of the task.
        render_mode: None, ``"rgb_array"``, or ``"human"`` for a window that shows each step in
            real time.
        kwargs: Keyword arguments of :class:`~legged_envs.envs.CoreVectorEnv`.

    Raises:
        RuntimeError: If ``render_mode`` is ``"human"`` and the machine has no display.
    """

    def __init__(self, cfg: TaskCfg, *, render_mode: str | None = None, **kwargs: Any):
        is_live = render_mode == "human"
        core_mode = "rgb_array" if is_live else render_mode
        core = make_core(cfg, 1, array="numpy", render_mode=core_mode, **kwargs)

        self.core = core
        """Vector environment with the one robot."""
        self.cfg = core.cfg
        """Configuration of the task."""
        self.task_limit = core.max_episode_length
        self.render_mode = render_mode
        self._window = LiveWindow(core.sim, core.step_dt) if is_live else None
        self.metadata = dict(core.metadata)
        del self.metadata["autoreset_mode"]
        if has_display():
            self.metadata["render_modes"] = ["human", "rgb_array"]
        self.observation_space = core.single_observation_space
        self.action_space = core.single_action_space

        self.cost_names = core.cost_names
        """Names of the elements of ``info["costs"]``."""
        self.cost_limits = core.cost_limits
        """Largest allowed mean per step of each cost."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, object] | None = None
    ) -> tuple[Observation, Info]:
        """Begin a new episode.

        Args:
            seed: Seed of the random streams. Environment 0 of a vector environment with this seed
                has the same episode. None continues the random streams.
            options: None or an empty dict.

        Returns:
            The observation and an empty ``info``.

        Raises:
            ValueError: If the seed or an option is not valid.
            TypeError: If the seed is not an integer.
        """
        # Gymnasium's own generator refuses seeds in other words than vector environments.
        check_seed(seed, num_envs=1)
        # Gymnasium's own generator, self.np_random, is seeded too, as its checker demands.
        super().reset(seed=None if seed is None else index(seed))
        if options and "reset_mask" in options:
            raise ValueError("reset_mask is for vector environments: gymnasium.make_vec")
        # The log of the vector environment is left out: it is about batches of episodes.
        observation, _ = self.core.reset(seed=seed, options=options)
        if self._window is not None:
            self._window.show()
        return self._first(observation), {}

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, Info]:
        """Advance by one control step.

        Args:
            action: Finite numbers, shape (num_actions,), clipped to the action space.

        Returns:
            Observation, reward, terminated, truncated and ``info``.

        Raises:
            TypeError: If the action is of another type.
            ValueError: If the shape of the action is wrong, or the action is not finite.
        """
        observation, reward, terminated, truncated, info = self.core.step(self._batch(action))
        if self._window is not None:
            self._window.show()
        own_info = {"cost": float(info["cost"][0]), "costs": info["costs"][0]}
        return (
            self._first(observation),
            float(reward[0]),
            bool(terminated[0]),
            bool(truncated[0]),
            own_info,
        )

    def limit_episodes(self, steps: int) -> None:
        """Write the time limit of an episode, control steps, into the specification."""
        self.task_limit = steps
        if isinstance(self._spec, TaskSpec):
            self._spec.task_limit = steps
            self._spec.kwargs["max_episode_steps"] = steps

    def _batch(self, action: Action) -> Action:
        """Return an action as a batch of one."""
        if not isinstance(self.action_space, gym.spaces.Box):
            return map_tree(lambda part: np.asarray(part)[None], action)
        if not isinstance(action, np.ndarray) or action.shape != self.action_space.shape:
            action = action_array(action, self.action_space.shape)
        return action[None]

    def render(self) -> np.ndarray | None:
        """Draw a picture, (480, 640, 3), uint8.

        The result is None without a render mode, and with ``"human"``, where the window shows each
        step.
        """
        return self.core.render()[0] if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        self.core.close()

    def get_state(self) -> State:
        """Return a copy of everything that the future of the environment depends on."""
        return self.core.get_state()

    def set_state(self, state: State) -> None:
        """Return exactly to a state from :meth:`get_state`.

        Raises:
            ValueError: If the state is of another task; nothing is changed then.
        """
        self.core.set_state(state)

    def _as_tables(self) -> list[Table]:
        return [(repr(self), (), ()), *self.core._as_tables()]

    def __repr__(self) -> str:
        name = self.spec.id if self.spec else self.cfg.robot.name
        return f"<{type(self).__name__}<{name}>>"

    @staticmethod
    def _first(observation: Observation) -> Observation:
        if isinstance(observation, np.ndarray):
            return observation[0]
        return map_tree(itemgetter(0), observation)


class EpisodeLimit(gym.wrappers.TimeLimit):
    """Gymnasium's time limit, which terminates episodes of a task with a finite horizon."""

    def extend(self, steps: int) -> None:
        """Let episodes last longer than the task's own time limit.

        Args:
            steps: New time limit of an episode, control steps.

        Raises:
            ValueError: If the methods of a user's task end the episodes.
        """
        env: Any = self.unwrapped
        core = env.core
        if not core.cfg.is_reconfigurable:
            raise ValueError(
                f"max_episode_steps={steps} of gymnasium.make exceeds the {self._max_episode_steps}"
                " steps after which the methods of this task end an episode: set its own time "
                f"limit, gymnasium.make(…, cfg={{'episode_length_s': {steps * core.step_dt:g}}})"
            )
        self._max_episode_steps = steps
        env.limit_episodes(steps)

    def get_state(self) -> State:
        """Return a copy of everything that the future of the environment depends on."""
        inner: State = self.env.get_wrapper_attr("get_state")()
        return {"env": inner, "elapsed_steps": self._elapsed_steps}

    def set_state(self, state: State) -> None:
        """Return exactly to a state from :meth:`get_state`.

        Raises:
            ValueError: If the state is of another task or without a time limit; nothing is changed
                then.
        """
        if state.keys() != {"env", "elapsed_steps"}:
            raise ValueError(
                "set_state needs a state with 'env' and 'elapsed_steps', as get_state of an "
                f"environment of gymnasium.make with a time limit returns, got {sorted(state)}"
            )
        self.env.get_wrapper_attr("set_state")(state["env"])
        self._elapsed_steps = state["elapsed_steps"]

    def step(self, action: Action) -> tuple[Observation, SupportsFloat, bool, bool, Info]:
        observation, reward, terminated, truncated, info = super().step(action)
        if truncated:
            cfg = self.env.get_wrapper_attr("cfg")
            # The limit of gym.make may be shorter than the task's: that one truncates.
            limit = cfg.max_episode_length
            is_own = limit is not None and self._elapsed_steps >= limit
            if cfg.is_finite_horizon and is_own:
                terminated = True
                truncated = False
        return observation, reward, terminated, truncated, info
