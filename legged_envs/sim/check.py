"""What a robot is like as it stands in its default pose, and what is wrong with its description."""

from dataclasses import replace
from itertools import combinations
from math import inf

import mujoco
import numpy as np

from legged_envs.robots.reading.draft import lowest, mirror_sign
from legged_envs.robots.robot import RobotCfg
from legged_envs.sim.gains import FULL_LOAD, REPORT_DURATION, gain_of_upright_legs, settle, stand
from legged_envs.sim.scene import RobotView, build_scene, no_free_joint
from legged_envs.sim.simulation import SimCfg
from legged_envs.tables import Table, TableRepr

_LEVEL, _SINK, _SAG, _LOAD, _END, _BALL = 0.01, 0.15, 0.3, FULL_LOAD, 0.01, 0.015
"""Too much: height of a foot off the ground, m; sinking, part of the height; sag of a joint, rad; torque, part of
its limit. Too little: the way from the default position of a joint to the end of its range, rad; the radius of a ball
or capsule of a foot, m (docs/physics.md)."""


def raise_gains(robot: RobotCfg) -> RobotCfg:
    """``robot`` with gains raised by quarters, twelve at most, until it sinks by less than 3 % of its height as it is
    held upright."""
    for _ in range(12):
        if settle(robot)[0] < 0.03 * robot.base_height:
            break
        kp, kd = (
            tuple(float(f"{1.25 * gain:.3g}") for gain in gains) for gains in (robot.kp, robot.kd)
        )
        robot = replace(robot, kp=kp, kd=kd)
    return robot


class Report(TableRepr):
    """Masses, joints, feet and stance of a robot, tables when printed; ValueError as :func:`build_scene`. ``gaps`` are
    fields that are guesses."""

    problems: list[str]
    """What is wrong: which, where and what to write."""

    def __init__(self, robot: RobotCfg, gaps: dict[str, str]) -> None:
        if RobotView.find(build_scene(robot, SimCfg()), robot).root_qpos is None:
            raise no_free_joint(robot)
        self.robot, (self.model, self.data) = robot, stand(robot)
        self.problems = [f"{field}: {guess}" for field, guess in gaps.items()]
        self.tables = [self._masses(), *self._joints_and_stance(), self._feet(), self._overlaps()]

    def _as_tables(self) -> list[Table]:
        rows = [(problem,) for problem in self.problems or ["none"]]
        return [
            *(table for table in self.tables if table[2]),
            ("problems", ("which, where, what to write",), rows),
        ]

    def _masses(self) -> Table:
        masses, base = self.model.body_subtreemass, self.model.body(self.robot.base_body).id
        limbs = [
            (self.model.body(i).name, masses[i])
            for i in np.flatnonzero(self.model.body_parentid == base)
        ]
        rows = [(self.robot.base_body, self.model.body_mass[base]), *limbs]
        return (
            f"{self.robot.name}, {masses[base]:.5g} kg",
            ("body, and what hangs on it", "kg"),
            rows,
        )

    def _joints_and_stance(self) -> tuple[Table, Table]:
        robot, rows = self.robot, []
        sinks, sags, loads = settle(robot)
        most = _SINK * robot.base_height
        for i, (joint, part, sag, load) in enumerate(
            zip(robot.joint_names, robot.mirror, sags, loads, strict=True)
        ):
            at, kp, limit = robot.default_joint_pos[i], robot.kp[i], robot.torque_limits[i]
            low, high = (
                self.model.joint(joint).range if self.model.joint(joint).limited else (-inf, inf)
            )
            sign, end = (
                mirror_sign((self.model, self.data), joint, part[0]),
                min(at - low, high - at),
            )
            numbers = (low, high, at, kp, robot.kd[i], limit, robot.velocity_limits[i])
            rows.append((joint, *map(float, numbers), *(f"{x:.3f}" for x in (end, sag, load))))
            span = f"{low:g} to {high:g}"
            self._add(
                end < _END,
                f"default_joint_pos of {joint!r}, {at:g}, is at an end of {span}: move it",
            )
            enough = max(kp * abs(sag) / 0.1, gain_of_upright_legs(robot) if sinks > most else 0.0)
            sags_much = abs(sag) > _SAG and load <= _LOAD
            self._add(sags_much, f"kp of {joint!r}: it sags by {sag:.2f} rad: write {enough:.2g}")
            how = "bend it less, or raise them"
            self._add(
                load > _LOAD,
                f"torque_limits of {joint!r}: {load:.0%} of {limit:g} N m to stand: {how}",
            )
            self._add(
                sign not in (0, part[1]),
                f"mirror of {joint!r} is {part}, but its axis has the sign {sign:g}",
            )
        weak = f"for legs write about {gain_of_upright_legs(robot):.0f}, 2 m g base_height / feet"
        how = "see torque_limits" if max(loads) > _LOAD else weak
        self._add(sinks > most, f"kp: the robot sinks by {sinks:.3f} m: {how}")
        touching = robot.base_height - min(lowest(self.model, self.data).values())
        heads = (
            "low",
            "high",
            "default",
            "kp",
            "kd",
            "torque",
            "velocity",
            "to the end",
            "sag",
            "load",
        )
        what = (robot.base_height, touching, sinks, float(max(abs(sags))), f"{max(loads):.0%}")
        names = (
            "base_height, m",
            "at which it touches the ground, m",
            "sinks by, m",
            "most sag, rad",
            "most torque",
        )
        stance = (
            f"{REPORT_DURATION:g} s on its own gains, held upright",
            ("what", ""),
            [*zip(names, what, strict=True)],
        )
        return (
            "joints: rad, N m, rad/s; torque in parts of its limit",
            ("joint", *heads),
            rows,
        ), stance

    def _feet(self) -> Table:
        robot, shapes, rows = self.robot, dict[str, list[float]](), []
        ends = lowest(self.model, self.data)
        for i, z in ends.items():
            shapes.setdefault(self._body(i), []).extend((z, z + self._rise(i)))
        how = "change default_joint_pos"
        round_ = np.isin(
            self.model.geom_type, (mujoco.mjtGeom.mjGEOM_SPHERE, mujoco.mjtGeom.mjGEOM_CAPSULE)
        )
        small = [i for i in ends if round_[i] and self.model.geom_size[i, 0] < _BALL]
        for foot in robot.foot_names:
            radius = min(
                [self.model.geom_size[i, 0] for i in small if self._body(i) == foot], default=inf
            )
            edges = "smaller than 15 mm it catches on the inner edges of rough ground: write 0.02, and raise it as much"
            self._add(
                radius < _BALL,
                f"foot {foot!r} has a ball or capsule of radius {radius:g} m; {edges}",
            )
            low, high = min(shapes.get(foot, [inf])), max(shapes.get(foot, [inf]))
            origin, joints = self.data.body(foot).xpos[2] - low, self.model.body(foot).jntnum[0]
            rows.append((foot, *(f"{x:.4f}" for x in (low, high - low, origin))))
            self._add(
                foot not in shapes,
                f"foot {foot!r} has no collision shape: give it one in {robot.xml}",
            )
            self._add(
                joints > 0,
                f"foot {foot!r} has a joint: weld a body with the contact shapes to it, the new foot",
            )
            off = abs(origin - robot.foot_radius)
            self._add(
                _LEVEL < abs(low) < inf,
                f"foot {foot!r} is {low:.3f} m above the ground: {how} or base_height",
            )
            self._add(
                high - low > _LEVEL, f"foot {foot!r} is not level, by {high - low:.3f} m: {how}"
            )
            self._add(
                _LEVEL < off < inf,
                f"foot_radius: the origin of {foot!r} is at {origin:.4f} m: write this",
            )
        for body, heights in shapes.items():
            wrong = f"{body!r}, no foot, is {min(heights):.3f} m above the ground: {how}, or name it in foot_names"
            self._add(body not in robot.foot_names and min(heights) < _LEVEL, wrong)
        for body in (*robot.penalized_bodies, *robot.termination_bodies):
            wrong = f"penalized_bodies, termination_bodies: {body!r} has no collision shape"
            self._add(body not in shapes, f"{wrong}: take it out, or give it one in {robot.xml}")
        return "feet, m", ("foot", "above the ground", "uneven by", "origin above its sole"), rows

    def _overlaps(self) -> Table:
        rows, model = [], self.model
        weld, parents = model.body_weldid, model.body_weldid[model.body_parentid]
        for i, j in combinations(np.flatnonzero(model.geom_conaffinity).tolist(), 2):
            a, b = weld[model.geom_bodyid[i]], weld[model.geom_bodyid[j]]
            depth = -mujoco.mj_geomDistance(model, self.data, i, j, 0.0, None)
            if a != b and a != parents[b] and b != parents[a] and depth > 1e-3:
                rows.append((self._body(i), self._body(j), f"{depth:.3f}"))
        return (
            "collision shapes that overlap; the simulation lets them",
            ("body", "other body", "by, m"),
            rows,
        )

    def _rise(self, geom: int) -> float:
        """By how much one edge of the lower side of a box is above another, m; 0 for other shapes."""
        up = abs(self.data.geom_xmat[geom].reshape(3, 3)[2])
        rises = np.delete(2 * up * self.model.geom_size[geom], up.argmax())
        return (
            float(rises.sum()) if self.model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_BOX else 0.0
        )

    def _body(self, geom: int) -> str:
        return str(self.model.body(self.model.geom_bodyid[geom]).name)

    def _add(self, is_wrong: bool, problem: str) -> None:
        self.problems += [problem] * bool(is_wrong)
