"""Policies as files: TorchScript and ONNX, each with the contract between policy and robot inside."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import torch

from legged_envs.envs import LeggedVectorEnv

_CONTRACT_FILE = "contract.json"
SHIPPED = {"Legged/Go2-Flat-v0": "go2_flat.pt"}
"""Task id → policy in ``legged_envs/policies``."""


def contract(task_id: str, env: LeggedVectorEnv) -> dict[str, Any]:
    """What a policy's inputs and outputs mean: enough to run it on another simulator or on the robot."""
    robot = env.cfg.robot
    sizes = env.observations.term_sizes("policy")
    terms = env.cfg.observations["policy"].terms
    return {
        "task_id": task_id,
        "robot": robot.name,
        "control_dt": env.step_dt,
        "joint_names": list(robot.joint_names),
        "default_joint_pos": list(robot.default_joint_pos),
        "kp": list(robot.kp),
        "kd": list(robot.kd),
        "torque_limits": list(robot.torque_limits),
        "action_scale": env.actions.scale.tolist(),
        "action": "joint target = default_joint_pos + action_scale * clip(action, -1, 1)",
        "observation": [
            {"name": name, "size": sizes[name], "scale": term.scale, "noise": term.noise, "clip": term.clip}
            for name, term in terms.items()
        ],
    }


class Policy:
    """A deterministic policy: observation (n, size) → action (n, num_joints), with its contract."""

    def __init__(self, module: torch.jit.ScriptModule, contract: dict[str, Any]):
        self._module = module
        self.contract = contract

    def __call__(self, observation: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            return self._module(observation)

    def check(self, env: LeggedVectorEnv) -> None:
        """Raise if this policy is not for the environment.

        Raises:
            ValueError: Naming what differs: robot, joints or observation terms.
        """
        ours = contract(self.contract.get("task_id", ""), env)
        for key in ("robot", "joint_names", "observation", "action_scale", "control_dt"):
            theirs = self.contract.get(key)
            if key == "observation":
                same = [(t["name"], t["size"], t["scale"]) for t in theirs or []] == [
                    (t["name"], t["size"], t["scale"]) for t in ours[key]
                ]
            else:
                same = theirs == ours[key]
            if not same:
                raise ValueError(f"the policy was trained with {key} = {theirs}, this environment has {ours[key]}")


def save_policy(path: Path, module: torch.nn.Module, contract: dict[str, Any]) -> None:
    """Write a policy as TorchScript with its contract."""
    scripted = torch.jit.script(module.cpu().eval())
    torch.jit.save(scripted, str(path), _extra_files={_CONTRACT_FILE: json.dumps(contract, indent=1)})


def save_onnx(path: Path, module: torch.nn.Module, contract: dict[str, Any]) -> None:
    """Write a policy as ONNX; the contract's entries are the model's metadata, lists and dicts as JSON."""
    import onnx

    size = sum(term["size"] for term in contract["observation"])
    torch.onnx.export(
        module.cpu().eval(),
        (torch.zeros(1, size),),
        str(path),
        input_names=["obs"],
        output_names=["actions"],
        dynamic_axes={"obs": {0: "n"}, "actions": {0: "n"}},
        opset_version=18,
        dynamo=False,
    )
    model = onnx.load(str(path))
    for key, value in contract.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value if isinstance(value, str) else json.dumps(value)
    onnx.save(model, str(path))


def load_policy(path: Path | str) -> Policy:
    """Read a policy written by ``save_policy``.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is not such a policy.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no policy file {str(path)!r}")
    files = {_CONTRACT_FILE: ""}
    try:
        module = torch.jit.load(str(path), map_location="cpu", _extra_files=files)
    except RuntimeError as error:
        raise ValueError(f"{str(path)!r} is not a TorchScript policy: {str(error).splitlines()[0]}") from error
    if not files[_CONTRACT_FILE]:
        raise ValueError(f"{str(path)!r} has no contract: it was not written by legged-envs train")
    return Policy(module.eval(), json.loads(files[_CONTRACT_FILE]))


def load_shipped_policy(task_id: str) -> Policy:
    """The policy that ships with the package for a task.

    Raises:
        ValueError: If none does.
    """
    if task_id not in SHIPPED:
        raise ValueError(
            f"no policy ships for {task_id!r} (only for {', '.join(SHIPPED)}); train one, then pass --policy"
        )
    with resources.as_file(resources.files("legged_envs") / "policies" / SHIPPED[task_id]) as path:
        return load_policy(path)
