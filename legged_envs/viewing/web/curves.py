"""Plots of the followed robot: velocity, reward terms, cost terms and joint torques."""

import numpy as np

from legged_envs.viewing.labels import SmoothedVelocity
from legged_envs.viewing.web.controls import Controls
from legged_envs.viewing.web.plots import NUM_CHOSEN, Plot
from legged_envs.viewing.web.session import Session

VELOCITY_CURVES = ("vx", "command vx", "vy", "command vy", "wz", "command wz")
"""Names of the curves of the velocity, each followed by that of its command."""


class Curves:
    """Plots of one robot in a panel of the page, each in a tab.

    Args:
        controls: Controls of the page.
        session: The session.
    """

    def __init__(self, controls: Controls, session: Session):
        self.plots: dict[str, Plot] = {}
        """The plots, by the names of their tabs."""
        self._session = session
        self._velocity = SmoothedVelocity()
        core = session.core
        # A limit of 0 allows no cost at all. The plot then shows the cost itself.
        self._cost_limits = np.array([limit or 1.0 for limit in core.cost_limits])
        self._torque_limits = np.array(core.cfg.robot.torque_limits)
        self._add_plots(controls)

    def _add_plots(self, controls: Controls) -> None:
        core = self._session.core
        side = controls.gui.add_panel()
        if self._session.scene.command is not None:
            with side.add_tab("velocity"):
                title = "velocity, m/s and rad/s"
                self.plots["velocity"] = Plot(
                    controls, "velocity", title, VELOCITY_CURVES, VELOCITY_CURVES[:2]
                )
        if core.rewards.names:
            weighted = []
            for name, weight in zip(core.rewards.names, core.rewards.weights, strict=True):
                if weight != 0.0:
                    weighted.append(name)
            with side.add_tab("rewards"):
                title = "weighted reward terms, 1/s"
                self.plots["rewards"] = Plot(
                    controls, "rewards", title, core.rewards.names, weighted[:NUM_CHOSEN]
                )
        if core.cost_names:
            with side.add_tab("costs"):
                title = "cost terms / their limits"
                self.plots["costs"] = Plot(
                    controls, "costs", title, core.cost_names, has_limit=True
                )
        with side.add_tab("torques"):
            title = "joint torques / their limits"
            joints = core.cfg.robot.joint_names
            self.plots["torques"] = Plot(controls, "torques", title, joints, has_limit=True)
        side.dock_left()

    @property
    def velocity(self) -> np.ndarray:
        """Smoothed velocity of the robot: vx, vy, m/s, and wz, rad/s. Shape: (3,)."""
        return self._velocity.value

    def record(self, env_id: int) -> None:
        """Add the values of a robot after one more control step.

        Args:
            env_id: Environment of the robot.
        """
        session = self._session
        core = session.core
        self._velocity.update(core, env_id)
        torques = core.robot.joint_torque[env_id].cpu().numpy() / self._torque_limits
        rows = {"torques": torques.tolist(), "rewards": session.rewards[env_id].tolist()}
        if core.cost_names:
            rows["costs"] = (session.costs[env_id].numpy() / self._cost_limits).tolist()
        if session.scene.command is not None:
            # In turn: a velocity and its command.
            pairs = np.stack((self.velocity, session.scene.command), axis=1)
            rows["velocity"] = pairs.ravel().tolist()
        time = core.num_steps * core.step_dt
        for tab, plot in self.plots.items():
            plot.add(time, rows[tab])

    def choose(self, changed: set[str]) -> None:
        """Show the curves whose checkboxes are ticked.

        Args:
            changed: Names of the controls that were changed.
        """
        for tab, plot in self.plots.items():
            if any(name.startswith(f"{tab}: ") for name in changed):
                plot.choose()

    def draw(self) -> None:
        """Show the present curves on the page."""
        for plot in self.plots.values():
            plot.draw()
