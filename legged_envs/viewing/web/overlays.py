"""Arrows and points that the page draws on the robots: commands, velocities, forces, contacts."""

from typing import Any

import numpy as np
import torch
import viser

from legged_envs.mdp.scan import scan_points
from legged_envs.viewing.watch import find_height_scan
from legged_envs.viewing.web.session import Session

WEIGHT_ARROW_LENGTH = 0.5
"""Length of the arrow of a force that carries the robot, m."""
SMALLEST_SHOWN_FORCE = 1.0
"""Smallest contact force that is drawn, N."""
VELOCITY_ARROW_LENGTH = 0.5
"""Length of the arrow of a velocity of 1 m/s, m."""
SMALLEST_SHOWN_SPEED = 0.02
"""Smallest speed that is drawn, m/s."""
ARROW_HEIGHT = 0.6
"""Height of the arrow of the command above the base, as a fraction of the base's height."""
ARROW_GAP = 0.06
"""Height of the arrow of the velocity above that of the command, m."""
SCAN_HEIGHT = 0.015
"""Height at which points of a scan are drawn above the ground, m. The ground would hide one half of
each point."""
HIGHLIGHT_COLOR = (240, 80, 30)
"""Color of forces and scans."""
CONTACT_COLOR = (170, 30, 160)
"""Color of contact points."""
COMMAND_COLOR = (40, 160, 70)
"""Color of the arrows of commands."""
VELOCITY_COLOR = (40, 100, 220)
"""Color of the arrows of measured velocities."""


class Overlays:
    """Arrows and points on the robots of a session, each of which can be hidden.

    Args:
        scene: Scene of the page.
        session: The session.
    """

    def __init__(self, scene: viser.SceneApi, session: Session):
        self._core: Any = session.core
        self._session = session

        self.forces = _add_arrows(scene, "/world/forces", HIGHLIGHT_COLOR)
        """Handle of the contact forces."""
        self.commands = _add_arrows(scene, "/world/commands", COMMAND_COLOR)
        """Handle of the arrows of the commanded velocities."""
        self.velocities = _add_arrows(scene, "/world/velocities", VELOCITY_COLOR)
        """Handle of the arrows of the measured velocities."""
        self.points = _add_points(scene, "/world/scan", HIGHLIGHT_COLOR, size=0.025)
        """Handle of the points of the height scan."""
        self.contacts = _add_points(scene, "/world/contacts", CONTACT_COLOR, size=0.03)
        """Handle of the contact points."""
        self._scan = self._find_scan()
        mass = self._core.sim.default_parameter("body_mass")[0].sum().item()
        self._weight = 9.81 * mass

    @property
    def has_commands(self) -> bool:
        """True if the task has a velocity command that the robots follow now."""
        return self._session.scene.command is not None and self._session.scene.clip is None

    def _find_scan(self) -> dict[str, Any]:
        """Return the parameters of the task's height scan, {} if it has none."""
        try:
            return find_height_scan(self._core.cfg)
        except ValueError:
            return {}

    def draw(self, followed: int, offsets: np.ndarray) -> None:
        """Show this moment.

        Args:
            followed: Environment of the robot whose height scan is drawn.
            offsets: Position of the world of each environment on the page, m. Shape: (num_envs, 3).
        """
        if self.forces.visible:
            self._draw_forces(offsets)
        if self.velocities.visible:
            self._draw_velocities(offsets)
        if self.contacts.visible:
            self._draw_contacts(offsets)
        if self.points.visible:
            scan = scan_points(self._core, **self._scan)[followed].numpy()
            shift = offsets[followed] + np.array((0.0, 0.0, SCAN_HEIGHT))
            self.points.points = scan + shift.astype(np.float32)

    def _draw_forces(self, offsets: np.ndarray) -> None:
        sim = self._core.sim
        start = sim.body_pos_w + torch.from_numpy(offsets).float()[:, None]
        force = sim.contact_force_w
        end = start + force * (WEIGHT_ARROW_LENGTH / self._weight)
        # Bodies without contact would have arrows without length.
        is_shown = force.norm(dim=-1) > SMALLEST_SHOWN_FORCE
        self.forces.points = torch.stack((start, end), dim=2)[is_shown].numpy()

    def _draw_velocities(self, offsets: np.ndarray) -> None:
        robot = self._core.robot
        start = robot.root_pos_w.numpy() + offsets
        start[:, 2] += ARROW_HEIGHT * self._core.cfg.robot.base_height
        command = self._session.scene.command
        if self.has_commands and command is not None:
            heading = robot.heading().numpy()
            vx, vy, _ = command
            # The command is given along the heading of each robot.
            x = vx * np.cos(heading) - vy * np.sin(heading)
            y = vx * np.sin(heading) + vy * np.cos(heading)
            self.commands.points = _make_arrows(start, np.stack((x, y), axis=1))
        start[:, 2] += ARROW_GAP
        velocity = self._core.sim.root_lin_vel_w[:, :2].numpy()
        self.velocities.points = _make_arrows(start, velocity)

    def _draw_contacts(self, offsets: np.ndarray) -> None:
        points = []
        for env_id, offset in enumerate(offsets):
            points.append(self._core.sim.contact_points(env_id) + offset)
        self.contacts.points = np.concatenate(points).astype(np.float32)


def _make_arrows(start: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """Return the starts and ends of arrows of horizontal velocities.

    Args:
        start: Starts, m. Shape: (n, 3).
        velocity: Velocities, m/s. Shape: (n, 2).

    Returns:
        The arrows of velocities that are not too small. Shape: (at most n, 2, 3), float32.
    """
    end = start.copy()
    end[:, :2] += velocity * VELOCITY_ARROW_LENGTH
    is_shown = np.linalg.norm(velocity, axis=1) > SMALLEST_SHOWN_SPEED
    return np.stack((start, end), axis=1)[is_shown].astype(np.float32)


def _add_arrows(scene: Any, name: str, color: tuple[int, int, int]) -> Any:
    return scene.add_arrows(
        name,
        np.zeros((0, 2, 3), np.float32),
        color,
        visible=False,
        shaft_radius=0.01,
        head_radius=0.025,
        head_length=0.05,
    )


def _add_points(
    scene: viser.SceneApi, name: str, color: tuple[int, int, int], size: float
) -> viser.PointCloudHandle:
    return scene.add_point_cloud(
        name,
        np.zeros((0, 3), np.float32),
        color,
        point_size=size,
        precision="float32",
        visible=False,
    )
