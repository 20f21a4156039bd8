"""Contact forces and times of some bodies of a robot, in Isaac Lab's words."""

import torch
from torch import Tensor

from legged_envs.checks import match_names, whole_number
from legged_envs.compat.isaac_lab.entities import ALL, HasBodies, Ids, find_robot
from legged_envs.compat.isaac_lab.scene_setup import scene_of
from legged_envs.configuration import configclass

TIME_TOLERANCE = 1e-6
"""Largest rounding error of a sum of time steps, s."""


@configclass
class ContactSensorCfg:
    """Settings of a contact sensor."""

    prim_path: str = ".*"
    """Path with the name of the robot in it. The part after the last ``/`` is a regular expression
    for the bodies."""
    update_period: float = 0.0
    """Least time between two readings, s. 0: a reading in every update of the scene."""
    history_length: int = 0
    """Number of readings in the history; 0 as 1."""
    force_threshold: float = 1.0
    """Force above which a body is in contact, N."""
    track_air_time: bool = False
    """This setting has no effect: the times are always measured."""
    debug_vis: bool = False
    """This setting has no effect."""


class ContactSensor(HasBodies):
    """Contact forces of some bodies of a robot, and the times of their contacts.

    All are 0 after a reset. Where a body has not touched down or lifted off yet, a last time is 0.

    Args:
        cfg: Settings.

    Raises:
        ValueError: If no body matches.
        RuntimeError: If no scene is being set up.
    """

    STATE = (
        "net_forces_w_history",
        "last_air_time",
        "current_air_time",
        "last_contact_time",
        "current_contact_time",
        "_elapsed",
    )

    def __init__(self, cfg: ContactSensorCfg):
        robots = scene_of(self).core.sim.robots
        whole_number("ContactSensorCfg.history_length", cfg.history_length, 0)
        *path, pattern = cfg.prim_path.split("/")

        self.cfg = cfg
        """Settings."""
        self._robot = robots[find_robot(path, robots)]
        self._body_ids, self.body_names = match_names("body", pattern, self._robot.body_names)

        self.num_bodies = len(self.body_names)
        """Number of bodies."""
        force = self._robot.contact_force_w[:, self._body_ids]
        history = torch.zeros_like(force).unsqueeze(1)

        self.net_forces_w_history = history.repeat(1, max(1, cfg.history_length), 1, 1)
        """Net contact forces, N, the newest first. Shape: (num_envs, history, num_bodies, 3)."""
        self.last_air_time = torch.zeros_like(force[..., 0])
        """Duration of the last swing, s. Shape: (num_envs, num_bodies)."""
        self.current_air_time = torch.zeros_like(force[..., 0])
        """Time since the body lifted off, s; 0 in contact. Shape: (num_envs, num_bodies)."""
        self.last_contact_time = torch.zeros_like(force[..., 0])
        """Duration of the last stance, s. Shape: (num_envs, num_bodies)."""
        self.current_contact_time = torch.zeros_like(force[..., 0])
        """Time since the body touched down, s; 0 in the air. Shape: (num_envs, num_bodies)."""
        self._elapsed = 0.0

    @property
    def data(self) -> "ContactSensor":
        """The sensor itself, which has its readings as attributes."""
        return self

    @property
    def net_forces_w(self) -> Tensor:
        """Net contact forces of the last reading, N. Shape: (num_envs, num_bodies, 3)."""
        return self.net_forces_w_history[:, 0]

    def reset(self, env_ids: Ids = None) -> None:
        """Begin the episodes of ``env_ids``: set forces and times to 0."""
        rows = ALL if env_ids is None else env_ids
        self.net_forces_w_history[rows] = 0.0
        self.last_air_time[rows] = 0.0
        self.current_air_time[rows] = 0.0
        self.last_contact_time[rows] = 0.0
        self.current_contact_time[rows] = 0.0

    def update(self, dt: float) -> None:
        """Read the forces, unless the last reading is too recent.

        Args:
            dt: Time since the last call, s.
        """
        self._elapsed += dt
        if self._elapsed < self.cfg.update_period - TIME_TOLERANCE:
            return
        elapsed = self._elapsed
        self._elapsed = 0.0
        force = self._robot.contact_force_w[:, self._body_ids]
        self.net_forces_w_history = torch.cat(
            (force.unsqueeze(1), self.net_forces_w_history[:, :-1]), dim=1
        )
        has_contact = torch.linalg.vector_norm(force, dim=-1) > self.cfg.force_threshold
        self.current_air_time, self.last_air_time = _advance_times(
            self.current_air_time, self.last_air_time, ~has_contact, elapsed
        )
        self.current_contact_time, self.last_contact_time = _advance_times(
            self.current_contact_time, self.last_contact_time, has_contact, elapsed
        )

    def compute_first_contact(self, dt: float, abs_tol: float = 1e-8) -> Tensor:
        """Return the bodies that touched down within the last ``dt`` seconds.

        Args:
            dt: Time, s.
            abs_tol: Tolerance of the time, s.

        Returns:
            Flags, shape (num_envs, num_bodies), bool.
        """
        return _began_within(self.current_contact_time, dt + abs_tol)

    def compute_first_air(self, dt: float, abs_tol: float = 1e-8) -> Tensor:
        """Return the bodies that lifted off within the last ``dt`` seconds.

        Args:
            dt: Time, s.
            abs_tol: Tolerance of the time, s.

        Returns:
            Flags, shape (num_envs, num_bodies), bool.
        """
        return _began_within(self.current_air_time, dt + abs_tol)


def _advance_times(
    current: Tensor, last: Tensor, is_on: Tensor, elapsed: float
) -> tuple[Tensor, Tensor]:
    """Return the new time since a phase began, and the duration of the last finished phase.

    Args:
        current: Time since the phase began, s; 0 outside of the phase.
        last: Duration of the last phase, s.
        is_on: True where the body is in the phase now.
        elapsed: Time since ``current`` was measured, s.
    """
    extended = current + elapsed
    has_ended = ~is_on & (current > 0.0)
    return extended * is_on, torch.where(has_ended, extended, last)


def _began_within(current: Tensor, duration: float) -> Tensor:
    return (current > 0.0) & (current < duration)
