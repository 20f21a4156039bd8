"""Robots from URDF and MJCF files, with the bodies, joints and names that Isaac Gym would give them."""

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np

from legged_envs.isaacgym.gymapi import DOF_DTYPE, LARGEST, AssetOptions
from legged_envs.robots.urdf import MESHES, prepare_urdf
from legged_envs.tables import shortened

Array = np.ndarray[Any, Any]
_HINGE, _SLIDE, _FREE = (getattr(mujoco.mjtJoint, f"mjJNT_{kind}") for kind in ("HINGE", "SLIDE", "FREE"))
_LEAST_MASS, _LEAST_INERTIA = 1e-6, 1e-9
"""What a link without any has, kg and kg m²: MuJoCo refuses bodies that move and weigh nothing."""


class Asset:
    """One robot of a file: bodies depth first, in a URDF the children of each by the names of their joints.

    ``collapse_fixed_joints`` merges links of fixed joints into their parents, but for joints with ``dont_collapse``.
    A link without inertia has that of its collision shapes; an inertia that no body has is made the nearest of one.
    FileNotFoundError, or a ValueError that names the file and the part that cannot be kept."""

    def __init__(self, path: Path, options: AssetOptions):
        self.path, self.options = path, options
        self._speeds, self._not_collapsed = dict[str, float](), list[str]()
        if not path.is_file():
            raise FileNotFoundError(f"load_asset: there is no file {str(path)!r}")
        if path.suffix.lower() not in (".urdf", ".xml"):
            raise ValueError(f"load_asset reads .urdf and .xml (MJCF) files, got {str(path)!r}")
        self.spec = self.read(visuals=False)
        model = self.spec.compile()
        self.body_names = [model.body(i).name for i in range(1, model.nbody)]
        dofs = [i for i in range(model.njnt) if model.jnt_type[i] != _FREE]
        self.dof_names = [model.joint(i).name for i in dofs]
        self.mass, self.com, self.inertia = model.body_mass[1:], model.body_ipos[1:], model.body_inertia[1:]
        self.dof_properties = self._dof_properties(model, dofs)
        geoms = np.flatnonzero(model.geom_contype | model.geom_conaffinity)
        first = model.geom_friction[geoms, 0] if path.suffix == ".xml" else np.ones(len(geoms))
        self.friction: Array = np.array(first)
        """Of the shapes that collide, for the actors that are created next."""

    def read(self, visuals: bool) -> mujoco.MjSpec:
        """The robot with a free or, with ``fix_base_link``, a mocap base, without or with what is only seen."""
        try:
            spec = self._read_urdf(visuals) if self.path.suffix.lower() == ".urdf" else self._read_mjcf(visuals)
            base = spec.worldbody.bodies[0]
            looks = any(not (geom.contype or geom.conaffinity) for geom in spec.geoms)
            for geom in spec.geoms:
                seen = not (geom.contype or geom.conaffinity)
                geom.group, geom.mass = (2, 0.0) if seen else (3 if looks else 2, geom.mass)
                if self.options.replace_cylinder_with_capsule and geom.type == mujoco.mjtGeom.mjGEOM_CYLINDER:
                    geom.type = geom.type if seen else mujoco.mjtGeom.mjGEOM_CAPSULE
            kept = [spec.add_exclude(bodyname1=name, bodyname2=base.name) for name in self._not_collapsed]
            base.add_freejoint(name="root")
            spec.compiler.boundmass, spec.compiler.boundinertia = _LEAST_MASS, _LEAST_INERTIA
            spec.compiler.fusestatic = self.options.collapse_fixed_joints
            spec.compile()
        except (ElementTree.ParseError, ValueError) as error:
            raise ValueError(f"load_asset: {str(self.path)!r}: {shortened(str(error), 400)}") from error
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
            for child in base.bodies:  # MuJoCo takes a fixed base for a part of the world, which robots touch
                spec.add_exclude(bodyname1=base.name, bodyname2=child.name)
        return spec

    def _read_urdf(self, visuals: bool) -> mujoco.MjSpec:
        root, gaps = ElementTree.parse(self.path).getroot(), dict[str, str]()
        for link in root.findall("link"):
            for seen in () if visuals else link.findall("visual"):
                link.remove(seen)
            _repair_inertia(link)
        joints = sorted(root.findall("joint"), key=lambda joint: joint.get("name", ""))
        for joint in joints:
            root.remove(joint)
            root.append(joint)
        fixed = [joint for joint in joints if joint.get("type") == "fixed" and joint.get("dont_collapse") == "true"]
        self._not_collapsed = [str(child.get("link")) for joint in fixed for child in joint.findall("child")]
        readers = find_spec("trimesh") is not None
        self._speeds = prepare_urdf(root, self.path.parent.resolve(), gaps, (*MESHES, ".dae") if readers else MESHES)
        spec = mujoco.MjSpec.from_string(ElementTree.tostring(root, encoding="unicode"))
        if len(spec.worldbody.bodies) != 1:
            raise ValueError(f"it must have one link that is nobody's child, got {len(spec.worldbody.bodies)}")
        for mesh in spec.meshes:
            _load_mesh(spec, mesh)
        for geom in spec.geoms:
            geom.density = self.options.density
        return spec

    def _read_mjcf(self, visuals: bool) -> mujoco.MjSpec:
        spec = mujoco.MjSpec.from_file(str(self.path))
        if len(outer := spec.worldbody.bodies) != 1:
            raise ValueError(f"it must have one outermost body, got {[body.name for body in outer]}")
        if couplings := [*spec.equalities, *spec.tendons]:
            raise ValueError(f"it has equalities or tendons, {[part.name for part in couplings]}: take them out")
        lists = (spec.keys, spec.actuators, spec.sensors, spec.pairs, spec.lights, spec.cameras, spec.worldbody.geoms)
        hidden = [geom for geom in spec.geoms if not (visuals or geom.contype or geom.conaffinity)]
        free = [joint for joint in spec.joints if joint.type == _FREE]
        for part in (*(each for parts in lists for each in parts), *free, *hidden):
            spec.delete(part)
        spec.nkey, outer[0].pos, outer[0].quat = 0, [0, 0, 0], [1, 0, 0, 0]
        for i, body in enumerate(spec.bodies):
            body.name = body.name or f"body_{i}"
        for i, joint in enumerate(spec.joints):
            joint.name = joint.name or f"joint_{i}"
            if joint.type not in (_HINGE, _SLIDE):
                raise ValueError(f"joint {joint.name!r} must be a hinge or a slide, it is {joint.type.name}")
        return spec

    def _dof_properties(self, model: mujoco.MjModel, joints: list[int]) -> Array:
        """Limits, efforts and velocities of the file, ``LARGEST`` where it has none."""
        props = np.zeros(len(joints), DOF_DTYPE)
        for prop, i, name in zip(props, joints, self.dof_names, strict=True):
            dof, limited = model.jnt_dofadr[i], bool(model.jnt_limited[i])
            low, high = model.jnt_range[i] if limited else (-LARGEST, LARGEST)
            prop["hasLimits"], prop["lower"], prop["upper"] = limited, low, high
            prop["driveMode"] = self.options.default_dof_drive_mode
            prop["velocity"] = self._speeds.get(name) or LARGEST
            prop["effort"] = model.jnt_actfrcrange[i, 1] or LARGEST
            prop["damping"], prop["friction"] = model.dof_damping[dof], model.dof_frictionloss[dof]
            prop["armature"] = model.dof_armature[dof]
        return props


def _repair_inertia(link: ElementTree.Element) -> None:
    """Leave a mass of 0 out, so that shapes count; make principal moments positive, none above the others' sum."""
    inertial = link.find("inertial")
    if inertial is None or (inertia := inertial.find("inertia")) is None:
        return
    mass = inertial.find("mass")
    if mass is None or float(mass.get("value", 0)) <= 0:
        link.remove(inertial)
        return
    keys = [[f"i{min(a, b)}{max(a, b)}" for b in "xyz"] for a in "xyz"]
    moments, axes = np.linalg.eigh([[float(inertia.get(key, 0)) for key in row] for row in keys])
    repaired = np.maximum(moments, _LEAST_INERTIA)
    repaired[:2] += max(repaired[2] - repaired[0] - repaired[1], 0) / 2 * 1.0001
    if (repaired != moments).any():
        matrix = axes * repaired @ axes.T
        for row, values in zip(keys, matrix, strict=True):
            inertia.attrib.update({key: f"{value:.17g}" for key, value in zip(row, values, strict=True)})


def _load_mesh(spec: mujoco.MjSpec, mesh: Any) -> None:
    """Let trimesh read what MuJoCo does not, COLLADA files and STL files of text. What it cannot read is not seen."""
    path = Path(mesh.file)
    if path.suffix.lower() != ".dae" and not (path.suffix.lower() == ".stl" and path.read_bytes()[:5] == b"solid"):
        return
    try:
        import trimesh

        loaded: Any = trimesh.load(path, force="mesh")
        mesh.uservert, mesh.userface, mesh.file = loaded.vertices.ravel(), loaded.faces.ravel(), ""
    except Exception as error:
        shapes = [geom for geom in spec.geoms if geom.meshname == mesh.name]
        if any(geom.contype or geom.conaffinity for geom in shapes):
            raise ValueError(f"trimesh cannot read {str(path)!r}, with which the robot collides: {error}") from error
        warnings.warn(f"{str(path)!r} is not drawn: {error}", stacklevel=2)
        for part in (*shapes, mesh):
            spec.delete(part)
