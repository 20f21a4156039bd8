"""Robots from URDF and MJCF files, with the bodies, joints and names that Isaac Gym would give them."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np

from legged_envs.compat.isaac_gym.records import DOF_DTYPE, DRIVE_MODES, LARGEST, AssetOptions
from legged_envs.robots.reading.mjcf import read_mjcf
from legged_envs.robots.reading.urdf import LEAST_INERTIA, LEAST_MASS, read_urdf
from legged_envs.tables import shorten

Array = np.ndarray[Any, Any]
_FREE = mujoco.mjtJoint.mjJNT_FREE


class Asset:
    """One robot of a file: bodies depth first, in a URDF the children of each by the names of their joints.

    ``collapse_fixed_joints`` merges links of fixed joints into their parents, but for joints with ``dont_collapse``.
    A link without inertia has that of its collision shapes; an inertia that no body has is made the nearest of one.
    FileNotFoundError, or a ValueError that names the file and the part that cannot be kept."""

    def __init__(self, path: Path, options: AssetOptions):
        self.path, self.options = path, options
        self._speeds = dict[str, float]()
        if (mode := options.default_dof_drive_mode) not in DRIVE_MODES:
            wrong = f"default_dof_drive_mode must be DOF_MODE_NONE, _POS or _EFFORT {DRIVE_MODES}, got {mode!r}"
            raise ValueError(f"load_asset: {wrong}")
        if options.density < 0:
            raise ValueError(f"load_asset: density must not be negative, got {options.density:g}")
        if not path.is_file():
            raise FileNotFoundError(f"load_asset: there is no file {str(path)!r}")
        if path.suffix.lower() not in (".urdf", ".xml"):
            raise ValueError(f"load_asset reads .urdf and .xml (MJCF) files, got {str(path)!r}")
        self.spec = self.read(visuals=False)
        model = self.spec.compile()
        self.body_names = [model.body(i).name for i in range(1, model.nbody)]
        dofs = [i for i in range(model.njnt) if model.jnt_type[i] != _FREE]
        self.dof_names = [model.joint(i).name for i in dofs]
        self.mass, self.com, self.inertia = (
            model.body_mass[1:],
            model.body_ipos[1:],
            model.body_inertia[1:],
        )
        self.dof_properties = self._dof_properties(model, dofs)
        geoms = np.flatnonzero(model.geom_contype | model.geom_conaffinity)
        self.friction: Array = (
            model.geom_friction[geoms, 0] if path.suffix == ".xml" else np.ones(len(geoms))
        )
        """Of the shapes that collide, for the actors that are created next."""

    def read(self, visuals: bool) -> mujoco.MjSpec:
        """The robot with a free or, with ``fix_base_link``, a mocap base, without or with what is only seen."""
        try:
            if self.path.suffix.lower() == ".urdf":
                spec, self._speeds, not_collapsed = read_urdf(
                    self.path, visuals, self.options.density
                )
            else:
                spec, not_collapsed = read_mjcf(self.path, visuals), []
            base = spec.worldbody.bodies[0]
            seen = [geom for geom in spec.geoms if not (geom.contype or geom.conaffinity)]
            drawn = {geom.parent.name for geom in seen}  # whose shapes that collide are hidden
            for geom in spec.geoms:
                geom.group, geom.mass = (
                    (2, 0.0) if geom in seen else (3 if geom.parent.name in drawn else 2, geom.mass)
                )
                if (
                    self.options.replace_cylinder_with_capsule
                    and geom.type == mujoco.mjtGeom.mjGEOM_CYLINDER
                ):
                    geom.type = geom.type if geom in seen else mujoco.mjtGeom.mjGEOM_CAPSULE
            kept = [spec.add_exclude(bodyname1=name, bodyname2=base.name) for name in not_collapsed]
            base.add_freejoint(name="root")
            spec.compiler.boundmass, spec.compiler.boundinertia = LEAST_MASS, LEAST_INERTIA
            spec.compiler.fusestatic = self.options.collapse_fixed_joints
            spec.compile()
        except (ElementTree.ParseError, ValueError) as error:
            raise ValueError(
                f"load_asset: {str(self.path)!r}: {shorten(str(error), 400)}"
            ) from error
        for part in kept:
            spec.delete(part)
        spec.compiler.fusestatic = False
        for joint in spec.joints[1:]:
            joint.armature += self.options.armature
        for body in spec.bodies[1:] if self.options.disable_gravity else ():
            body.gravcomp = 1.0
        if self.options.fix_base_link:
            spec.delete(spec.joint("root"))
            base.mocap, base.pos, base.quat = True, [0, 0, 0], [1, 0, 0, 0]
            for child in (
                base.bodies
            ):  # MuJoCo takes a fixed base for a part of the world, which robots touch
                spec.add_exclude(bodyname1=base.name, bodyname2=child.name)
        return spec

    def _dof_properties(self, model: mujoco.MjModel, joints: list[int]) -> Array:
        """Limits, efforts and velocities of the file, ``LARGEST`` where it has none."""
        props, dofs, limited = (
            np.zeros(len(joints), DOF_DTYPE),
            model.jnt_dofadr[joints],
            model.jnt_limited[joints] > 0,
        )
        props["hasLimits"], props["driveMode"] = limited, self.options.default_dof_drive_mode
        for i, name in enumerate(("lower", "upper")):
            props[name] = np.where(limited, model.jnt_range[joints, i], (-LARGEST, LARGEST)[i])
        props["velocity"] = [self._speeds.get(name) or LARGEST for name in self.dof_names]
        props["effort"] = [effort or LARGEST for effort in model.jnt_actfrcrange[joints, 1]]
        for name, field in (
            ("damping", "damping"),
            ("friction", "frictionloss"),
            ("armature", "armature"),
        ):
            props[name] = getattr(model, f"dof_{field}")[dofs]
        return props
