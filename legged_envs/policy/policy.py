"""Policies as files, safetensors and ONNX, each with the contract between policy and robot inside."""

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from inspect import signature
from math import isclose, isfinite
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from legged_envs.envs import LeggedVectorEnv
from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.mdp import observations
from legged_envs.mdp.gait_clock import GaitClock
from legged_envs.mdp.motion_command import MotionCommand
from legged_envs.policy.network import Network, describe
from legged_envs.tables import TableRepr, shorten
from legged_envs.tasks import TASKS, is_mimic, make_task_cfg, plain_id
from legged_envs.tasks.mimic import clip_names, imitating

POLICY_FILE = "policy.safetensors"
_CONTRACT, _NETWORK = "contract", "network"
OF_THE_ROBOT = ("joint_names", "default_joint_pos", "actuators", "kp", "kd", "torque_limits")
"""Fields of ``RobotCfg`` that a contract repeats."""
_OF_ACTIONS = ("action_joints", "action_scale", "action_limit", "target_clip", "action")
SINCE = (
    "actuators",
    "action_size",
    "observation_limit",
    "action_joints",
    "action_limit",
    "target_clip",
)
"""Entries of a contract that a task has only whose action terms make the targets; and those that contracts of earlier
versions have not, without which a loop must guess."""
_QUANTITIES = {
    "command": observations.command,
    "gravity": observations.projected_gravity,
    "ang_vel": observations.base_ang_vel,
    "lin_vel": observations.base_lin_vel,
    "joint_pos": observations.joint_pos,
    "joint_vel": observations.joint_vel,
    "action": observations.last_action,
    "clock": observations.command,
}
"""Observation terms that loops know by their names, and what they stand for."""
Inputs = dict[str, list[dict[str, Any]]]
"""Observation group → its terms, each with its name, size, scale, noise and clip; of the past also ``steps_ago``."""
_FOLDER = Path(__file__).parents[1] / "policies"
_FILES = {
    name: _FOLDER / f"{name[7:-3].lower().replace('-', '_')}.safetensors" for name in TASKS
}  # Legged/…-v0
SHIPPED = {
    task_id: path
    for task_id, path in _FILES.items()
    if task_id.startswith("Legged/") and path.is_file()
}
"""Task id → file of the policy that ships for it."""


def contract(
    task_id: str,
    env: LeggedVectorEnv,
    groups: Sequence[str] = ("policy",),
    changes: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What a policy's inputs and outputs mean, to run it on another simulator or on the robot. It takes the observation
    ``groups``, one argument each; ``changes``, values that JSON has, make its task of the registered one."""
    robot, commands = env.cfg.robot, env.commands.terms.values()
    inputs = {group: terms_of(env, group) for group in groups}
    driven = [
        (robot.joint_names[joint], term)
        for term in env.actions.terms.values()
        for joint in term.joints
    ]
    meaning = {
        "task_id": task_id,
        "changes": dict(changes or {}),
        "robot": robot.name,
        "control_dt": env.step_dt,
        **{name: list(getattr(robot, name)) for name in OF_THE_ROBOT},
        "action_size": gym.spaces.flatdim(env.single_action_space),
        "observation_limit": env.observation_limit,
        **(_of_actions(env) if env.acts_by_terms else {}),
        "observation": inputs[groups[0]],
        "inputs": inputs,
    }
    if motion := next((term for term in commands if isinstance(term, MotionCommand)), None):
        meaning["clips"] = list(motion.player.library.names)
        meaning["reference"] = {
            "control_steps_ahead": list(motion.cfg.window),
            "frame": motion.frame_sizes,
        }
    if found := next(
        ((name, term) for name, term in env.commands.terms.items() if isinstance(term, GaitClock)),
        None,
    ):
        gait, clock = found
        lifted = {joint for joint, term in driven if getattr(term.cfg, "around", None) == gait}
        turns = [dict(zip(robot.joint_names, each, strict=True)) for each in clock.swing.tolist()]
        meaning["gait"] = {
            **asdict(clock.cfg),
            "swing": [
                {name: turn if name in lifted else 0.0 for name, turn in each.items()}
                for each in turns
            ],
            "clock": "sin, cos of 2 pi phase; phase = time / period mod 1, that of a foot (phase + its offset) mod 1",
            "lift": "swing * sin(pi (phase - stance) / (1 - stance))^2 while the foot's phase > stance, else 0",
        }
    seen = [
        env.cfg.observations[name].terms.values() for name in groups if name in env.cfg.observations
    ]
    if scans := [
        term.params for terms in seen for term in terms if term.func is observations.height_scan
    ]:
        defaults = {
            name: each.default
            for name, each in [*signature(observations.height_scan).parameters.items()][1:]
        }
        meaning["scan"] = {**defaults, **scans[0]}
    plain: dict[str, Any] = json.loads(json.dumps(meaning))  # as files have it: JSON has no tuples
    return plain


def _of_actions(env: LeggedVectorEnv) -> dict[str, Any]:
    driven = [(joint, term) for term in env.actions.terms.values() for joint in term.joints]
    return {
        "action_joints": [env.cfg.robot.joint_names[joint] for joint, _ in driven],
        "action_scale": env.actions.scale.tolist(),
        "action_limit": env.actions.limit,
        "target_clip": [_bounds(term.cfg.clip) or (None, None) for _, term in driven],
        "action": _formula(env),
    }


def _bounds(clip: Sequence[float | None] | None) -> tuple[float | None, ...] | None:
    """A clip as JSON has it, None where it is infinite."""
    bounds = tuple(bound if bound is not None and isfinite(bound) else None for bound in clip or ())
    return bounds if any(bound is not None for bound in bounds) else None


def _formula(env: LeggedVectorEnv) -> str:
    terms, limit = env.actions.terms.values(), env.actions.limit
    around = [getattr(term.cfg, "around", None) for term in terms]
    reference = env.commands.terms.get(next(filter(None, around), ""))
    centre = "default_joint_pos"
    if isinstance(reference, MotionCommand):
        centre = "(joint_pos of the reference one control step ahead where there is one, else default_joint_pos)"
    elif isinstance(reference, GaitClock):
        centre = "(default_joint_pos + the gait's lift of each foot)"
    if any(term.cfg.kind != "position" for term in terms):
        centre = f"({centre} where actuators has position, else 0)"
    target = f"{centre} + action_scale * clip(action, -{limit:g}, {limit:g})"
    if any(term.cfg.clip for term in terms):
        target = f"clip({target}, target_clip)"
    return f"joint target = {target}"


def same_meaning(one: Any, other: Any) -> bool:
    """Whether two values, as JSON has them, are equal but for the last digits of numbers: processors round lengths and
    angles that follow from a model in their own ways."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            same_meaning(value, other[key]) for key, value in one.items()
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_meaning, one, other))
    if isinstance(one, float) and isinstance(other, (int, float)):
        return isclose(one, other, rel_tol=1e-5, abs_tol=1e-7)
    return bool(one == other)


def terms_of(env: LeggedVectorEnv, group: str) -> list[dict[str, Any]]:
    """The terms of an observation group in the order of its vector, as a contract has them: ``name``, ``size``,
    ``scale``, ``noise``, ``clip``; in a group that shows the past also ``steps_ago``, and where a task calls something
    of its own by a name that loops know, ``own``, that function. Positions of wheels, which are shown as 0, have scale
    0. A group that no manager makes is one term. KeyError if there is no such group."""
    if group not in env.observations.groups:
        return [
            {
                "name": group,
                "size": env.group_sizes[group],
                "scale": 1.0,
                "noise": 0.0,
                "clip": None,
            }
        ]
    own, terms = env.observations.groups[group], env.cfg.observations[group].terms
    of_past, endless = own.history > 1, env.robot.endless
    scales: dict[str, Any] = {name: term.scale for name, term in terms.items()}
    for name in [
        name
        for name, term in terms.items()
        if term.func is observations.joint_pos and endless.any()
    ]:
        scales[name] = (torch.as_tensor(scales[name]) * ~endless.cpu()).tolist()
    return [
        {
            "name": name,
            "size": size,
            "scale": scales[name],
            "noise": terms[name].noise * own.noisy,
            "clip": _bounds(terms[name].clip),
        }
        | ({"steps_ago": age} if of_past else {})
        | (
            {}
            if (func := terms[name].func) is _QUANTITIES.get(name, func)
            else {"own": _name(func)}
        )
        for name, size, age in own.layout
    ]


def _name(func: Any) -> str:
    while isinstance(func, partial):
        func = func.func
    return f"{func.__module__}.{getattr(func, '__qualname__', type(func).__qualname__)}"


class Policy(TableRepr):
    """A deterministic policy: the observations of its groups, each (n, size), → action (n, num_joints)."""

    def __init__(self, network: Callable[..., torch.Tensor], contract: dict[str, Any]):
        self._network = network
        self.contract = contract
        self.inputs: Inputs = contract.get("inputs") or {"policy": contract.get("observation", [])}
        """The observation groups that it takes, in order, and their terms."""
        self.task_id: str = contract.get("task_id", "")
        self.changes: dict[str, Any] = dict(contract.get("changes", {}))
        self.clips: tuple[str, ...] = tuple(contract.get("clips", ()))
        """The changes to the task that it was trained with, and the clips; empty if the file does not say."""

    def _describe(self) -> str:
        return ", ".join([self.task_id, *self.inputs, *self.clips])

    def __call__(self, *observations: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            return self._network(*observations)

    def check_task(self, task_id: str, cfg: TaskCfg) -> None:
        """Raise a ValueError if the task is of another robot, or only one of task and policy imitates motions."""
        own, robot, has = self.task_id, self.contract.get("robot"), cfg.robot.name
        if robot != has:
            raise ValueError(
                f"the policy of {own!r} was trained with robot = {robot}, {task_id!r} has {has}"
            )
        if ("reference" in self.contract) != is_mimic(cfg):
            kinds = ("imitates motions", "follows velocity commands")
            theirs, ours = reversed(kinds) if is_mimic(cfg) else kinds
            raise ValueError(
                f"the policy is one of {own!r}, which {theirs}, and {task_id!r} {ours}"
            )

    def check(self, env: LeggedVectorEnv, groups: Sequence[str] | None = None) -> None:
        """Raise a ValueError that names what differs if this policy is not for the environment or not of ``groups``."""
        if groups is not None and tuple(self.inputs) != tuple(groups):
            takes = ", ".join(self.inputs)
            raise ValueError(
                f"the policy must take {', '.join(groups)}, but that of {self.task_id!r} takes {takes}"
            )
        known = set(self.inputs) <= set(env.group_sizes)
        ours = contract(self.task_id, env, tuple(self.inputs) if known else ("policy",))
        older = "action_size" not in self.contract
        needed = Policy(self._network, ours)._in_common(older)
        for key, theirs in self._in_common(older).items():
            if not same_meaning(theirs, has := needed.get(key)) and not (
                has is None and older and key in _OF_ACTIONS
            ):
                wrong = f"was trained with {key} = {theirs}, this environment has {has}"
                how = "if it was trained with --changes, this environment needs the same"
                raise ValueError(f"the policy of {self.task_id!r} {wrong}; {how}")

    def _in_common(self, older: bool) -> dict[str, Any]:
        keys = [
            "robot",
            "joint_names",
            "default_joint_pos",
            "control_dt",
            "reference",
            "gait",
            "scan",
        ]
        keys += [
            key
            for key in (*_OF_ACTIONS, *SINCE)
            if key in self.contract and not (older and key == "action")
        ]
        return {key: self.contract.get(key) for key in keys} | {
            "observation": layout(self.inputs, older)
        }


def layout(inputs: Inputs, older: bool = False) -> dict[str, list[Any]]:
    """Name, size, scale and clip of each term, to compare: ``older`` ones with those of contracts of earlier versions,
    which had no ``action_size``, wrote infinite bounds and gave the angles of wheels the scale of other joints."""

    def scale(value: Any) -> Any:
        kept = {*value} - {0.0} if older and isinstance(value, list) else set()
        return kept.pop() if len(kept) == 1 else value

    terms = {
        group: [(t["name"], t["size"], scale(t["scale"]), t.get("clip")) for t in each]
        for group, each in inputs.items()
    }
    return {
        group: [[*told, _bounds(clip)] for *told, clip in each] for group, each in terms.items()
    }


def save_policy(path: Path, module: torch.nn.Module, contract: dict[str, Any]) -> None:
    """Write a policy as safetensors, with its network and its contract as metadata; ValueError as :func:`describe`."""
    description, weights = describe(copy.deepcopy(module).cpu().eval())
    path.write_bytes(
        save(weights, {_CONTRACT: json.dumps(contract), _NETWORK: json.dumps(description)})
    )


def halve(path: Path) -> None:
    """Round the weights of a policy's file to 16-bit floats, which are read as 32-bit ones; all else in it stays."""
    with safe_open(path, "pt") as file:
        about, weights = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    path.write_bytes(
        save({name: w.half() if w.is_floating_point() else w for name, w in weights.items()}, about)
    )


class _Module(torch.nn.Module):
    """A policy as ``torch.onnx`` takes it."""

    def __init__(self, policy: Policy):
        super().__init__()
        self._policy = policy._network

    def forward(self, *observations: torch.Tensor) -> torch.Tensor:
        action: torch.Tensor = self._policy(*observations)
        return action


def save_onnx(path: Path, policy: torch.nn.Module | Policy, contract: dict[str, Any]) -> None:
    """Write a policy as ONNX; the contract's entries are the model's metadata, lists and dicts as JSON."""
    import onnx

    module = _Module(policy) if isinstance(policy, Policy) else policy

    inputs = tuple(
        torch.zeros(1, sum(term["size"] for term in terms)) for terms in contract["inputs"].values()
    )
    names, outputs = ["obs", *list(contract["inputs"])[1:]], ["actions"]
    options: dict[str, Any] = {
        "input_names": names,
        "output_names": outputs,
        "opset_version": 18,
        "dynamo": False,
    }
    options["dynamic_axes"] = {name: {0: "n"} for name in (*names, *outputs)}
    torch.onnx.export(module.cpu().eval(), inputs, str(path), **options)
    model = onnx.load(str(path))
    texts = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in contract.items()
    }
    onnx.helper.set_model_props(model, texts)
    onnx.save(model, str(path))


def policy_file(path: Path | str) -> Path:
    """The file of the policy at ``path``: ``policy.safetensors`` in a run folder, else ``path`` itself, whether there
    is one or not."""
    return Path(path) / POLICY_FILE if Path(path).is_dir() else Path(path)


def load_policy(path: Path | str, device: str = "cpu") -> Policy:
    """Read a policy, the file or its run folder, running no code.
    FileNotFoundError or ValueError if there is none."""
    path = policy_file(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no policy file {str(path)!r}")
    try:
        with safe_open(path, "pt", device=device) as file:
            about = file.metadata() or {}
            names = file.keys()
            tensors = {name: _read(file.get_tensor(name)) for name in names}
        if missing := {_CONTRACT, _NETWORK} - about.keys():
            raise ValueError(f"it has no {' and no '.join(sorted(missing))}")
        policy = Policy(
            Network(json.loads(about[_NETWORK]), tensors), _checked(json.loads(about[_CONTRACT]))
        )
        if "action_size" in policy.contract:
            _try(policy, device)
        return policy
    except (
        SafetensorError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RuntimeError,
    ) as error:
        reason = shorten(str(error).split("\n")[0], 300)
        message = f"{str(path)!r} is not a policy as legged-envs train writes it ({POLICY_FILE}): {reason}"
        raise ValueError(message) from error


def _read(weight: torch.Tensor) -> torch.Tensor:
    """A copy, which lies in memory as torch aligns it: the last digits of a product depend on that."""
    return (
        weight.float()
        if weight.is_floating_point() and weight.dtype != torch.float32
        else weight.clone()
    )


def _checked(contract: Any) -> dict[str, Any]:
    """``contract``; ValueError if an entry that this package reads is not of the kind that it writes."""
    if not isinstance(contract, dict):
        raise ValueError(f"its contract is no JSON object: {shorten(str(contract), 100)}")
    for name, kind in {
        "task_id": str,
        "changes": dict,
        "clips": list,
        "inputs": dict,
        "observation": list,
    }.items():
        if not isinstance(contract.get(name, kind()), kind):
            raise ValueError(
                f"{name} of its contract is no {kind.__name__}: {shorten(str(contract[name]), 100)}"
            )
    for group, terms in (
        contract.get("inputs") or {"observation": contract.get("observation", [])}
    ).items():
        if not isinstance(terms, list) or not all(map(_is_term, terms)):
            raise ValueError(
                f"{group!r} of its contract is no list of terms, each with a name, a size and a scale"
            )
    return contract


def _is_term(term: Any) -> bool:
    return (
        isinstance(term, dict)
        and {"name", "size", "scale"} <= term.keys()
        and type(term["size"]) is int
    )


def _try(policy: Policy, device: str) -> None:
    """Raise what a policy raises whose weights do not fit its contract."""
    sizes = [sum(term["size"] for term in terms) for terms in policy.inputs.values()]
    actions = policy(*(torch.zeros(2, size, device=device) for size in sizes))
    expected = (2, policy.contract["action_size"])
    if (
        not isinstance(actions, torch.Tensor)
        or actions.shape != expected
        or not actions.isfinite().all()
    ):
        shape = (
            tuple(actions.shape) if isinstance(actions, torch.Tensor) else type(actions).__name__
        )
        raise ValueError(
            f"for zeros its network must give finite actions of shape {expected}, and gives {shape}"
        )


def shipped_file(task_id: str) -> Path:
    """The file of the policy that ships with the package for a task; ValueError if none does."""
    if task_id not in SHIPPED:
        only = ", ".join(SHIPPED)
        raise ValueError(
            f"no policy ships for {task_id!r} (only for {only}); train one, then pass --policy"
        )
    return SHIPPED[task_id]


def load_shipped_policy(task_id: str) -> Policy:
    """The policy that ships with the package for a task; ValueError if none does."""
    return load_policy(shipped_file(task_id))


def policy_and_task(
    task_id: str,
    path: Path | None = None,
    changes: Mapping[str, Any] | None = None,
    clips: Sequence[str] = (),
    motions: Sequence[Path] = (),
) -> tuple[Policy, TaskCfg, dict[str, Any]]:
    """The policy at ``path``, a file or run folder (None: the shipped one), the task with the changes that it was
    trained with and ``changes`` on top, and all of these changes. A mimic task imitates ``clips``, by default the
    policy's, of the files ``motions`` or of its own. FileNotFoundError if there is no such file; ValueError if it is no
    policy of such a task, or there is no such clip."""
    cfg, task_id = make_task_cfg(task_id), plain_id(task_id)
    if (clips or motions) and not is_mimic(cfg):
        raise ValueError(
            f"{task_id!r} follows velocity commands: it has no --clips and no --motions"
        )
    policy = load_shipped_policy(task_id) if path is None else load_policy(path)
    policy.check_task(task_id, cfg)
    changed = {**policy.changes, **(changes or {})}
    cfg = override(cfg, changed)
    if is_mimic(cfg):
        cfg, clips = imitating(cfg, motions=motions), clips or policy.clips
        try:
            clip_names(cfg, clips)
        except ValueError as error:
            hint = "A policy that was trained with --motions needs the same --motions, or the --clips to imitate"
            raise ValueError(f"{error}. {hint}") from error
        cfg = imitating(cfg, clips)
    return policy, cfg, changed
