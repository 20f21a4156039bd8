"""The report on a robot that ``legged-envs check`` prints."""

from collections.abc import Mapping
from itertools import combinations

import mujoco
import numpy as np

from legged_envs.robot_check.feet import check_feet
from legged_envs.robot_check.joints import check_joints
from legged_envs.robot_check.limits import LIMITS
from legged_envs.robot_check.motions import check_motions
from legged_envs.robots.reading.options import changed_options
from legged_envs.robots.robot import RobotCfg
from legged_envs.sim.cfg import SimCfg
from legged_envs.sim.gains import StandingRobot, settle, stand
from legged_envs.sim.robot_view import RobotView, no_free_joint
from legged_envs.sim.scene import build_scene
from legged_envs.tables import Table, TableRepr


class Report(TableRepr):
    """Report on a robot: tables of its masses, joints, stance and feet, and a list of problems.

    ``print(Report(robot, {}))`` prints the tables and the problems.

    Args:
        robot: Robot to report on.
        gaps: Fields of the configuration that are guesses, each with a text: the reason and the
            advice what to write (:func:`~legged_envs.robots.reading.draft.draft_robot`). Each is
            listed as a problem. Empty for a robot without guesses.

    Raises:
        ValueError: The model cannot be compiled, does not fit the configuration, or has no free
            joint.
    """

    problems: list[str]
    """Problems of the robot: a sentence each, with the place and the advice what to write. Empty
    if there are none."""
    tables: list[Table]
    """Tables of masses, joints, stance, feet, overlapping collision shapes and motions."""

    def __init__(self, robot: RobotCfg, gaps: Mapping[str, str]) -> None:
        # The same checks as when an environment is made. A robot that fails them has no report.
        view = RobotView.find(build_scene(robot, SimCfg()), robot)
        if view.root_qpos is None:
            raise no_free_joint(robot)
        standing = stand(robot)
        joints = check_joints(robot, standing, settle(robot))
        feet = check_feet(robot, standing)
        motions = check_motions(robot)
        guesses = [f"{field}: {guess}" for field, guess in gaps.items()]
        self.problems = [
            *guesses,
            *_world_problems(robot),
            *joints.problems,
            *feet.problems,
            *motions.problems,
        ]
        self.tables = [
            masses_table(robot, standing),
            joints.table,
            joints.stance_table,
            feet.table,
            overlaps_table(standing),
            motions.table,
        ]

    def _as_tables(self) -> list[Table]:
        # A table without rows, such as the table of overlaps, is left out.
        tables = [table for table in self.tables if table[2]]
        rows = [(problem,) for problem in self.problems or ["none"]]
        problems = ("problems", ("which, where, what to write",), rows)
        return [*tables, problems]


def _world_problems(robot: RobotCfg) -> list[str]:
    """Return a problem if the robot's file sets what is the task's business, such as gravity."""
    changed = changed_options(mujoco.MjSpec.from_file(str(robot.path)))
    if not changed:
        return []
    listed = ", ".join(f"{name} {value}" for name, value in changed.items())
    return [
        f"{robot.xml} sets {listed}, which every task with this robot then has: "
        "take it out unless it is on purpose"
    ]


def masses_table(robot: RobotCfg, standing: StandingRobot) -> Table:
    """Return the table of masses, kg: of the base, and of each limb attached to it.

    Args:
        robot: Configuration of the robot.
        standing: The robot in its default pose.
    """
    model = standing.model
    subtree_mass = model.body_subtreemass
    base = model.body(robot.base_body).id
    rows = [(robot.base_body, model.body_mass[base])]
    for limb in np.flatnonzero(model.body_parentid == base):
        rows.append((model.body(limb).name, subtree_mass[limb]))
    title = f"{robot.name}, {subtree_mass[base]:.5g} kg"
    return title, ("body, and what hangs on it", "kg"), rows


def overlaps_table(standing: StandingRobot) -> Table:
    """Return the table of collision shapes that overlap in the default pose, with depths in m.

    Pairs of neighbouring bodies are left out. An overlap does not change the simulation, because
    shapes of one robot do not collide with each other.

    Args:
        standing: The robot in its default pose.
    """
    model, data = standing
    # Bodies without a joint between them are one rigid body with one weld index in MuJoCo.
    weld_of_geom = model.body_weldid[model.geom_bodyid]
    parent_weld = model.body_weldid[model.body_parentid]
    rows = []
    shapes = np.flatnonzero(model.geom_conaffinity).tolist()
    for first, second in combinations(shapes, 2):
        first_weld = weld_of_geom[first]
        second_weld = weld_of_geom[second]
        are_neighbours = (
            first_weld == second_weld
            or first_weld == parent_weld[second_weld]
            or second_weld == parent_weld[first_weld]
        )
        # With a largest distance of 0, MuJoCo returns 0 for all shapes that do not overlap.
        depth = -mujoco.mj_geomDistance(model, data, first, second, 0.0, None)
        if not are_neighbours and depth > LIMITS.min_overlap:
            names = [model.body(model.geom_bodyid[shape]).name for shape in (first, second)]
            rows.append((*names, f"{depth:.3f}"))
    title = "collision shapes that overlap; the simulation lets them"
    return title, ("body", "other body", "by, m"), rows
