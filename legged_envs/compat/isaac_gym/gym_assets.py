"""Functions of Isaac Gym for assets: reading robot files, and what is in them."""

import copy
import warnings
from collections.abc import Sequence
from pathlib import Path

import mujoco
import numpy as np

from legged_envs.compat.isaac_gym.assets import Asset, ForceSensor
from legged_envs.compat.isaac_gym.enums import DofType, JointType, Limit
from legged_envs.compat.isaac_gym.index_range import IndexRange
from legged_envs.compat.isaac_gym.records import (
    AssetOptions,
    ForceSensorProperties,
    RigidShapeProperties,
)
from legged_envs.compat.isaac_gym.shape_assets import ALONG_X, ShapeAsset
from legged_envs.compat.isaac_gym.sim import Sim
from legged_envs.compat.isaac_gym.vectors import Transform

OPTIONS_WITHOUT_EFFECT = (
    "override_com",
    "override_inertia",
    "convex_decomposition_from_submeshes",
    "vhacd_enabled",
)
"""Options that would change the physics of a robot in Isaac Gym, and do not here."""


class AssetFunctions:
    """Functions for assets. Names that an asset does not have have the index −1."""

    def load_asset(
        self, sim: Sim, rootpath: str, filename: str, options: AssetOptions | None = None
    ) -> Asset:
        """Read a URDF or MJCF file."""
        if options is None:
            options = AssetOptions()
        ignored = [name for name in OPTIONS_WITHOUT_EFFECT if getattr(options, name)]
        if ignored:
            warnings.warn(
                f"load_asset {filename!r}: {', '.join(ignored)} have no effect: masses are taken "
                "from the file, and each mesh collides as its convex hull",
                stacklevel=2,
            )
        # Scripts change their record of options and load the next asset with it.
        return Asset(Path(rootpath) / filename, copy.deepcopy(options))

    def create_box(
        self,
        sim: Sim,
        width: float,
        height: float,
        depth: float,
        options: AssetOptions | None = None,
    ) -> Asset:
        """Return a box with sides along x, y and z, m, and the mass of ``options.density``."""
        half_sides = (width / 2, height / 2, depth / 2)
        own = copy.deepcopy(options or AssetOptions())
        return ShapeAsset("box", mujoco.mjtGeom.mjGEOM_BOX, half_sides, own)

    def create_sphere(self, sim: Sim, radius: float, options: AssetOptions | None = None) -> Asset:
        """Return a ball of a radius, m, with the mass of ``options.density``."""
        own = copy.deepcopy(options or AssetOptions())
        return ShapeAsset("sphere", mujoco.mjtGeom.mjGEOM_SPHERE, (radius,), own)

    def create_capsule(
        self, sim: Sim, radius: float, length: float, options: AssetOptions | None = None
    ) -> Asset:
        """Return a capsule along x with the mass of ``options.density``.

        Args:
            sim: The simulation.
            radius: Radius, m.
            length: Length without the two half balls at its ends, m.
            options: Options. None: the defaults.
        """
        own = copy.deepcopy(options or AssetOptions())
        sizes = (radius, length / 2)
        return ShapeAsset("capsule", mujoco.mjtGeom.mjGEOM_CAPSULE, sizes, own, ALONG_X)

    def get_asset_dof_count(self, asset: Asset) -> int:
        """Return the number of joints that move."""
        return len(asset.dof_names)

    def get_asset_dof_names(self, asset: Asset) -> list[str]:
        """Return the names of the joints that move."""
        return list(asset.dof_names)

    def get_asset_dof_name(self, asset: Asset, index: int) -> str:
        """Return the name of a joint that moves."""
        return asset.dof_names[index]

    def get_asset_dof_dict(self, asset: Asset) -> dict[str, int]:
        """Return the index of each joint that moves, by name."""
        return _make_dict(asset.dof_names)

    def find_asset_dof_index(self, asset: Asset, name: str) -> int:
        """Return the index of a joint that moves, or −1."""
        return find_index(asset.dof_names, name)

    def get_asset_dof_type(self, asset: Asset, index: int) -> DofType:
        """Return whether a joint turns or slides."""
        return DofType.DOF_TRANSLATION if asset.dof_slides[index] else DofType.DOF_ROTATION

    def get_dof_type_string(self, kind: DofType) -> str:
        """Return the name of a kind of motion."""
        return {DofType.DOF_ROTATION: "Rotation", DofType.DOF_TRANSLATION: "Translation"}.get(
            kind, "Invalid"
        )

    def get_asset_dof_properties(self, asset: Asset) -> np.ndarray:
        """Return a copy of the properties of the joints, with the fields ``DOF_DTYPE``."""
        return asset.dof_properties.copy()

    # Joints that do not move are not joints in MuJoCo.

    def get_asset_joint_count(self, asset: Asset) -> int:
        """Return the number of joints that move."""
        return len(asset.dof_names)

    def get_asset_joint_names(self, asset: Asset) -> list[str]:
        """Return the names of the joints that move."""
        return list(asset.dof_names)

    def get_asset_joint_name(self, asset: Asset, index: int) -> str:
        """Return the name of a joint that moves."""
        return asset.dof_names[index]

    def get_asset_joint_dict(self, asset: Asset) -> dict[str, int]:
        """Return the index of each joint that moves, by name."""
        return _make_dict(asset.dof_names)

    def find_asset_joint_index(self, asset: Asset, name: str) -> int:
        """Return the index of a joint that moves, or −1."""
        return find_index(asset.dof_names, name)

    def get_asset_joint_type(self, asset: Asset, index: int) -> JointType:
        """Return whether a joint turns or slides."""
        return JointType.JOINT_PRISMATIC if asset.dof_slides[index] else JointType.JOINT_REVOLUTE

    def get_joint_type_string(self, kind: JointType) -> str:
        """Return the name of a kind of joint."""
        return kind.name.removeprefix("JOINT_").capitalize()

    def get_asset_rigid_body_count(self, asset: Asset) -> int:
        """Return the number of bodies."""
        return len(asset.body_names)

    def get_asset_rigid_body_names(self, asset: Asset) -> list[str]:
        """Return the names of the bodies."""
        return list(asset.body_names)

    def get_asset_rigid_body_name(self, asset: Asset, index: int) -> str:
        """Return the name of a body."""
        return asset.body_names[index]

    def get_asset_rigid_body_dict(self, asset: Asset) -> dict[str, int]:
        """Return the index of each body, by name."""
        return _make_dict(asset.body_names)

    def find_asset_rigid_body_index(self, asset: Asset, name: str) -> int:
        """Return the index of a body, or −1."""
        return find_index(asset.body_names, name)

    def get_asset_rigid_shape_count(self, asset: Asset) -> int:
        """Return the number of shapes that collide."""
        return len(asset.friction)

    def get_asset_rigid_body_shape_indices(self, asset: Asset) -> list[IndexRange]:
        """Return the shapes of each body, as a range of indices."""
        return asset.list_shape_ranges()

    def get_asset_rigid_shape_properties(self, asset: Asset) -> list[RigidShapeProperties]:
        """Return the properties of the shapes."""
        return make_shape_properties(asset.friction, asset.shape_filters)

    def set_asset_rigid_shape_properties(
        self, asset: Asset, props: Sequence[RigidShapeProperties]
    ) -> None:
        """Set the properties of the shapes of actors that are created from here on."""
        shapes = list(props)
        asset.friction = read_friction(shapes, len(asset.friction))
        asset.shape_filters = tuple(int(shape.filter) for shape in shapes)

    def get_asset_tendon_count(self, asset: Asset) -> int:
        """Return 0: robots have no tendons."""
        return 0

    def get_asset_soft_body_count(self, asset: Asset) -> int:
        """Return 0: robots have no soft bodies."""
        return 0

    def create_asset_force_sensor(
        self,
        asset: Asset,
        body_idx: int,
        local_pose: Transform,
        props: ForceSensorProperties | None = None,
    ) -> int:
        """Add a force sensor to a body of an asset; all actors of the asset have it.

        Args:
            asset: The robot.
            body_idx: Index of the body.
            local_pose: Pose of the sensor in the frame of the body.
            props: Forces that are measured, and their frame. None: the net force, in the frame of
                the sensor.

        Returns:
            Index of the sensor.

        Raises:
            ValueError: If there is no such body.
        """
        if not 0 <= body_idx < len(asset.body_names):
            raise ValueError(
                f"create_asset_force_sensor: body_idx must be 0 to {len(asset.body_names) - 1}, "
                f"got {body_idx}: take it from find_asset_rigid_body_index"
            )
        sensor = ForceSensor(body_idx, local_pose.copy(), (props or ForceSensorProperties()).copy())
        asset.force_sensors.append(sensor)
        return len(asset.force_sensors) - 1


def find_index(names: Sequence[str], name: str) -> int:
    """Return the index of a name, or −1 if it is not there."""
    return names.index(name) if name in names else int(Limit.INVALID_HANDLE)


def _make_dict(names: Sequence[str]) -> dict[str, int]:
    return {name: index for index, name in enumerate(names)}


def make_shape_properties(
    friction: np.ndarray, filters: Sequence[int]
) -> list[RigidShapeProperties]:
    """Return the properties of shapes with given coefficients of friction and filters."""
    shapes = []
    for value, bits in zip(friction, filters, strict=True):
        shapes.append(RigidShapeProperties(friction=value, filter=bits))
    return shapes


def read_friction(props: Sequence[RigidShapeProperties], num_shapes: int) -> np.ndarray:
    """Return the friction of each shape, and warn if a restitution is asked for.

    A friction may be negative: its mean with the friction of the ground counts.

    Raises:
        ValueError: If the number of shapes does not fit, or a friction is not finite.
    """
    # Any iterable is read once, and all of it is checked before anything is set.
    shapes = list(props)
    friction = np.array([prop.friction for prop in shapes])
    if len(friction) != num_shapes or not np.isfinite(friction).all():
        raise ValueError(
            f"rigid shape properties: expected {num_shapes} shapes with finite frictions, "
            f"got {friction.tolist()}"
        )
    if any(prop.restitution for prop in shapes):
        warnings.warn("restitution has no effect in MuJoCo: contacts do not bounce", stacklevel=3)
    return friction
