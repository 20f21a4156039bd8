"""Finds the legs and arms of a robot in its model, each as three bodies: root, middle and end."""

from dataclasses import dataclass

import numpy as np
import torch

from legged_envs import rotation
from legged_envs.motions.kinematics import body_names, posed, robot_model
from legged_envs.robots import RobotCfg

SHORTEST_ARM = 3
"""Least number of joints of an arm. A head has fewer."""
FOREARM = 0.7
"""Length of the last body of an arm, relative to the arm before it, from which on the body is the
forearm. Hands of the robots in this package have 0.4, and forearms 0.8 and more."""


@dataclass(frozen=True)
class Limb:
    """A leg or an arm of a robot."""

    role: str
    """Name of the limb, such as ``"left leg"`` or ``"front left leg"``."""
    root: str
    """Name of the first body that no other limb has, such as a hip or a shoulder."""
    middle: str
    """Name of the body at the knee or the elbow."""
    end: str
    """Name of the last body: the foot or the hand."""
    lengths: tuple[float, float]
    """Distances from root to middle and from middle to end in the default pose, m."""
    hand: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Place of the hand in the frame of the last body, m. It is not 0 if that body is the whole
    forearm and starts at the elbow; then ``middle`` is the last body too."""

    @property
    def bodies(self) -> tuple[str, str, str]:
        """Names of root, middle and end."""
        return (self.root, self.middle, self.end)


@dataclass(frozen=True)
class Stance:
    """Poses of a robot's bodies as it stands upright in its default pose, base at (0, 0, 0)."""

    pos: dict[str, np.ndarray]
    """Position of each body, m. Shape: (3,)."""
    quat: dict[str, np.ndarray]
    """Orientation of each body, (w, x, y, z). Shape: (4,)."""


def stance_of(robot: RobotCfg) -> Stance:
    """Return the poses of the bodies in the default pose, relative to the base."""
    base = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    qpos = torch.tensor([[*base, *robot.default_joint_pos]])
    data = next(iter(posed(robot, qpos)))
    pos = {}
    quat = {}
    for index, name in enumerate(body_names(robot), start=1):
        pos[name] = data.xpos[index].copy()
        quat[name] = data.xquat[index].copy()
    return Stance(pos, quat)


def limbs_of(robot: RobotCfg) -> dict[str, Limb]:
    """Return the legs and arms of a robot by their roles, the legs first.

    A leg ends at a foot. An arm ends at another body without children, and has at least three
    separate joints. The places in the default pose decide the sides, whatever the names are.
    """
    ends = (*robot.foot_names, *_hands(robot))
    chains = {end: _chain(robot, end) for end in ends}
    stance = stance_of(robot)
    hips = [stance.pos[_own_part(chains, foot)[0]][0] for foot in robot.foot_names]
    limbs = {}
    for end in chains:
        own = _own_part(chains, end)
        is_leg = end in robot.foot_names
        is_arm = not is_leg and _num_joints(robot, own) >= SHORTEST_ARM
        if len(own) < 3 or not (is_leg or is_arm):
            continue
        root = own[0]
        side = "left" if stance.pos[root][1] > 0.0 else "right"
        kind = "leg" if is_leg else "arm"
        role = f"{side} {kind}"
        if is_leg and len(robot.foot_names) > 2:
            is_front = stance.pos[root][0] > np.mean(hips)
            half = "front" if is_front else "hind"
            role = f"{half} {role}"
        limbs[role] = _make_limb(role, own, robot, stance)
    return limbs


def torso_of(robot: RobotCfg) -> str | None:
    """Return the name of the body that carries the arms.

    Returns None if the arms are attached to the base, and if there are no arms.
    """
    model = robot_model(robot)
    for role, limb in limbs_of(robot).items():
        if role.endswith("arm"):
            parent = int(model.body(limb.root).parentid[0])
            name: str = model.body(parent).name
            return None if name == robot.base_body else name
    return None


def _hands(robot: RobotCfg) -> list[str]:
    """Return the bodies without children that are not feet, and above no foot."""
    model = robot_model(robot)
    parents = set(model.body_parentid[1:].tolist())
    hands = []
    for index, name in enumerate(body_names(robot), start=1):
        if index not in parents and name not in robot.foot_names:
            hands.append(name)
    return hands


def _chain(robot: RobotCfg, end: str) -> list[str]:
    """Return the bodies from below the base to ``end``."""
    model = robot_model(robot)
    chain: list[str] = []
    body = model.body(end).id
    while body > 0 and model.body(body).name != robot.base_body:
        chain.insert(0, model.body(body).name)
        body = int(model.body_parentid[body])
    return chain


def _own_part(chains: dict[str, list[str]], end: str) -> list[str]:
    """Return the bodies of a chain that are in no other chain."""
    shared: set[str] = set()
    for other, chain in chains.items():
        if other != end:
            shared.update(chain)
    return [body for body in chains[end] if body not in shared]


def _make_limb(role: str, bodies: list[str], robot: RobotCfg, stance: Stance) -> Limb:
    """Return the limb of some bodies, which follow each other from the hip or the shoulder."""
    root = bodies[0]
    middle = _middle(bodies, stance)
    end = bodies[-1]
    hand = np.zeros(3)
    if role.endswith("arm"):
        hand = _place_of_hand(robot, bodies, stance)
    if hand.any():
        middle = end
    elbow = stance.pos[middle]
    tip = stance.pos[end] + _rotate(stance.quat[end], hand)
    upper = np.linalg.norm(elbow - stance.pos[root])
    lower = np.linalg.norm(tip - elbow)
    x, y, z = hand.tolist()
    return Limb(
        role=role,
        root=root,
        middle=middle,
        end=end,
        lengths=(float(upper), float(lower)),
        hand=(x, y, z),
    )


def _place_of_hand(robot: RobotCfg, bodies: list[str], stance: Stance) -> np.ndarray:
    """Return the place of the hand in the frame of the last body of an arm, m. Shape: (3,).

    It is 0 if the last body is a hand. A forearm has its centre of mass halfway to the hand.
    """
    to_hand: np.ndarray = 2.0 * robot_model(robot).body(bodies[-1]).ipos
    before = np.linalg.norm(stance.pos[bodies[-1]] - stance.pos[bodies[0]])
    if np.linalg.norm(to_hand) < FOREARM * before:
        return np.zeros(3)
    return to_hand


def _rotate(quat: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Return a vector of the frame with an orientation, (w, x, y, z), in the world."""
    rotated = rotation.rotate(torch.from_numpy(quat), torch.from_numpy(vector))
    result: np.ndarray = rotated.numpy()
    return result


def _num_joints(robot: RobotCfg, bodies: list[str]) -> int:
    model = robot_model(robot)
    return sum(int(model.body(body).jntnum[0]) for body in bodies)


def _middle(bodies: list[str], stance: Stance) -> str:
    """Return the body that is farthest from both ends of a limb: its knee or elbow."""
    best = bodies[1]
    farthest = -1.0
    for body in bodies[1:-1]:
        to_root = np.linalg.norm(stance.pos[body] - stance.pos[bodies[0]])
        to_end = np.linalg.norm(stance.pos[body] - stance.pos[bodies[-1]])
        nearest = float(min(to_root, to_end))
        if nearest > farthest:
            farthest = nearest
            best = body
    return best
