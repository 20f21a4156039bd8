"""The control loop of a policy: from measurements to joint targets, by the policy metadata.

The loop needs only NumPy and onnxruntime, as `examples/deploy.py` does.
"""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

TEXT_ENTRIES = ("task_id", "robot", "action")
"""Entries of a contract that are plain text in an ONNX file. The others are JSON."""


@dataclass
class Senses:
    """Measurements of a robot at one moment. Joints are in the order of the contract."""

    command: np.ndarray
    """Commanded velocities, m/s and rad/s. Shape: (3,)."""
    quat: np.ndarray
    """Orientation of the base, w first. Shape: (4,)."""
    ang_vel: np.ndarray
    """Angular velocity in the frame of the base, rad/s. Shape: (3,)."""
    joint_pos: np.ndarray
    """Positions of the joints, rad. Shape: (num_joints,)."""
    joint_vel: np.ndarray
    """Speeds of the joints, rad/s. Shape: (num_joints,)."""
    height_scan: np.ndarray = field(default_factory=lambda: np.empty(0))
    """How far the ground is below the base, m. Shape: (num_points,)."""


class Driver:
    """Runs a policy step by step, with the histories, the memory and the clock of its contract.

    Args:
        path: ONNX file that `legged-envs export` wrote.

    Raises:
        ValueError: If the file has no contract, or asks for what this loop cannot observe.
    """

    contract: dict[str, Any]
    """The contract of the policy, by entry."""
    observation: np.ndarray
    """Observation of the network in the last step. Shape: (size,), float32."""
    action: np.ndarray
    """Last output of the network, clipped. Shape: (num_actions,)."""

    def __init__(self, path: Path):
        # One robot at a time: more threads only wait for each other.
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._network = onnxruntime.InferenceSession(str(path), options)
        self.contract = _contract_of(self._network, path)
        self._terms: list[dict[str, Any]] = self.contract["observation"]
        self._names = {term["name"] for term in self._terms}
        self._oldest = max(term.get("steps_ago", 0) for term in self._terms)
        _check_terms(path, self.contract, self._names)

        self.default_joint_pos = np.array(self.contract["default_joint_pos"])
        """Default pose, rad. Shape: (num_joints,)."""
        names = self.contract["joint_names"]
        self._driven = [names.index(name) for name in self.contract["action_joints"]]
        self._scale = np.array(self.contract["action_scale"])
        self._limit = float(self.contract["action_limit"])
        # NaN where there is no bound: fmin and fmax pass over it.
        bounds = np.array(self.contract["target_clip"], float)
        self._target_low = bounds[:, 0]
        self._target_high = bounds[:, 1]
        self._gait: dict[str, Any] = self.contract.get("gait", {})
        turns = []
        for swing in self._gait.get("swing", ()):
            turns.append([swing[name] for name in names])
        self._swing = np.array(turns)
        self.reset()

    def reset(self) -> None:
        """Begin an episode: without a past, with an empty memory and a clock at 0."""
        self.action = np.zeros(len(self._scale))
        self._time = 0.0
        self._past: list[dict[str, np.ndarray]] = []
        self._memory: dict[str, np.ndarray] = {}
        for name, size in self.contract.get("memory", {}).items():
            self._memory[name] = np.zeros((1, size), np.float32)

    def act(self, senses: Senses) -> np.ndarray:
        """Make one control step.

        Args:
            senses: Present measurements of the robot.

        Returns:
            Targets of all joints in the order of the contract, rad. Shape: (num_joints,).
        """
        self.observation = self._observe(senses)
        actions, *after = self._network.run(None, {"obs": self.observation[None], **self._memory})
        self._memory = dict(zip(self._memory, after, strict=True))
        self.action = np.clip(actions[0], -self._limit, self._limit)
        target = self.default_joint_pos + self._lift()
        driven = target[self._driven] + self._scale * self.action
        target[self._driven] = np.fmax(self._target_low, np.fmin(self._target_high, driven))
        self._time += self.contract["control_dt"]
        return target

    def _observe(self, senses: Senses) -> np.ndarray:
        now = {name: self._value(name, senses) for name in self._names}
        # The first step of an episode stands for those before it.
        steps = [now, *(self._past or [now] * self._oldest)]
        self._past = steps[: self._oldest]
        parts = []
        for term in self._terms:
            value = steps[term.get("steps_ago", 0)][term["name"]]
            if value.size != term["size"]:
                raise ValueError(
                    f"the policy takes {term['size']} numbers of {term['name']!r}, "
                    f"and got {value.size}: export it anew"
                )
            # As in the environment, the clip comes before the scale.
            low, high = term["clip"] or (None, None)
            clipped = value if low is None and high is None else np.clip(value, low, high)
            parts.append(clipped * term["scale"])
        limit = self.contract["observation_limit"]
        return np.concatenate(parts, dtype=np.float32).clip(-limit, limit)

    def _value(self, name: str, senses: Senses) -> np.ndarray:
        if name == "gravity":
            return _gravity(senses.quat)
        if name == "joint_pos":
            return senses.joint_pos - self.default_joint_pos
        if name == "action":
            return self.action
        if name == "clock":
            angle = 2.0 * math.pi * self._time / self._gait["period"]
            return np.array([math.sin(angle), math.cos(angle)])
        # A copy: a simulator may write into its arrays in the next step.
        return np.array(getattr(senses, name), float)

    def _lift(self) -> np.ndarray:
        """Return what the gait adds to the targets, rad. Shape: (num_joints,)."""
        if not len(self._swing):
            return np.zeros(len(self.default_joint_pos))
        stance = self._gait["stance"]
        stride = self._time / self._gait["period"] + np.array(self._gait["offsets"])
        swung = np.maximum(stride % 1.0 - stance, 0.0) / (1.0 - stance)
        lift: np.ndarray = np.sin(math.pi * swung) ** 2 @ self._swing
        return lift


OBSERVABLE = (
    "command",
    "gravity",
    "ang_vel",
    "joint_pos",
    "joint_vel",
    "action",
    "clock",
    "height_scan",
)
"""Names of the observation terms that `Driver` knows."""


def _contract_of(network: Any, path: Path) -> dict[str, Any]:
    contract: dict[str, Any] = {}
    for name, text in network.get_modelmeta().custom_metadata_map.items():
        contract[name] = text if name in TEXT_ENTRIES else json.loads(text)
    if "observation" not in contract:
        raise ValueError(f"{str(path)!r} has no contract: write it with legged-envs export")
    return contract


def _check_terms(path: Path, contract: dict[str, Any], names: set[str]) -> None:
    own = {term["name"] for term in contract["observation"] if "own" in term}
    unknown = sorted(own | (names - set(OBSERVABLE)))
    if len(contract["inputs"]) > 1:
        unknown += list(contract["inputs"])[1:]
    if unknown:
        raise ValueError(
            f"{str(path)!r} observes {', '.join(unknown)}, which is not computed here: "
            f"use a policy that observes only {', '.join(OBSERVABLE)}"
        )
    moved = sorted(set(contract["actuators"]) - {"position"})
    if moved:
        raise ValueError(
            f"{str(path)!r} has targets of {', '.join(moved)}, and RoboGauge takes positions: "
            "use a policy with actuators 'position' alone"
        )


def _gravity(quat: np.ndarray) -> np.ndarray:
    """Return the direction of gravity in the frame of the base. Shape: (3,)."""
    w, x, y, z = quat
    return np.array(
        [
            2.0 * (w * y - x * z),
            -2.0 * (y * z + w * x),
            2.0 * (x * x + y * y) - 1.0,
        ]
    )
