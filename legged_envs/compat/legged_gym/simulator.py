"""The simulator of a :class:`~legged_envs.compat.legged_gym.legged_robot.LeggedRobot`."""

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from legged_envs import rotation
from legged_envs.compat.legged_gym.task import LeggedGymTask
from legged_envs.mdp import observations

LEAST_CONTACT_FORCE = 1.0
"""Force from which on a body is in contact, N."""

AROUND_FEET = ((-1, 0), (1, 0), (0, -1), (0, 1), (0, 0), (-1, -1), (1, 1), (-1, 1), (1, -1))
"""Points around a foot, cells along x and y of the world."""


class Simulator:
    """The robots in LeggedGym-Ex's words.

    Base velocities are in the base frame; quaternions are (x, y, z, w).

    Args:
        task: The task with the environment that has the robots.
    """

    def __init__(self, task: LeggedGymTask):
        self._task = task

        self.core = task.env
        """The vector environment."""

    @property
    def dof_pos(self) -> Tensor:
        """Joint positions, rad. Shape: (num_envs, num_joints)."""
        return self.core.robot.joint_pos

    @property
    def dof_vel(self) -> Tensor:
        """Joint velocities, rad/s. Shape: (num_envs, num_joints)."""
        return self.core.robot.joint_vel

    @property
    def last_dof_vel(self) -> Tensor:
        """Joint velocities of the last control step, rad/s. Shape: (num_envs, num_joints)."""
        return self.core.robot.previous_joint_vel

    @property
    def dof_acc(self) -> Tensor:
        """Joint accelerations, rad/s². Shape: (num_envs, num_joints)."""
        return self.core.sim.joint_acc

    @property
    def default_dof_pos(self) -> Tensor:
        """Joint positions of the default pose, rad. Shape: (1, num_joints)."""
        return self.core.robot.default_joint_pos[None]

    @property
    def dof_names(self) -> list[str]:
        """Names of the joints."""
        return [*self.core.sim.robot.joint_names]

    @property
    def dof_pos_limits(self) -> Tensor:
        """Soft joint limits, rad: the share ``cfg.rewards.soft_dof_pos_limit`` of each range.

        Shape: (num_joints, 2).
        """
        share = self._task.user.cfg.rewards.soft_dof_pos_limit
        return torch.stack(self.core.robot.soft_joint_pos_limits(share), dim=1)

    @property
    def dof_vel_limits(self) -> Tensor:
        """Limits of the joint velocities, rad/s. Shape: (num_joints,)."""
        return self.core.robot.joint_vel_limits

    @property
    def torques(self) -> Tensor:
        """Joint torques, N·m. Shape: (num_envs, num_joints)."""
        return self.core.robot.joint_torque

    @property
    def torque_limits(self) -> Tensor:
        """Limits of the joint torques, N·m. Shape: (num_joints,)."""
        return self.core.robot.torque_limits

    @property
    def base_pos(self) -> Tensor:
        """Positions of the bases, m. Shape: (num_envs, 3)."""
        return self.core.robot.root_pos_w

    @property
    def base_quat(self) -> Tensor:
        """Orientations of the bases, (x, y, z, w). Shape: (num_envs, 4)."""
        return self.core.robot.root_quat_w.roll(-1, 1)

    @property
    def base_euler(self) -> Tensor:
        """Roll, pitch and yaw of the bases, rad. Shape: (num_envs, 3)."""
        # From the direction of gravity: shorter than from the quaternion, and without its sign.
        x, y, z = self.core.robot.projected_gravity.unbind(1)
        roll = rotation.atan2(-y, -z)
        # Rounding may make the unit vector a little longer, and asin NaN.
        pitch = torch.asin(x.clamp(-1.0, 1.0))
        return torch.stack((roll, pitch, self.core.robot.heading()), 1)

    @property
    def base_lin_vel(self) -> Tensor:
        """Linear velocities of the bases in the base frame, m/s. Shape: (num_envs, 3)."""
        return self.core.robot.lin_vel_b

    @property
    def base_ang_vel(self) -> Tensor:
        """Angular velocities of the bases in the base frame, rad/s. Shape: (num_envs, 3)."""
        return self.core.robot.root_ang_vel_b

    @property
    def projected_gravity(self) -> Tensor:
        """Direction of gravity in the base frame. Shape: (num_envs, 3)."""
        return self.core.robot.projected_gravity

    @property
    def base_init_pos(self) -> Tensor:
        """Position of the default pose relative to the environment's origin, m. Shape: (3,)."""
        pos = self._task.user.cfg.init_state.pos or (0.0, 0.0, self.core.cfg.robot.base_height)
        return torch.tensor(pos, dtype=torch.float32, device=self.core.device)

    @property
    def base_init_quat(self) -> Tensor:
        """Orientation of the default pose, (x, y, z, w). Shape: (4,)."""
        return torch.tensor((0.0, 0.0, 0.0, 1.0), device=self.core.device)

    @property
    def feet_pos(self) -> Tensor:
        """Positions of the feet in the world, m. Shape: (num_envs, feet, 3)."""
        return self.core.robot.foot_pos_w

    @property
    def feet_vel(self) -> Tensor:
        """Velocities of the feet in the world frame, m/s. Shape: (num_envs, feet, 3)."""
        return self.core.robot.foot_lin_vel_w

    @property
    def last_feet_vel(self) -> Tensor:
        """Velocities of the feet before this step, m/s. Shape: (num_envs, feet, 3)."""
        return self._task.last_feet_vel

    @property
    def feet_indices(self) -> Tensor:
        """Indices of the feet among the bodies. Shape: (feet,)."""
        return self._bodies[self.core.robot.feet]

    @property
    def penalized_contact_indices(self) -> Tensor:
        """Indices of the bodies of ``cfg.asset.penalize_contacts_on``. Shape: (bodies,)."""
        return self._bodies[self.core.robot.penalized_bodies]

    @property
    def termination_contact_indices(self) -> Tensor:
        """Indices of the bodies of ``cfg.asset.terminate_after_contacts_on``. Shape: (bodies,)."""
        return self._bodies[self.core.robot.termination_bodies]

    @property
    def _bodies(self) -> Tensor:
        return torch.arange(len(self.core.sim.body_names), device=self.core.device)

    @property
    def feet_contact_indices(self) -> Tensor:
        """Indices of the feet in :attr:`link_contact_forces`. Shape: (feet,)."""
        return self.feet_indices

    @property
    def link_contact_forces(self) -> Tensor:
        """Net contact force of each body in the world frame, N. Shape: (num_envs, bodies, 3)."""
        return self.core.robot.contact_force_w

    @property
    def link_contact_states(self) -> Tensor:
        """1 for bodies of ``cfg.asset.contact_state_link_names`` in contact with more than 1 N.

        Shape: (num_envs, number of these bodies).
        """
        force = self.link_contact_forces[:, self._contact_links].norm(dim=2)
        return (force > LEAST_CONTACT_FORCE).float()

    @cached_property
    def _contact_links(self) -> list[int]:
        links = []
        # In the order of the names, as LeggedGym-Ex lists them.
        for part in self._task.user.cfg.asset.contact_state_link_names:
            for index, name in enumerate(self.core.sim.body_names):
                if part in name:
                    links.append(index)
        return links

    @property
    def height_around_feet(self) -> Tensor:
        """Heights of the ground at nine points around each foot, m. Shape: (num_envs, feet, 9).

        In order, as steps of a cell along the x and y of the world: (−1, 0), (1, 0), (0, −1),
        (0, 1), (0, 0), (−1, −1), (1, 1), (−1, 1), (1, −1).
        """
        x, y, _ = self.feet_pos.unbind(-1)
        ground = self.core.sim.ground
        if ground is None:
            return x.new_zeros(*x.shape, len(AROUND_FEET))
        steps = x.new_tensor(AROUND_FEET) * self._task.user.cfg.terrain.horizontal_scale
        return ground.height(x[..., None] + steps[:, 0], y[..., None] + steps[:, 1])

    @property
    def normal_vector_around_feet(self) -> Tensor:
        """Direction (∂h/∂x, ∂h/∂y, −1) into the ground under each foot, of length 1.

        h is the height of the ground. Shape: (num_envs, 3 · feet).
        """
        heights = self.height_around_feet
        span = 2.0 * self._task.user.cfg.terrain.horizontal_scale
        slope_x = (heights[..., 1] - heights[..., 0]) / span
        slope_y = (heights[..., 3] - heights[..., 2]) / span
        normal = torch.stack((slope_x, slope_y, -torch.ones_like(slope_x)), -1)
        return (normal / normal.norm(dim=-1, keepdim=True)).flatten(1)

    @property
    def custom_origins(self) -> bool:
        """True if robots start on tiles of rough ground."""
        return self._task.custom_origins

    @property
    def env_origins(self) -> Tensor:
        """Middle of each environment's tile, m. Shape: (num_envs, 3)."""
        return self._task.env_origins

    @property
    def terrain_levels(self) -> Tensor:
        """Level of each environment's tile. Shape: (num_envs,)."""
        return self._task.terrain_levels

    @property
    def terrain_types(self) -> Tensor:
        """Column of each environment's tile. Shape: (num_envs,)."""
        return self._task.terrain_types

    @property
    def terrain_origins(self) -> Tensor:
        """Middle of each tile, m. Shape: (rows, columns, 3)."""
        return self._task.terrain_origins

    @property
    def max_terrain_level(self) -> int:
        """Number of levels."""
        return self._task.max_terrain_level

    @property
    def measured_heights(self) -> Tensor:
        """Heights of the ground around each robot, m. Shape: (num_envs, points)."""
        return self._task.measured_heights

    # LeggedGym-Ex's underscored names; subclasses read them in privileged observations.
    @property
    def _terrain(self) -> object:
        return self._task.terrain

    @property
    def _friction_values(self) -> Tensor:
        """Friction coefficients. Shape: (num_envs, 1)."""
        return observations.friction(self.core)

    @property
    def _rand_push_vels(self) -> Tensor:
        """Velocities of the last pushes, m/s. Shape: (num_envs, 3)."""
        return observations.last_push_velocity(self.core)

    @property
    def _added_base_mass(self) -> Tensor:
        """Masses that were added to the bases, kg. Shape: (num_envs, 1)."""
        return observations.base_mass_offset(self.core)

    @property
    def _base_com_bias(self) -> Tensor:
        """Displacements of the bases' centres of mass, m. Shape: (num_envs, 3)."""
        return observations.base_com_offset(self.core)

    @property
    def _kp_scale(self) -> Tensor:
        """Position gains relative to the default. Shape: (num_envs, num_joints)."""
        return self.core.sim.get_parameter("kp") / self.core.sim.default_parameter("kp")

    @property
    def _kd_scale(self) -> Tensor:
        """Velocity gains relative to the default. Shape: (num_envs, num_joints)."""
        return self.core.sim.get_parameter("kd") / self.core.sim.default_parameter("kd")

    @property
    def _joint_armature(self) -> Tensor:
        """Armature of the joints, kg·m²; 0 if it is not randomized. Shape: (num_envs, 1)."""
        return self._drawn_joint_value("joint_armature", "armature")

    @property
    def _joint_friction(self) -> Tensor:
        """Dry friction of the joints, N·m; 0 if it is not randomized. Shape: (num_envs, 1)."""
        return self._drawn_joint_value("joint_friction", "joint_friction")

    @property
    def _joint_damping(self) -> Tensor:
        """Damping of the joints, N·m·s/rad; 0 if it is not randomized. Shape: (num_envs, 1)."""
        return self._drawn_joint_value("joint_damping", "joint_damping")

    # The names of the same values without an underscore, of later versions.
    dr_friction_values = _friction_values
    dr_rand_push_vels = _rand_push_vels
    dr_added_base_mass = _added_base_mass
    dr_base_com_bias = _base_com_bias
    dr_kp_scale = _kp_scale
    dr_kd_scale = _kd_scale
    dr_joint_armature = _joint_armature
    dr_joint_friction = _joint_friction
    dr_joint_damping = _joint_damping

    def _drawn_joint_value(self, event: str, parameter: str) -> Tensor:
        if event not in self.core.cfg.events:
            return torch.zeros(self.core.num_envs, 1, device=self.core.device)
        return self.core.sim.get_parameter(parameter)[:, :1]

    def post_physics_step(self) -> None:
        """Derive the quantities of the robots from what was read."""
        self._task.compute_robots()

    def update_sensors(self) -> None:
        """Do nothing: there are no sensors yet."""

    def push_robots(self) -> None:
        """Push all robots, if ``cfg.domain_rand.push_robots``."""
        if "push" in self.core.events.cfg:
            self.core.events.call("push", self.core.all_ids)

    def set_viewer_camera(self, eye: Any, target: Any) -> None:
        """Move the camera of pictures and windows.

        Args:
            eye: Position of the camera in the world frame, m.
            target: Point that it looks at, m.
        """
        self._task.user.set_viewer_camera(eye, target)

    def draw_debug_vis(self, *args: Any) -> None:
        """Do nothing: this simulator draws no points and lines."""

    def reset_idx(self, env_ids: Tensor) -> None:
        """Randomize the robots of ``env_ids`` (n,) again."""
        # Events of mode "reset" only randomize here: methods of the task place the robots.
        self.core.events.reset(env_ids)

    def reset_dofs(self, env_ids: Tensor, dof_pos: Tensor, dof_vel: Tensor) -> None:
        """Place the joints of ``env_ids`` (n,): rad and rad/s, shape (n, num_joints) each."""
        self.core.sim.write_joint_state(env_ids, dof_pos, dof_vel)

    def reset_root_states(
        self, env_ids: Tensor, pos: Tensor, quat: Tensor, lin_vel: Tensor, ang_vel: Tensor
    ) -> None:
        """Place the bases of some environments.

        Args:
            env_ids: The environments, shape (n,).
            pos: Positions, m, shape (n, 3).
            quat: Orientations, (x, y, z, w), shape (n, 4).
            lin_vel: Linear velocities in the world frame, m/s, shape (n, 3).
            ang_vel: Angular velocities in the world frame, rad/s, shape (n, 3).
        """
        # The engine takes (w, x, y, z), and the angular velocity in the base frame.
        quat = quat.roll(1, 1)
        ang_vel_b = rotation.rotate_inverse(quat, ang_vel[:, None])[:, 0]
        self.core.sim.write_root_state(env_ids, pos, quat, lin_vel, ang_vel_b)

    def update_terrain_curriculum(
        self, env_ids: Tensor, move_up: Tensor, move_down: Tensor
    ) -> None:
        """Move environments to other levels.

        Args:
            env_ids: The environments, shape (n,).
            move_up: Those of them that move a level up, shape (n,), bool.
            move_down: Those of them that move a level down, shape (n,), bool.
        """
        self._task.update_env_origins(env_ids, move_up, move_down)
