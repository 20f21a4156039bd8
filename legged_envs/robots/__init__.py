"""The robots of the package. Each is an MJCF model of primitive shapes and a :class:`RobotCfg`."""

from legged_envs.robots.a1 import A1
from legged_envs.robots.anymal_c import ANYMAL_C
from legged_envs.robots.g1 import G1, G1_29
from legged_envs.robots.go1 import GO1
from legged_envs.robots.go2 import GO2
from legged_envs.robots.h1 import H1
from legged_envs.robots.k1 import K1
from legged_envs.robots.robot import RobotCfg
from legged_envs.robots.t1 import T1
from legged_envs.robots.tron1 import TRON1_PF, TRON1_SF, TRON1_WF

_ALL = (A1, ANYMAL_C, G1, G1_29, GO1, GO2, H1, K1, T1, TRON1_PF, TRON1_SF, TRON1_WF)

ROBOTS = {robot.name: robot for robot in _ALL}
"""All robots of the package: the name of each, such as ``"go2"``, and its configuration."""

__all__ = [
    "A1",
    "ANYMAL_C",
    "G1",
    "G1_29",
    "GO1",
    "GO2",
    "H1",
    "K1",
    "ROBOTS",
    "T1",
    "TRON1_PF",
    "TRON1_SF",
    "TRON1_WF",
    "RobotCfg",
]
