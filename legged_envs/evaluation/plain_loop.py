"""A policy as somebody else runs it: a plain ``mj_step`` loop, from an ONNX file and the contract in it alone."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from legged_envs.policy.metadata import LATER_ENTRIES, ROBOT_ENTRIES
from legged_envs.robots import RobotCfg
from legged_envs.sim.robot_state import CONTACT_FORCE
from legged_envs.sim.scene import build_scene
from legged_envs.sim.simulation import SimCfg

Recording = dict[str, Any]
"""What robots did: of each step, or one moment, the arrays (num_robots, …) of :meth:`PlainLoop.look`."""
TEXTS = ("task_id", "robot", "action")
"""Entries of a contract that are no JSON in an ONNX file."""
_DOWN = (0.0, 0.0, -1.0)
TERMS: dict[str, Callable[[Any, mujoco.MjData, int], Any]] = {
    "command": lambda loop, data, i: loop.command[i],
    "gravity": lambda loop, data, i: _to_base(data, _DOWN),
    "ang_vel": lambda loop, data, i: data.qvel[3:6],
    "lin_vel": lambda loop, data, i: _to_base(data, data.qvel[:3]),
    "joint_pos": lambda loop, data, i: data.qpos[loop.joint_qpos] - loop.default,
    "joint_vel": lambda loop, data, i: data.qvel[loop.joint_qvel],
    "action": lambda loop, data, i: loop.action[i],
    "clock": lambda loop, data, i: (
        math.sin(2.0 * math.pi * loop.phase[i]),
        math.cos(2.0 * math.pi * loop.phase[i]),
    ),
}
"""Observation terms by their names in a contract: ``term(loop, data, i)`` of robot i."""


def _to_base(data: mujoco.MjData, vector: Any) -> np.ndarray:
    inverse, turned = np.empty(4), np.empty(3)
    mujoco.mju_negQuat(inverse, data.qpos[3:7])
    mujoco.mju_rotVecQuat(turned, np.array(vector, float), inverse)
    return turned


class PlainLoop:
    """Robots on flat ground under the policy at ``path``, one ``MjData`` each. The model is that of ``robot``; gains,
    limits, joint order and pose are the contract's. ValueError if the contract asks for what such a loop cannot do."""

    def __init__(self, path: Path, robot: RobotCfg, cfg: SimCfg):
        import onnx
        from onnx.reference import ReferenceEvaluator

        model = onnx.load(str(path))
        about = {
            e.key: e.value if e.key in TEXTS else json.loads(e.value) for e in model.metadata_props
        }
        if missing := [
            name
            for name in (*ROBOT_ENTRIES, "inputs", "action_scale", *LATER_ENTRIES)
            if name not in about
        ]:
            raise ValueError(
                f"{str(path)!r} has no contract of this version in its metadata: no {missing[0]!r}"
            )
        self._network: Any = ReferenceEvaluator(model)
        self._dt = float(about["control_dt"])
        if len(about["inputs"]) != 1 or "reference" in about:
            raise ValueError(
                f"it takes {', '.join(about['inputs'])}, and this loop knows no motions or other groups"
            )
        self._terms: list[dict[str, Any]] = about["observation"]
        self._bound = about["observation_limit"]
        if unknown := [
            term["name"] for term in self._terms if term["name"] not in TERMS or "own" in term
        ]:
            raise ValueError(f"it observes {unknown[0]!r}, and this loop knows {', '.join(TERMS)}")
        names = about["joint_names"]
        order = [names.index(name) for name in robot.joint_names]
        own: dict[str, Any] = {
            field: tuple(about[field][i] for i in order) for field in ROBOT_ENTRIES
        }
        self.model = build_scene(replace(robot, **own), cfg)
        self._substeps = round(self._dt / cfg.dt)
        self.default, self._scale = (
            np.array(about["default_joint_pos"]),
            np.array(about["action_scale"]),
        )
        self._rest = np.where(
            [kind == "position" for kind in about["actuators"]], self.default, 0.0
        )
        self._driven, self._limit = (
            [names.index(name) for name in about["action_joints"]],
            about["action_limit"],
        )
        self._low, self._high = np.array(
            about["target_clip"], float
        ).T  # NaN, which fmin and fmax pass over, for None
        joints = [self.model.joint(name) for name in names]
        self.joint_qpos, self.joint_qvel = (
            np.array([getattr(j, a)[0] for j in joints]) for a in ("qposadr", "dofadr")
        )
        self._actuators = [self.model.actuator(name).id for name in names]
        self._feet = [self.model.body(name).id for name in robot.foot_names]
        self._gait: dict[str, Any] = about.get("gait", {})
        swing = self._gait.get("swing", ())
        self._swing = np.array([[lift.get(name, 0.0) for name in names] for lift in swing]).reshape(
            -1, len(names)
        )

    def start(self, state: Recording, command: np.ndarray, phase: np.ndarray) -> None:
        """Put robots where ``state`` has them, with a velocity ``command`` (n, 3) and, where there is a gait, a time of
        the stride, ``phase`` (n,)."""
        self.command, self.phase, self.action = (
            command,
            phase,
            np.zeros((len(command), len(self._scale))),
        )
        self.data = [mujoco.MjData(self.model) for _ in command]
        for i, data in enumerate(self.data):
            data.qpos[:7], data.qpos[self.joint_qpos] = state["root"][i], state["joints"][i]
            data.qvel[:6], data.qvel[self.joint_qvel] = state["twist"][i], state["joint_vel"][i]
            mujoco.mj_forward(self.model, data)

    def observe(self) -> np.ndarray:
        """Shape: (n, size), float32."""
        rows = []
        for i, data in enumerate(self.data):
            parts = []
            for term in self._terms:
                value = np.asarray(TERMS[term["name"]](self, data, i), float)
                if value.size != term["size"]:
                    wrong = (
                        f"observation {term['name']!r} has {term['size']} numbers in the contract"
                    )
                    raise ValueError(
                        f"{wrong}, and {value.size} in this loop, which keeps no history"
                    )
                low, high = term["clip"] or (-math.inf, math.inf)
                parts.append(np.clip(value, low, high) * term["scale"])
            rows.append(np.clip(np.concatenate(parts), -self._bound, self._bound))
        return np.array(rows, np.float32)

    def step(self) -> Recording:
        """One control step; gives what :meth:`look` sees then."""
        self.action = np.clip(
            self._network.run(None, {"obs": self.observe()})[0], -self._limit, self._limit
        )
        for i, data in enumerate(self.data):
            target = self._rest + self._lift(i)
            moved = target[self._driven] + self._scale * self.action[i]
            target[self._driven] = np.fmax(np.fmin(moved, self._high), self._low)
            data.ctrl[self._actuators] = target
            mujoco.mj_step(self.model, data, self._substeps)
        if self._gait:
            self.phase = (self.phase + self._dt / self._gait["period"]) % 1.0
        return self.look()

    def _lift(self, i: int) -> Any:
        if not len(self._swing):
            return 0.0
        stance, phase = (
            self._gait["stance"],
            (self.phase[i] + np.array(self._gait["offsets"])) % 1.0,
        )
        return np.sin(np.maximum(phase - stance, 0.0) * math.pi / (1.0 - stance)) ** 2 @ self._swing

    def look(self) -> Recording:
        """``root`` and ``twist``, pose and velocity of the free joint, ``lin_vel`` in the base frame, ``gravity``,
        ``height``, ``joints``, ``joint_vel``, ``torque`` and ``contact`` of the feet; SI."""
        rows = []
        for data in self.data:
            force = np.linalg.norm(data.cfrc_ext[self._feet, 3:], axis=1)
            row = {
                "root": data.qpos[:7],
                "twist": data.qvel[:6],
                "lin_vel": _to_base(data, data.qvel[:3]),
            }
            row |= {
                "gravity": _to_base(data, _DOWN),
                "height": data.qpos[2],
                "contact": force > CONTACT_FORCE,
            }
            row |= {"joints": data.qpos[self.joint_qpos], "joint_vel": data.qvel[self.joint_qvel]}
            rows.append({**row, "torque": data.actuator_force[self._actuators]})
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}
