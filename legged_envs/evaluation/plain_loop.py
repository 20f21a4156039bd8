"""A policy as another program runs it: a plain `mj_step` loop from an ONNX file."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch

from legged_envs.evaluation.plain_gait import PlainGait, gait_term
from legged_envs.policy.memory import MEMORY_KEY
from legged_envs.policy.metadata import LATER_ENTRIES, ROBOT_ENTRIES, Contract
from legged_envs.policy.policy import Policy
from legged_envs.policy.weights_file import LARGEST_HEADER, check_file_size
from legged_envs.robots import RobotCfg
from legged_envs.sim.cfg import SimCfg
from legged_envs.sim.robot_state import CONTACT_FORCE
from legged_envs.sim.scene import build_scene

Recording = dict[str, np.ndarray]
"""What robots did, at one moment or at each step: arrays (num_robots, …) or (steps, num_robots, …).

`PlainLoop.look` lists the names.
"""

TEXT_ENTRIES = ("task_id", "robot", "action")
"""Entries of a contract that are plain text in an ONNX file. The others are JSON."""

NEEDED_ENTRIES = (*ROBOT_ENTRIES, "inputs", "action_scale", *LATER_ENTRIES)
"""Entries of a contract without which the loop cannot run."""

Values = dict[str, np.ndarray]
"""Name of an observation term → its value, neither clipped nor scaled."""

DOWN = (0.0, 0.0, -1.0)
"""Direction of gravity in the world."""


def _to_base(data: mujoco.MjData, vector: Sequence[float] | np.ndarray) -> np.ndarray:
    """Rotate a vector from the world to the base frame."""
    inverse = np.empty(4)
    rotated = np.empty(3)
    mujoco.mju_negQuat(inverse, data.qpos[3:7])
    mujoco.mju_rotVecQuat(rotated, np.array(vector, float), inverse)
    return rotated


# --- observation terms: term(loop, data, i) of robot i --------------------------------------------


def _command(loop: "PlainLoop", data: mujoco.MjData, i: int) -> np.ndarray:
    command: np.ndarray = loop.command[i]
    return command


def _gravity(loop: "PlainLoop", data: mujoco.MjData, i: int) -> np.ndarray:
    return _to_base(data, DOWN)


def _ang_vel(loop: "PlainLoop", data: mujoco.MjData, i: int) -> np.ndarray:
    # MuJoCo has the angular velocity of a free joint in the frame of the body.
    return data.qvel[3:6]


def _lin_vel(loop: "PlainLoop", data: mujoco.MjData, i: int) -> np.ndarray:
    return _to_base(data, data.qvel[:3])


def _joint_pos(loop: "PlainLoop", data: mujoco.MjData, i: int) -> np.ndarray:
    return data.qpos[loop.joint_qpos] - loop.default_joint_pos


def _joint_vel(loop: "PlainLoop", data: mujoco.MjData, i: int) -> np.ndarray:
    return data.qvel[loop.joint_qvel]


def _action(loop: "PlainLoop", data: mujoco.MjData, i: int) -> np.ndarray:
    action: np.ndarray = loop.action[i]
    return action


def _clock(loop: "PlainLoop", data: mujoco.MjData, i: int) -> np.ndarray:
    angle = 2.0 * math.pi * loop.phase[i]
    return np.array([math.sin(angle), math.cos(angle)])


TERMS: dict[str, Callable[["PlainLoop", mujoco.MjData, int], np.ndarray]] = {
    "command": _command,
    "gravity": _gravity,
    "ang_vel": _ang_vel,
    "lin_vel": _lin_vel,
    "joint_pos": _joint_pos,
    "joint_vel": _joint_vel,
    "action": _action,
    "clock": _clock,
    "gait": gait_term("gait"),
    "gait_style": gait_term("gait_style"),
    "clock_sin": gait_term("clock_sin"),
    "clock_cos": gait_term("clock_cos"),
}
"""Observation terms by their names in a contract."""


class PlainLoop:
    """Robots on flat ground under a policy, one `MjData` each.

    The model comes from the robot. Gains, limits, joint order and pose come from the contract.

    Args:
        source: ONNX file with a contract, or a policy of another framework.
        robot: Robot of the task.
        cfg: Physics of the task.

    Raises:
        ValueError: If the contract asks for what this loop cannot do.
    """

    command: np.ndarray
    """Velocity command of each robot, m/s and rad/s. Shape: (n, 3)."""
    phase: np.ndarray
    """Time of the stride of each robot, in strides. Shape: (n,)."""
    gait: PlainGait | None
    """Gait commands of the robots. None: the policy has none."""
    action: np.ndarray
    """Last action of each robot, clipped. Shape: (n, num_actions)."""
    data: list[mujoco.MjData]
    """State of each robot."""

    def __init__(self, source: Path | Policy, robot: RobotCfg, cfg: SimCfg):
        self._network: _PolicyNetwork | _OnnxNetwork
        if isinstance(source, Policy):
            self._network = _PolicyNetwork(source)
        else:
            self._network = _OnnxNetwork(source)
        contract = self._network.contract
        _check_contract(source, contract)
        self._terms: list[dict[str, Any]] = contract["observation"]
        self._observation_limit = contract["observation_limit"]

        self.model = _scene(contract, robot, cfg)
        """Model of one robot on a plane."""
        self._dt = float(contract["control_dt"])
        self._substeps = round(self._dt / cfg.dt)

        self.default_joint_pos = np.array(contract["default_joint_pos"])
        """Default pose, in the joint order of the contract, rad. Shape: (num_joints,)."""
        # A joint that no action drives holds its default position, without velocity or torque.
        is_position = [kind == "position" for kind in contract["actuators"]]
        self._rest_target = np.where(is_position, self.default_joint_pos, 0.0)

        # Everything here is in the joint order of the contract, which may differ from the model's.
        names = contract["joint_names"]
        self._driven = [names.index(name) for name in contract["action_joints"]]
        self._action_scale = np.array(contract["action_scale"])
        self._action_limit = contract["action_limit"]
        # NaN where there is no bound: fmin and fmax pass over it.
        bounds = np.array(contract["target_clip"], float)
        self._target_low = bounds[:, 0]
        self._target_high = bounds[:, 1]
        joints = [self.model.joint(name) for name in names]

        self.joint_qpos = np.array([joint.qposadr[0] for joint in joints])
        """Indices into `qpos`. Shape: (num_joints,)."""
        self.joint_qvel = np.array([joint.dofadr[0] for joint in joints])
        """Indices into `qvel`. Shape: (num_joints,)."""
        self._actuators = [self.model.actuator(name).id for name in names]
        self._feet = [self.model.body(name).id for name in robot.foot_names]
        self._gait: dict[str, Any] = contract.get("gait", {})
        self._gait_command: dict[str, Any] = contract.get("gait_command", {})
        self._swing = _swing_table(self._gait, names)
        # Of each robot, the values of earlier steps, the newest first.
        self._past: list[list[Values]] = []
        ages = [term.get("steps_ago", 0) for term in self._terms]
        self._oldest = max(ages, default=0)

    def start(
        self,
        state: Recording,
        command: np.ndarray,
        phase: np.ndarray,
        gaits: np.ndarray | None = None,
    ) -> None:
        """Put the robots into their first states.

        Args:
            state: Recording of one moment.
            command: Velocity commands. Shape: (n, 3).
            phase: Times of the stride, used if there is a gait. Shape: (n,).
            gaits: Gait commands. None: the policy has none. Shape: (n, 7).
        """
        self._network.begin(len(command))
        self.command = command
        self.phase = phase
        self.gait = None
        if self._gait_command and gaits is not None:
            self.gait = PlainGait(self._gait_command, gaits, phase)
        self.action = np.zeros((len(command), len(self._action_scale)))
        self.data = [mujoco.MjData(self.model) for _ in command]
        self._past = [[] for _ in command]
        for i, data in enumerate(self.data):
            data.qpos[:7] = state["root"][i]
            data.qpos[self.joint_qpos] = state["joints"][i]
            data.qvel[:6] = state["twist"][i]
            data.qvel[self.joint_qvel] = state["joint_vel"][i]
            # Contacts and body poses follow from the state only after this call.
            mujoco.mj_forward(self.model, data)

    def observe(self) -> np.ndarray:
        """Return the observation of each robot. Shape: (n, size), float32.

        Raises:
            ValueError: If a term has another size than in the contract.
        """
        return self._as_observation(self._present_values())

    def _present_values(self) -> list[Values]:
        """Return the present value of each term, of each robot."""
        names = {term["name"] for term in self._terms}
        robots = []
        for i, data in enumerate(self.data):
            values = {}
            for name in names:
                # A copy: views of the state change with the next step.
                values[name] = np.array(TERMS[name](self, data, i), float)
            robots.append(values)
        return robots

    def _as_observation(self, present: list[Values]) -> np.ndarray:
        rows = []
        limit = self._observation_limit
        for values, past in zip(present, self._past, strict=True):
            steps = [values, *past]
            parts = []
            for term in self._terms:
                # The first step of an episode stands for those before it.
                age = min(term.get("steps_ago", 0), len(steps) - 1)
                parts.append(self._scaled(term, steps[age][term["name"]]))
            rows.append(np.clip(np.concatenate(parts), -limit, limit))
        return np.array(rows, np.float32)

    def _scaled(self, term: dict[str, Any], value: np.ndarray) -> np.ndarray:
        if value.size != term["size"]:
            raise ValueError(
                f"observation {term['name']!r} has {term['size']} numbers in the contract, "
                f"and {value.size} in this loop"
            )
        # As in the environment, the clip comes before the scale.
        low, high = term["clip"] or (-math.inf, math.inf)
        clipped: np.ndarray = np.clip(value, low, high)
        return clipped * term["scale"]

    def step(self) -> Recording:
        """Make one control step and return what `look` sees then."""
        present = self._present_values()
        actions = self._network(self._as_observation(present))
        for values, past in zip(present, self._past, strict=True):
            past.insert(0, values)
            del past[self._oldest :]
        self.action = np.clip(actions, -self._action_limit, self._action_limit)
        for i, data in enumerate(self.data):
            # The gait moves all joints, and the action corrects the joints that it drives.
            target = self._rest_target + self._lift(i)
            driven = target[self._driven] + self._action_scale * self.action[i]
            target[self._driven] = np.fmax(np.fmin(driven, self._target_high), self._target_low)
            data.ctrl[self._actuators] = target
            # The joint PD runs in MuJoCo's actuators, at the physics rate.
            mujoco.mj_step(self.model, data, self._substeps)
        if self._gait:
            self.phase = (self.phase + self._dt / self._gait["period"]) % 1.0
        if self.gait is not None:
            self.gait.advance(self._dt)
        return self.look()

    def _lift(self, i: int) -> Any:
        """Return what the gait of robot i adds to the joint targets, rad. Shape: (num_joints,)."""
        if not len(self._swing):
            return 0.0
        # `CLOCK_FORMULA` and `LIFT_FORMULA` in `policy/metadata.py`.
        stance = self._gait["stance"]
        phase = (self.phase[i] + np.array(self._gait["offsets"])) % 1.0
        angle = np.maximum(phase - stance, 0.0) * math.pi / (1.0 - stance)
        return np.sin(angle) ** 2 @ self._swing

    def look(self) -> Recording:
        """Return the present state of the robots, in SI units.

        Returns:
            `root` and `twist`, pose and velocity of the free joint; `lin_vel`, velocity in the base
            frame; `gravity`, its direction in the base frame; `height` of the base; `joints`,
            `joint_vel` and `torque`; `contact`, True for feet in contact. Shapes: (n, …).
        """
        rows = []
        for data in self.data:
            # The last three columns of `cfrc_ext` are the net external force on a body.
            foot_force = np.linalg.norm(data.cfrc_ext[self._feet, 3:], axis=1)
            row = {
                "root": data.qpos[:7],
                "twist": data.qvel[:6],
                "lin_vel": _to_base(data, data.qvel[:3]),
                "gravity": _to_base(data, DOWN),
                "height": data.qpos[2],
                "contact": foot_force > CONTACT_FORCE,
                "joints": data.qpos[self.joint_qpos],
                "joint_vel": data.qvel[self.joint_qvel],
                "torque": data.actuator_force[self._actuators],
            }
            rows.append(row)
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}


class _OnnxNetwork:
    """Network of an ONNX file, with its contract.

    Args:
        path: ONNX file with a contract.
    """

    def __init__(self, path: Path):
        import onnx
        from onnx.reference import ReferenceEvaluator

        check_file_size(path)
        # Without the files that a stranger's model may name for its weights.
        model = onnx.load(str(path), load_external_data=False)
        self.contract = _read_contract(path, model.metadata_props)
        # The slowest runtime, which needs no further package.
        self._evaluator: Any = ReferenceEvaluator(model)
        self._memory: dict[str, np.ndarray] = {}

    def begin(self, num_robots: int) -> None:
        """Clear the memory, because all robots start."""
        sizes: dict[str, int] = self.contract.get(MEMORY_KEY, {})
        self._memory = {
            name: np.zeros((num_robots, size), np.float32) for name, size in sizes.items()
        }

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        """Return the actions of observations. Shape: (n, size) → (n, num_actions), float32."""
        actions, *after = self._evaluator.run(None, {"obs": observation, **self._memory})
        self._memory = dict(zip(self._memory, after, strict=True))
        return np.asarray(actions)


class _PolicyNetwork:
    """Network of a policy of another framework.

    Args:
        policy: The policy.
    """

    def __init__(self, policy: Policy):
        self.contract = policy.contract
        self._policy = policy

    def begin(self, num_robots: int) -> None:
        """Clear the memory, because all robots start."""
        self._policy.reset()

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        """Return the actions of observations. Shape: (n, size) → (n, num_actions), float32."""
        actions: np.ndarray = self._policy(torch.from_numpy(observation)).numpy()
        return actions


def _read_contract(path: Path, entries: Sequence[Any]) -> Contract:
    """Return the contract in the metadata of an ONNX file.

    Raises:
        ValueError: If an entry is too long, or not JSON.
    """
    contract: Contract = {}
    for entry in entries:
        if len(entry.value) > LARGEST_HEADER:
            raise ValueError(
                f"{entry.key!r} of the contract in {str(path)!r} has {len(entry.value):,} "
                f"characters, at most {LARGEST_HEADER:,} are read: export the policy again"
            )
        if entry.key in TEXT_ENTRIES:
            contract[entry.key] = entry.value
            continue
        try:
            contract[entry.key] = json.loads(entry.value)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{entry.key!r} of the contract in {str(path)!r} is not JSON: "
                "export the policy again"
            ) from error
    return contract


def _check_contract(source: Path | Policy, contract: Contract) -> None:
    for name in NEEDED_ENTRIES:
        if name not in contract:
            raise ValueError(
                f"{str(source)!r} has no contract of this version in its metadata: no {name!r}"
            )
    if len(contract["inputs"]) != 1 or "reference" in contract:
        raise ValueError(
            f"it takes {', '.join(contract['inputs'])}, "
            "but this loop supports no motions or other groups"
        )
    for term in contract["observation"]:
        if term["name"] not in TERMS or "own" in term:
            raise ValueError(
                f"it observes {term['name']!r}, but this loop supports only {', '.join(TERMS)}"
            )


def _scene(contract: Contract, robot: RobotCfg, cfg: SimCfg) -> mujoco.MjModel:
    """Build the model of a robot with the gains, limits and pose of a contract."""
    # The fields of `RobotCfg` are in the joint order of the robot.
    order = [contract["joint_names"].index(name) for name in robot.joint_names]
    own: dict[str, Any] = {}
    for field in ROBOT_ENTRIES:
        own[field] = tuple(contract[field][i] for i in order)
    return build_scene(replace(robot, **own), cfg)


def _swing_table(gait: dict[str, Any], names: Sequence[str]) -> np.ndarray:
    """Return how far each foot's joints turn in mid-swing, rad. Shape: (num_feet, num_joints)."""
    feet = []
    for turns in gait.get("swing", ()):
        feet.append([turns.get(name, 0.0) for name in names])
    # Without a gait there are no rows, but the shape is still two-dimensional.
    return np.array(feet).reshape(-1, len(names))
