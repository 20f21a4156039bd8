"""Control loops of other frameworks, written from the descriptions of their formats with only NumPy. Each loop is made from a folder or file, and computes motor targets from measurements. The loops share no code with the package: they are the oracle of its reading and writing."""

from __future__ import annotations

import math
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
import torch
import yaml

Array = np.ndarray


class Measured(NamedTuple):
    """Measurements of a robot, and the command. Joints and their speeds are by motor number or name."""

    command: Array
    quat: Array
    gyro: Array
    lin_vel: Array
    q: dict[Any, float]
    dq: dict[Any, float]


def gravity_of(quat: Array) -> Array:
    w, x, y, z = quat
    return np.array([2 * (w * y - x * z), -2 * (y * z + w * x), 2 * (x * x + y * y) - 1])


def picked(values: dict[Any, float], keys: list[Any]) -> Array:
    return np.array([values[key] for key in keys])


class PlainTags(yaml.SafeLoader):
    """unitree_rl_lab's own files have a Python slice in them."""


PlainTags.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, tag, node: None)


class LabLoop:
    """unitree_rl_lab, unitree_rl_mjlab: terms with histories, the oldest first; a clock that is advanced before it is read."""

    def __init__(self, description: Path, network: Path):
        self.cfg = yaml.load(description.read_text(), PlainTags)
        self.session = onnxruntime.InferenceSession(network)
        self.motors = self.cfg["joint_ids_map"]
        self.default = np.array(self.cfg["default_joint_pos"])
        self.terms = self.cfg["observations"]
        self.past: dict[str, deque[Array]] = {}
        self.action = np.zeros(len(self.motors))
        self.phase = 0.0

    def value(self, name: str, seen: Measured) -> Array:
        if name == "base_ang_vel":
            return seen.gyro
        if name == "base_lin_vel":
            return seen.lin_vel
        if name == "projected_gravity":
            return gravity_of(seen.quat)
        if name == "velocity_commands":
            return seen.command
        if name == "joint_pos_rel":
            return picked(seen.q, self.motors) - self.default
        if name == "joint_pos":
            return picked(seen.q, self.motors)
        if name == "joint_vel_rel":
            return picked(seen.dq, self.motors)
        if name == "last_action":
            return self.action
        assert name == "gait_phase"
        self.phase = math.fmod(
            self.phase + self.cfg["step_dt"] / self.terms[name]["params"]["period"], 1.0
        )
        return np.array([math.sin(2 * math.pi * self.phase), math.cos(2 * math.pi * self.phase)])

    def __call__(self, seen: Measured) -> dict[int, float]:
        parts = []
        for name, term in self.terms.items():
            value = self.value(name, seen).astype(np.float64)
            past = self.past.setdefault(name, deque(maxlen=term["history_length"]))
            while len(past) < term["history_length"]:
                past.append(value)
            past.append(value)
            for each in past:
                if term["clip"] is not None:
                    each = np.clip(each, *term["clip"])
                parts.append(each * term["scale"])
        observation = np.concatenate(parts).astype(np.float32)
        self.action = self.session.run(None, {"obs": observation[None]})[0][0].astype(float)
        term = self.cfg["actions"]["JointPositionAction"]
        targets = self.action * term["scale"] + term["offset"]
        if term["clip"] is not None:
            low, high = np.array(term["clip"]).T
            targets = np.clip(targets, low, high)
        return dict(zip(self.motors, targets, strict=True))


class GymLoop:
    """unitree_rl_gym: one fixed observation, joints in the order of the robot's file, a clock of 0.8 s."""

    def __init__(self, description: Path, joints: list[str]):
        self.cfg = yaml.safe_load(description.read_text())
        self.network = torch.jit.load(description.parent / self.cfg["policy_path"])
        self.joints = joints[: self.cfg["num_actions"]]
        self.action = np.zeros(self.cfg["num_actions"])
        self.time = 0.0

    def __call__(self, seen: Measured) -> dict[str, float]:
        cfg = self.cfg
        phase = self.time % 0.8 / 0.8
        q = picked(seen.q, self.joints) - cfg["default_angles"]
        observation = np.concatenate(
            [
                seen.gyro * cfg["ang_vel_scale"],
                gravity_of(seen.quat),
                seen.command * cfg["cmd_scale"],
                q * cfg["dof_pos_scale"],
                picked(seen.dq, self.joints) * cfg["dof_vel_scale"],
                self.action,
                [math.sin(2 * math.pi * phase), math.cos(2 * math.pi * phase)],
            ]
        ).astype(np.float32)[: cfg["num_obs"]]
        with torch.no_grad():
            self.action = self.network(torch.from_numpy(observation)[None])[0].numpy().astype(float)
        self.time += cfg["simulation_dt"] * cfg["control_decimation"]
        targets = self.action * cfg["action_scale"] + cfg["default_angles"]
        return dict(zip(self.joints, targets, strict=True))


class SarLoop:
    """rl_sar: terms with one scale each, a history of whole observations or of terms, wheels with speeds as targets."""

    def __init__(self, config: Path):
        base = next(iter(yaml.safe_load((config.parent.parent / "base.yaml").read_text()).values()))
        self.cfg = {**base, **next(iter(yaml.safe_load(config.read_text()).values()))}
        self.network = torch.jit.load(config.parent / self.cfg["model_name"])
        self.joints = [self.cfg["joint_names"][i] for i in self.cfg["joint_mapping"]]
        self.action = np.zeros(self.cfg["num_of_dofs"])
        self.past: deque[list[Array]] = deque(
            maxlen=1 + max(self.cfg["observations_history"], default=0)
        )

    def term(self, name: str, seen: Measured) -> Array:
        cfg = self.cfg
        if name == "lin_vel":
            return seen.lin_vel * cfg["lin_vel_scale"]
        if name == "ang_vel":
            return seen.gyro * cfg["ang_vel_scale"]
        if name == "gravity_vec":
            return gravity_of(seen.quat)
        if name == "commands":
            return seen.command * cfg["commands_scale"]
        if name == "dof_pos":
            q = picked(seen.q, self.joints) - cfg["default_dof_pos"]
            q[cfg["wheel_indices"]] = 0.0
            return q * cfg["dof_pos_scale"]
        if name == "dof_vel":
            return picked(seen.dq, self.joints) * cfg["dof_vel_scale"]
        assert name == "actions"
        return self.action

    def __call__(self, seen: Measured) -> dict[str, float]:
        cfg = self.cfg
        now = [
            np.clip(self.term(name, seen), -cfg["clip_obs"], cfg["clip_obs"])
            for name in cfg["observations"]
        ]
        while len(self.past) < (self.past.maxlen or 1):
            self.past.appendleft(now)
        self.past.appendleft(now)
        steps = cfg["observations_history"] or [0]
        if cfg["observations_history_priority"] == "time":
            parts = [part for step in steps for part in self.past[step]]
        else:
            parts = [self.past[step][i] for i in range(len(now)) for step in steps]
        observation = np.concatenate(parts).astype(np.float32)
        with torch.no_grad():
            action = self.network(torch.from_numpy(observation)[None])[0].numpy().astype(float)
        self.action = np.clip(action, cfg["clip_actions_lower"], cfg["clip_actions_upper"])
        targets = self.action * cfg["action_scale"]
        for i, angle in enumerate(cfg["default_dof_pos"]):
            targets[i] += 0.0 if i in cfg["wheel_indices"] else angle
        return dict(zip(self.joints, targets, strict=True))


class MjlabLoop:
    """mjlab: the description is the metadata of the ONNX file; raw quantities, histories of each term, the oldest first."""

    def __init__(self, path: Path):
        self.session = onnxruntime.InferenceSession(path)
        self.texts = {entry.key: entry.value.split(",") for entry in onnx.load(path).metadata_props}
        self.joints = self.texts["joint_names"]
        self.default = np.array(self.texts["default_joint_pos"], float)
        self.scale = np.array(self.texts["action_scale"], float)
        self.action = np.zeros(len(self.joints))
        self.past: dict[str, deque[Array]] = {}

    def __call__(self, seen: Measured) -> dict[str, float]:
        values = {
            "base_lin_vel": seen.lin_vel,
            "base_ang_vel": seen.gyro,
            "projected_gravity": gravity_of(seen.quat),
            "command": seen.command,
            "joint_pos": picked(seen.q, self.joints) - self.default,
            "joint_vel": picked(seen.dq, self.joints),
            "actions": self.action,
        }
        names = self.texts["observation_names"]
        lengths = self.texts.get("observation_history_lengths", ["1"] * len(names))
        parts: list[Array] = []
        for name, length in zip(names, lengths, strict=True):
            past = self.past.setdefault(name, deque(maxlen=int(length)))
            while len(past) < int(length):
                past.append(values[name])
            past.append(values[name])
            parts += past
        observation = np.concatenate(parts).astype(np.float32)
        self.action = self.session.run(["actions"], {"obs": observation[None]})[0][0].astype(float)
        return dict(zip(self.joints, self.action * self.scale + self.default, strict=True))
