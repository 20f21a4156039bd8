"""The simulation of an ``RLTask`` in the words of Isaac Sim's core API."""

from typing import TYPE_CHECKING, Literal, TypeVar, cast

from legged_envs.compat.isaac_lab.entities import Articulation
from legged_envs.envs import CoreVectorEnv
from legged_envs.state import Stateful

if TYPE_CHECKING:
    from legged_envs.compat.adapter import AdapterTask
    from legged_envs.compat.omni_isaac_gym.articulation_view import RigidPrimView

Status = Literal["playing", "paused", "stopped"]
View = TypeVar("View", bound="RigidPrimView")


class World(Stateful):
    """The simulation of a task, which is also the scene to which views are added.

    It plays from the start. :meth:`play`, :meth:`pause` and :meth:`stop` may be called from any
    thread; a :class:`~legged_envs.compat.omni_isaac_gym.VecEnvMT` heeds them.

    Args:
        core: The environment of the task.
    """

    STATE = ("entities",)

    def __init__(self, core: CoreVectorEnv):
        self.core = core
        """The environment of the task."""
        self.scene = self
        """The scene: this object."""
        self.status: Status = "playing"
        """State of the simulation: ``"playing"``, ``"paused"`` or ``"stopped"``."""
        # Articulation registers itself here, so this line comes before the next.
        self.entities: dict[str, Stateful] = {}
        """Robots that have a saved state, by name."""
        self.robots = Articulation(core.cfg.robot, self)
        """The robots, which the views show."""

    def add(self, view: View) -> View:
        """Make a view show the robots.

        Args:
            view: A view of robots or bodies.

        Returns:
            The view.
        """
        view.initialize(self.robots)
        return view

    def is_playing(self) -> bool:
        """Return True if the simulation is neither paused nor stopped."""
        return self.status == "playing"

    def play(self) -> None:
        """Continue after :meth:`pause`."""
        self.status = "playing"

    def pause(self) -> None:
        """Let a threaded environment wait."""
        self.status = "paused"

    def stop(self) -> None:
        """Let a threaded environment end."""
        self.status = "stopped"

    def step(self, render: bool = False) -> None:
        """Make one physics step of all environments.

        Args:
            render: True to show the first environment in the window, if there is one.
        """
        self.core.sim.step(1)
        if render:
            cast("AdapterTask", self.core.task).user._env.render("human")
