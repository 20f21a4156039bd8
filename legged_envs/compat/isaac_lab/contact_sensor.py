"""Contact forces and times of some bodies of a robot, in Isaac Lab's words."""

from functools import partialmethod

import torch
from torch import Tensor

from legged_envs.checks import match_names, whole_number
from legged_envs.compat.isaac_lab.entities import HasBodies, Ids, scene_of
from legged_envs.configuration import configclass


@configclass
class ContactSensorCfg:
    prim_path: str = ".*"
    """What stands after the last ``/`` is a regular expression for the bodies; before it may stand the robot."""
    update_period: float = 0.0
    """Least time between two readings, s; 0 reads after each physics step, or after each control step."""
    history_length: int = 0
    force_threshold: float = 1.0
    """N, above which a body is in contact."""
    track_air_time = debug_vis = False
    """Are accepted: the times are always there."""


class ContactSensor(HasBodies):
    """Contact forces of some bodies of a robot, ``net_forces_w_history``, N, the newest first, (num_envs, history,
    num_bodies, 3); and ``last_air_time``, ``current_air_time``, ``last_contact_time``, ``current_contact_time``, the
    duration of the last and of the present swing and stance, s, 0 where there is none, (num_envs, num_bodies). All are
    0 after a reset."""

    TIMES = ("last_air_time", "current_air_time", "last_contact_time", "current_contact_time")
    STATE = ("net_forces_w_history", *TIMES, "_elapsed")
    data = property(lambda self: self)
    net_forces_w = property(lambda self: self.net_forces_w_history[:, 0])

    def __init__(self, cfg: ContactSensorCfg):
        robots = scene_of(self).core.sim.robots
        whole_number("ContactSensorCfg.history_length", cfg.history_length, 0)
        *path, bodies = cfg.prim_path.split("/")
        name = next((part.lower() for part in path if part.lower() in robots), "robot")
        self.cfg, self._body, self._elapsed = cfg, robots[name], 0.0
        self._ids, self.body_names = match_names("body", bodies, self._body.body_names)
        self.num_bodies, force = len(self.body_names), self._body.contact_force_w[:, self._ids]
        self.net_forces_w_history = (
            torch.zeros_like(force).unsqueeze(1).repeat(1, max(1, cfg.history_length), 1, 1)
        )
        vars(self).update({name: torch.zeros_like(force[..., 0]) for name in self.TIMES})

    def reset(self, env_ids: Ids = None) -> None:
        for name in ("net_forces_w_history", *self.TIMES):
            getattr(self, name)[slice(None) if env_ids is None else env_ids] = 0.0

    def update(self, dt: float) -> None:
        self._elapsed += dt
        if self._elapsed < self.cfg.update_period - 1e-6:
            return
        dt, self._elapsed = self._elapsed, 0.0
        force = self._body.contact_force_w[:, self._ids]
        self.net_forces_w_history = torch.cat(
            (force.unsqueeze(1), self.net_forces_w_history[:, :-1]), dim=1
        )
        touching = torch.linalg.vector_norm(force, dim=-1) > self.cfg.force_threshold
        for kind, is_so in (("air", ~touching), ("contact", touching)):
            current, last = (
                getattr(self, f"current_{kind}_time"),
                getattr(self, f"last_{kind}_time"),
            )
            setattr(
                self, f"last_{kind}_time", torch.where(~is_so & (current > 0.0), current + dt, last)
            )
            setattr(self, f"current_{kind}_time", (current + dt) * is_so)

    def _first(self, kind: str, dt: float, abs_tol: float = 1e-8) -> Tensor:
        """Which bodies touched down, or lifted off, within the last ``dt`` s. Shape: (num_envs, num_bodies), bool."""
        time = getattr(self, f"current_{kind}_time")
        return (time > 0.0) & (time < dt + abs_tol)

    compute_first_contact, compute_first_air = (
        partialmethod(_first, "contact"),
        partialmethod(_first, "air"),
    )
