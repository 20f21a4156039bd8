"""Report on a robot, as ``legged-envs check`` prints it."""

from collections.abc import Mapping
from itertools import combinations

import mujoco
import numpy as np

from legged_envs.robot_check.feet import check_feet
from legged_envs.robot_check.joints import check_joints
from legged_envs.robot_check.limits import LIMITS
from legged_envs.robots.robot import RobotCfg
from legged_envs.sim.cfg import SimCfg
from legged_envs.sim.gains import StandingRobot, settle, stand
from legged_envs.sim.robot_view import RobotView, no_free_joint
from legged_envs.sim.scene import build_scene
from legged_envs.tables import Table, TableRepr


class Report(TableRepr):
    """Masses, joints, stance and feet of a robot, and its problems. It prints as tables.

    Args:
        robot: Robot to report on.
        gaps: Fields that are guesses, each with the reason and what to write. They are problems.

    Raises:
        ValueError: If the model cannot be compiled, does not fit the configuration, or has no free
            joint.
    """

    problems: list[str]
    """What is wrong: where, and what to write. Empty if nothing is."""
    tables: list[Table]
    """Masses, joints, stance, feet and overlapping shapes."""

    def __init__(self, robot: RobotCfg, gaps: Mapping[str, str]) -> None:
        # The checks of an environment: a robot that it refuses has no report.
        view = RobotView.find(build_scene(robot, SimCfg()), robot)
        if view.root_qpos is None:
            raise no_free_joint(robot)
        standing = stand(robot)
        joints = check_joints(robot, standing, settle(robot))
        feet = check_feet(robot, standing)
        guesses = [f"{field}: {guess}" for field, guess in gaps.items()]
        self.problems = [*guesses, *joints.problems, *feet.problems]
        self.tables = [
            masses_table(robot, standing),
            joints.table,
            joints.stance_table,
            feet.table,
            overlaps_table(standing),
        ]

    def _as_tables(self) -> list[Table]:
        # A table without rows, such as that of overlaps, is left out.
        tables = [table for table in self.tables if table[2]]
        rows = [(problem,) for problem in self.problems or ["none"]]
        problems = ("problems", ("which, where, what to write",), rows)
        return [*tables, problems]


def masses_table(robot: RobotCfg, standing: StandingRobot) -> Table:
    """Return the masses of the base and of each limb, kg."""
    model = standing.model
    subtree_mass = model.body_subtreemass
    base = model.body(robot.base_body).id
    rows = [(robot.base_body, model.body_mass[base])]
    for limb in np.flatnonzero(model.body_parentid == base):
        rows.append((model.body(limb).name, subtree_mass[limb]))
    title = f"{robot.name}, {subtree_mass[base]:.5g} kg"
    return title, ("body, and what hangs on it", "kg"), rows


def overlaps_table(standing: StandingRobot) -> Table:
    """Return the pairs of collision shapes that overlap, without those of neighbouring bodies.

    The simulation lets them: shapes of one robot do not collide with each other.
    """
    model, data = standing
    # Bodies without a joint between them are one: MuJoCo welds them.
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
        # A distance of at most 0 is asked for: 0 is returned for all shapes that are apart.
        depth = -mujoco.mj_geomDistance(model, data, first, second, 0.0, None)
        if not are_neighbours and depth > LIMITS.min_overlap:
            names = [model.body(model.geom_bodyid[shape]).name for shape in (first, second)]
            rows.append((*names, f"{depth:.3f}"))
    title = "collision shapes that overlap; the simulation lets them"
    return title, ("body", "other body", "by, m"), rows
