"""Policies of other frameworks: an imported policy acts as in its own loop, an exported policy as in the environment."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import onnx
import pytest
import torch
import yaml
from policy.foreign_loops import GymLoop, LabLoop, Measured, MjlabLoop, SarLoop
from rich.console import Console
from torch import nn

from legged_envs import cli, make_task_cfg
from legged_envs.envs import CoreVectorEnv, make_core
from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.policy.foreign.motors import motor_joints
from legged_envs.policy.foreign.torchscript import TorchScriptNetwork
from legged_envs.policy.foreign.writing import export_format
from legged_envs.policy.lookup import policy_and_task
from legged_envs.policy.policy import Policy, load_policy
from legged_envs.robots import G1_29
from legged_envs.robots import GO2 as GO2_ROBOT
from legged_envs.runs.run_folder import CONFIG, write_json
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.scheme_options import LSTMCfg
from legged_envs.training.trainer import Trainer

GO2, G1, WHEELS = "Legged/Go2-Flat-v0", "Legged/G1-Flat-v0", "Legged/Tron1-WF-Flat-v0"
COMMAND = (0.5, 0.1, -0.3)
LEGS = ("FL", "FR", "RL", "RR")
BY_KIND = [f"{leg}_{kind}_joint" for kind in ("hip", "thigh", "calf") for leg in LEGS]
"""The order of Isaac Lab."""


def exact(cfg: TaskCfg, **changes: Any) -> TaskCfg:
    """The task without noise and randomness, and with one command."""
    ranges = zip(("lin_vel_x", "lin_vel_y", "ang_vel_z"), COMMAND, strict=True)
    made = {f"commands.velocity.{name}": (speed, speed) for name, speed in ranges}
    made |= {"commands.velocity.standing_fraction": 0.0, "max_action_delay": 0, "events": {}}
    return override(cfg, {**made, "observations.policy.noisy": False, **changes})


def core_of(cfg: TaskCfg, num_envs: int = 1) -> CoreVectorEnv:
    return make_core(cfg, num_envs, array="torch")


def measured(core: CoreVectorEnv, keys: dict[str, Any] | None = None) -> Measured:
    """Return the measurements of the first robot; joints by the keys of a loop, or by their names."""
    names = core.cfg.robot.joint_names
    q = core.sim.joint_pos[0].double().numpy()
    dq = core.sim.joint_vel[0].double().numpy()
    keyed = [keys[name] if keys else name for name in names]
    return Measured(
        command=core.commands["velocity"][0, :3].double().numpy().copy(),
        quat=core.sim.root_quat_w[0].double().numpy().copy(),
        gyro=core.sim.root_ang_vel_b[0].double().numpy().copy(),
        lin_vel=core.robot.lin_vel_b[0].double().numpy().copy(),
        q=dict(zip(keyed, q.tolist(), strict=True)),
        dq=dict(zip(keyed, dq.tolist(), strict=True)),
    )


def targets_of(core: CoreVectorEnv) -> list[torch.Tensor]:
    """The targets of all joints that an environment sends, filled as it steps."""
    sent: list[torch.Tensor] = []
    send = core.sim.set_joint_targets

    def keep(targets: torch.Tensor) -> None:
        sent.append(targets.clone())
        send(targets)

    core.sim.set_joint_targets = keep
    return sent


def assert_same_targets(
    core: CoreVectorEnv,
    policy: Policy,
    loop: Callable[[Measured], dict[Any, float]],
    keys: dict[str, Any] | None = None,
    steps: int = 250,
    atol: float = 1e-4,
) -> None:
    """A policy acts in the environment; in every state the loop of the other framework wants the same of each joint."""
    sent = targets_of(core)
    observation = core.reset(seed=3)[0]
    if "gait" in core.commands.terms and hasattr(
        loop, "phase"
    ):  # it begins at any time of the stride
        clock = core.commands["gait"][0]
        period = core.commands.terms["gait"].cfg.period
        loop.phase = (
            float(torch.atan2(clock[0], clock[1]) / (2 * torch.pi)) % 1.0 - core.step_dt / period
        )
    for step in range(steps):
        wanted = loop(measured(core, keys))
        observation = core.step(policy(observation))[0]
        for i, name in enumerate(core.cfg.robot.joint_names):
            key = keys[name] if keys else name
            if key in wanted:
                assert wanted[key] == pytest.approx(float(sent[-1][0, i]), abs=atol), (step, name)
    core.close()


TINY: dict[str, Any] = {"steps_per_env": 4, "epochs": 1, "mini_batches": 2, "hidden": (8,)}


def tiny_run(folder: Path, algo: PPOCfg, changes: dict[str, Any] | None = None) -> Path:
    """A run folder with the policy and the checkpoint of an untrained network."""
    cfg = TrainCfg(GO2, num_envs=2, run_dir=folder, iterations=1, video=False, algo=algo)
    prepared = prepare(replace(cfg, changes=changes or {}))
    folder.mkdir()
    write_json(folder / CONFIG, {})
    trainer = Trainer(prepared, Console(quiet=True))
    trainer.save()
    trainer.export()
    return folder


# --- written ---------------------------------------------------------------------------------------


def motor_keys(task: TaskCfg) -> dict[str, Any]:
    return {name: i for i, name in enumerate(motor_joints(task.robot)) if name}


def open_loop(name: str, folder: Path, cfg: TaskCfg) -> tuple[Any, dict[str, Any] | None]:
    """The loop of a format for a folder that was exported, and the keys of its joints."""
    if name == "unitree-rl-lab":
        loop = LabLoop(folder / "params" / "deploy.yaml", folder / "exported" / "policy.onnx")
        return loop, motor_keys(cfg)
    if name == "unitree-rl-gym":
        return GymLoop(folder / f"{cfg.robot.name}.yaml", list(cfg.robot.joint_names)), None
    if name == "rl-sar":
        return SarLoop(folder / "legged_envs" / "config.yaml"), None
    return MjlabLoop(folder / "policy.onnx"), None


FILES = {
    "unitree-rl-lab": ("exported/policy.onnx", "params/deploy.yaml"),
    "unitree-rl-gym": ("policy.pt", "{robot}.yaml"),
    "rl-sar": ("legged_envs/policy.pt", "legged_envs/config.yaml"),
    "mjlab": ("policy.onnx", None),
}
WRITTEN = [
    ("unitree-rl-lab", GO2),
    ("unitree-rl-lab", G1),
    ("unitree-rl-gym", GO2),
    ("rl-sar", GO2),
    ("rl-sar", WHEELS),
    ("mjlab", GO2),
]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """(format, task id) → the folder that the command wrote."""
    folders = {}
    for name, task_id in WRITTEN:
        folders[name, task_id] = folder = tmp_path_factory.mktemp(name) / "new"
        cli.main(["export", task_id, "--format", name, "--folder", str(folder)])
    return folders


@pytest.mark.parametrize(("name", "task_id"), WRITTEN)
def test_what_is_exported_acts_in_the_loop_of_its_format_as_in_the_environment_for_5_s(
    name: str, task_id: str, exported: dict[tuple[str, str], Path]
) -> None:
    policy, cfg, _ = policy_and_task(task_id)
    if task_id == WHEELS and "clock" in [term["name"] for term in policy.inputs["policy"]]:
        pytest.skip("a policy with a clock")
    core = core_of(exact(cfg))
    loop, keys = open_loop(name, exported[name, task_id], cfg)
    assert_same_targets(core, policy, loop, keys)


@pytest.mark.parametrize(("name", "task_id"), WRITTEN)
def test_what_is_exported_is_read_again_and_acts_the_same(
    name: str, task_id: str, exported: dict[tuple[str, str], Path]
) -> None:
    own, own_cfg, _ = policy_and_task(task_id)
    weights, description = FILES[name]
    folder = exported[name, task_id]
    file = None if description is None else folder / description.format(robot=own_cfg.robot.name)
    read, cfg, changes = policy_and_task(task_id, folder / weights, description=file)
    assert changes == {} and cfg.sim.step_dt == pytest.approx(own_cfg.sim.step_dt)
    for field in ("kp", "kd", "default_joint_pos"):
        assert getattr(cfg.robot, field) == pytest.approx(getattr(own_cfg.robot, field), abs=1e-6)
    ours, theirs = core_of(exact(own_cfg), 4), core_of(exact(cfg), 4)
    one, other = ours.reset(seed=1)[0], theirs.reset(seed=1)[0]
    read.check(theirs)
    wanted, sent = targets_of(ours), targets_of(theirs)
    for step in range(40):
        one, other = ours.step(own(one))[0], theirs.step(read(other))[0]
        # Small differences of float32 grow from step to step.
        atol = 1e-5 if step == 0 else 1e-4
        torch.testing.assert_close(sent[-1], wanted[-1], atol=atol, rtol=0.0)
    ours.close()
    theirs.close()


# --- read ------------------------------------------------------------------------------------------


def network(inputs: int, outputs: int, seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    layers = nn.Sequential(nn.Linear(inputs, 16), nn.ELU(), nn.Linear(16, outputs))
    return layers.requires_grad_(False)


def save_network(path: Path, layers: nn.Module, size: int, **metadata: str) -> Path:
    if path.suffix == ".pt":
        torch.jit.trace(layers, torch.zeros(1, size)).save(path)
        return path
    torch.onnx.export(
        layers,
        (torch.zeros(1, size),),
        str(path),
        input_names=["obs"],
        output_names=["actions"],
        dynamo=False,
    )
    if metadata:
        model = onnx.load(path)
        onnx.helper.set_model_props(model, metadata)
        onnx.save(model, path)
    return path


def deploy_yaml(**changes: Any) -> dict[str, Any]:
    """A Go2 in Isaac Lab's order of joints, with numbers that differ from ours and from joint to joint."""
    motors = list(GO2_ROBOT.joint_names)
    default = [{"hip": 0.1, "thigh": 0.9, "calf": -1.6}[name.split("_")[1]] for name in BY_KIND]
    tree: dict[str, Any] = {
        "joint_ids_map": [motors.index(name) for name in BY_KIND],
        "step_dt": 0.02,
        "stiffness": [20.0 + i for i in range(12)],
        "damping": [0.5 + 0.01 * i for i in range(12)],
        "default_joint_pos": default,
        "commands": {
            "base_velocity": {
                "ranges": {
                    "lin_vel_x": [-0.5, 1.0],
                    "lin_vel_y": [-0.4, 0.4],
                    "ang_vel_z": [-1.0, 1.0],
                    "heading": None,
                }
            }
        },
        "actions": {
            "JointPositionAction": {
                "clip": None,
                "joint_names": [".*"],
                "scale": [0.1 + 0.01 * i for i in range(12)],
                "offset": default,
                "joint_ids": None,
            }
        },
        "observations": {
            "base_ang_vel": term(3, 0.2, history=3),
            "projected_gravity": term(3, 1.0, clip=[-0.9, 0.1]),
            "velocity_commands": {**term(3, 1.0), "scale": [2.0, 2.0, 0.25]},
            "joint_pos_rel": {
                **term(12, 1.0, history=2),
                "scale": [1.0 + 0.1 * i for i in range(12)],
            },
            "joint_vel_rel": term(12, 0.05, clip=[-3.0, 3.0]),
            "last_action": term(12, 1.0, history=4),
        },
    }
    return {**tree, **changes}


def term(size: int, scale: float, history: int = 1, clip: Any = None) -> dict[str, Any]:
    return {"params": {}, "clip": clip, "scale": [scale] * size, "history_length": history}


def write(path: Path, tree: Any) -> Path:
    path.write_text(yaml.safe_dump(tree, sort_keys=False))
    return path


def lab_size(tree: dict[str, Any]) -> int:
    return sum(
        len(each["scale"]) * each["history_length"] for each in tree["observations"].values()
    )


def with_offset_and_clip() -> dict[str, Any]:
    tree = deploy_yaml()
    action = tree["actions"]["JointPositionAction"]
    action["offset"] = [0.0, 0.1] * 2 + [0.8, 0.7] * 2 + [-1.4, -1.7] * 2
    action["clip"] = [[-0.2, 0.3]] * 4 + [[0.5, 1.2]] * 4 + [[-1.9, -1.2]] * 4
    tree["observations"] |= {"joint_pos": term(12, 0.5), "gait_phase": term(2, 1.0)}
    tree["observations"]["gait_phase"]["params"] = {"period": 0.7}
    del tree["observations"]["joint_pos_rel"]
    return tree


@pytest.mark.parametrize("make", [deploy_yaml, with_offset_and_clip])
def test_a_policy_of_unitree_rl_lab_acts_as_in_its_own_loop(
    make: Callable[[], dict[str, Any]], tmp_path: Path
) -> None:
    tree = make()
    description = write(tmp_path / "deploy.yaml", tree)
    path = save_network(tmp_path / "policy.onnx", network(lab_size(tree), 12), lab_size(tree))
    policy, cfg, _ = policy_and_task(GO2, path, description=description)
    assert cfg.robot.kp[:3] == (20.0, 21.0, 22.0)  # motors are those of Unitree's SDK, as ours
    assert cfg.robot.default_joint_pos[:3] == (0.1, 0.9, -1.6)
    assert cfg.commands["velocity"].lin_vel_y == (-0.4, 0.4)
    loop = LabLoop(description, path)
    core = core_of(exact(cfg))
    if tree["actions"]["JointPositionAction"]["offset"] != tree["default_joint_pos"]:
        # Its last action is 0 when an episode starts, ours is that of the default pose.
        shifts = zip(
            tree["default_joint_pos"], tree["actions"]["JointPositionAction"]["offset"], strict=True
        )
        scale = tree["actions"]["JointPositionAction"]["scale"]
        loop.action = np.array(
            [(pose - offset) / s for (pose, offset), s in zip(shifts, scale, strict=True)]
        )
    assert_same_targets(core, policy, loop, motor_keys(cfg), steps=60)


def test_history_by_time_and_scales_before_clips_are_those_of_unitree_rl_mjlab(
    tmp_path: Path,
) -> None:
    """Its loop shows all terms of a step together (use_gym_history) and clips what is scaled (scale_first)."""
    terms = {"base_ang_vel": term(3, 0.2, 3, [-0.1, 0.1]), "last_action": term(12, 1.0, 3)}
    tree = deploy_yaml(observations={"use_gym_history": True, "scale_first": True, **terms})
    layers = network(45, 12)
    path = save_network(tmp_path / "policy.onnx", layers, 45)
    policy, cfg, _ = policy_and_task(GO2, path, description=write(tmp_path / "deploy.yaml", tree))
    core = core_of(exact(cfg))
    observation = core.reset(seed=0)[0]
    actions, rates = [torch.zeros(12)] * 3, [core.robot.ang_vel_b[0].clone()] * 3
    order = [list(policy.contract["action_joints"]).index(name) for name in BY_KIND]
    for _ in range(20):
        rates = [*rates[1:], core.robot.ang_vel_b[0].clone()]
        steps = [
            torch.cat([(0.2 * rate).clamp(-0.1, 0.1), action])
            for rate, action in zip(rates, actions, strict=True)
        ]
        wanted = layers(torch.cat(steps))
        action = policy(observation)
        torch.testing.assert_close(action[0, order], wanted, atol=1e-5, rtol=0.0)
        actions = [*actions[1:], wanted]
        observation = core.step(action)[0]
    core.close()


GYM = {
    "policy_path": "policy.pt",
    "xml_path": "scene.xml",
    "simulation_dt": 0.002,
    "control_decimation": 10,
    "kps": [100.0, 100.0, 100.0, 150.0, 40.0, 40.0] * 2,
    "kds": [2.0, 2.0, 2.0, 4.0, 2.0, 2.0] * 2,
    "default_angles": [-0.1, 0.0, 0.0, 0.3, -0.2, 0.0] * 2,
    "ang_vel_scale": 0.25,
    "dof_pos_scale": 1.0,
    "dof_vel_scale": 0.05,
    "action_scale": 0.25,
    "cmd_scale": [2.0, 2.0, 0.25],
    "num_actions": 12,
    "num_obs": 47,
    "cmd_init": [0.5, 0, 0],
}
"""Numbers of a G1, as its published file has them."""


class Recurrent(nn.Module):
    """A policy with an LSTM, as rsl_rl exports it: its state is in the module."""

    def __init__(self, size: int, actions: int):
        super().__init__()
        torch.manual_seed(0)
        self.rnn = nn.LSTM(size, 8)
        self.actor = nn.Sequential(nn.Linear(8, 16), nn.ELU(), nn.Linear(16, actions))
        self.register_buffer("hidden_state", torch.zeros(1, 1, 8))
        self.register_buffer("cell_state", torch.zeros(1, 1, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, (h, c) = self.rnn(x.unsqueeze(0), (self.hidden_state, self.cell_state))
        self.hidden_state[:] = h
        self.cell_state[:] = c
        return self.actor(out.squeeze(0))


def test_a_policy_of_unitree_rl_gym_with_an_lstm_acts_as_in_its_own_loop(tmp_path: Path) -> None:
    description = write(tmp_path / "g1.yaml", GYM)
    torch.jit.script(Recurrent(47, 12).eval()).save(tmp_path / "policy.pt")
    policy, cfg, _ = policy_and_task(G1, tmp_path / "policy.pt", description=description)
    assert cfg.sim.step_dt == pytest.approx(0.02)
    core = core_of(exact(cfg))
    loop = GymLoop(description, list(cfg.robot.joint_names))
    observation = core.reset(seed=3)[0]
    clock = core.commands["gait"][0]
    loop.time = float(torch.atan2(clock[0], clock[1]) / (2 * torch.pi)) % 1.0 * 0.8
    sent = targets_of(core)
    for _ in range(40):
        wanted = loop(measured(core))
        observation = core.step(policy(observation))[0]
        torch.testing.assert_close(
            sent[-1][0].double(),
            torch.tensor(list(wanted.values()), dtype=float),
            atol=1e-4,
            rtol=0.0,
        )
    core.close()


@pytest.mark.parametrize("numbers", [{}, {"leg_joint2motor_idx": list(range(12))}])
def test_legs_with_more_joints_than_the_robots_are_refused(
    numbers: dict[str, Any], tmp_path: Path
) -> None:
    """The twelve joints of an H1-2's legs would move a shoulder of the H1."""
    torch.jit.script(Recurrent(47, 12).eval()).save(tmp_path / "policy.pt")
    description = write(tmp_path / "h1_2.yaml", GYM | numbers)
    with pytest.raises(ValueError, match=r"h1_2.*'h1'.*joint_names"):
        policy_and_task("Legged/H1-Flat-v0", tmp_path / "policy.pt", description=description)


def test_each_robot_has_its_own_memory_and_a_new_episode_has_none(tmp_path: Path) -> None:
    torch.jit.script(Recurrent(47, 12).eval()).save(tmp_path / "policy.pt")
    policy, _, _ = policy_and_task(
        G1, tmp_path / "policy.pt", description=write(tmp_path / "g1.yaml", GYM)
    )
    size = sum(each["size"] for each in policy.inputs["policy"])
    inputs = torch.randn(6, 3, size, generator=torch.Generator().manual_seed(1))
    policy.reset()
    together = [policy(rows) for rows in inputs[:3]]
    policy.reset(torch.tensor([False, True, False]))
    together += [policy(rows) for rows in inputs[3:]]
    for robot in range(3):
        policy.reset()
        for step, rows in enumerate(inputs):
            if robot == 1 and step == 3:
                policy.reset()
            alone = policy(rows[robot : robot + 1])
            torch.testing.assert_close(alone[0], together[step][robot], atol=1e-6, rtol=0.0)


def sar_config(**changes: Any) -> dict[str, Any]:
    """A Go2 policy with the left legs first, and a history from the newest to the oldest step with a gap."""
    config = {
        "model_name": "policy.pt",
        "num_observations": 45,
        "observations": ["commands", "ang_vel", "gravity_vec", "dof_pos", "dof_vel", "actions"],
        "observations_history": [0, 1, 3],
        "observations_history_priority": "time",
        "clip_obs": 4.0,
        "clip_actions_lower": [-0.5 - 0.01 * i for i in range(12)],
        "clip_actions_upper": [0.4] * 12,
        "rl_kp": [30.0 + i for i in range(12)],
        "rl_kd": [1.0] * 12,
        "num_of_dofs": 12,
        "action_scale": [0.125, 0.25, 0.25] * 4,
        "wheel_indices": [],
        "lin_vel_scale": 2.0,
        "ang_vel_scale": 0.25,
        "dof_pos_scale": 1.0,
        "dof_vel_scale": 0.05,
        "commands_scale": [2.0, 2.0, 0.25],
        "torque_limits": [33.5] * 12,
        "default_dof_pos": [0.1, 0.8, -1.5, -0.1, 0.8, -1.5, 0.1, 1.0, -1.5, -0.1, 1.0, -1.5],
        "joint_mapping": [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8],
    }
    return {**config, **changes}


@pytest.mark.parametrize("priority", ["time", "term"])
def test_a_policy_of_rl_sar_acts_as_in_its_own_loop(priority: str, tmp_path: Path) -> None:
    folder = tmp_path / "go2" / "himloco"
    folder.mkdir(parents=True)
    base = {"dt": 0.005, "decimation": 4, "joint_names": list(GO2_ROBOT.joint_names)}
    write(tmp_path / "go2" / "base.yaml", {"go2": base})
    config = sar_config(observations_history_priority=priority)
    description = write(folder / "config.yaml", {"go2/himloco": config})
    path = save_network(folder / "policy.pt", network(135, 12), 135)
    policy, cfg, _ = policy_and_task(GO2, path, description=description)
    names = list(cfg.robot.joint_names)
    assert cfg.robot.kp[names.index("FL_hip_joint")] == 30.0
    core = core_of(exact(cfg))
    assert_same_targets(core, policy, SarLoop(description), steps=60)


@pytest.mark.parametrize(("section", "is_other"), [("b2/robot_lab", True), ("go2/him", False)])
def test_a_policy_of_rl_sar_for_another_robot_is_told(
    section: str, is_other: bool, tmp_path: Path
) -> None:
    """The B2 has joints of the same names as the Go2."""
    description = write(tmp_path / "config.yaml", {section: sar_config()})
    path = save_network(tmp_path / "policy.pt", network(135, 12), 135)
    policy, _, _ = policy_and_task(GO2, path, description=description)
    assumed = policy.contract["foreign"]["assumed"]
    told = [line for line in assumed if "'b2'" in line and "'go2'" in line]
    assert bool(told) == is_other


def test_what_rl_sar_leaves_out_is_not_clipped_and_a_number_too_large_is_named(
    tmp_path: Path,
) -> None:
    """Without a base.yaml in its folder, the control step is the task's, and motors are numbered as in the SDK."""
    config = sar_config(observations_history=[], clip_actions_lower=[], clip_actions_upper=[])
    description = write(tmp_path / "config.yaml", {"go2/mine": config})
    path = save_network(tmp_path / "policy.pt", network(45, 12), 45)
    policy, cfg, _ = policy_and_task(GO2, path, description=description)
    assert cfg.action_limit == 100.0
    assert len(policy.contract["foreign"]["assumed"]) == 2
    for changes, named in (
        ({"num_of_dofs": 0}, "num_of_dofs.* 0"),
        ({"clip_obs": -1}, "clip_obs.*-1"),
    ):
        write(description, {"go2/mine": {**config, **changes}})
        with pytest.raises(ValueError, match=named):
            policy_and_task(GO2, path, description=description)


def mjlab_metadata() -> dict[str, str]:
    return {
        "joint_names": ",".join(BY_KIND),
        "joint_stiffness": ",".join(f"{20 + i}.000" for i in range(12)),
        "joint_damping": ",".join(["0.500"] * 12),
        "default_joint_pos": ",".join(["0.100"] * 4 + ["0.900"] * 4 + ["-1.600"] * 4),
        "command_names": "twist",
        "observation_names": "base_lin_vel,base_ang_vel,projected_gravity,joint_pos,joint_vel,actions,command",
        "action_scale": ",".join(f"0.{i + 10}0" for i in range(12)),
    }


def test_a_policy_of_mjlab_needs_no_other_file_and_acts_as_in_its_own_loop(tmp_path: Path) -> None:
    path = save_network(tmp_path / "policy.onnx", network(48, 12), 48, **mjlab_metadata())
    policy, cfg, _ = policy_and_task(GO2, path)
    names = list(cfg.robot.joint_names)
    assert cfg.robot.kp[names.index("FR_hip_joint")] == 21.0
    assert any("0.02" in sentence for sentence in policy.contract["foreign"]["assumed"])
    assert_same_targets(core_of(exact(cfg)), policy, MjlabLoop(path), steps=60)


def test_a_history_of_beyondmimic_is_that_of_each_term_the_oldest_first(tmp_path: Path) -> None:
    texts = {**mjlab_metadata(), "observation_names": "base_ang_vel,joint_pos,actions"}
    texts["observation_history_lengths"] = "3.000,2.000,1.000"
    path = save_network(tmp_path / "policy.onnx", network(45, 12), 45, **texts)
    policy, cfg, _ = policy_and_task(GO2, path)
    loop = MjlabLoop(path)
    loop.texts["observation_history_lengths"] = ["3", "2", "1"]
    assert_same_targets(core_of(exact(cfg)), policy, loop, steps=60)


class WithMotion(nn.Module):
    """A policy of BeyondMimic: the motion is in its file, and comes out at any time step."""

    def __init__(self, size: int, steps: int = 12):
        super().__init__()
        generator = torch.Generator().manual_seed(5)
        self.actor = network(size, 29)
        self.joint_pos = 0.3 * torch.randn(steps, 29, generator=generator)
        self.joint_vel = torch.randn(steps, 29, generator=generator)
        self.body_pos = torch.randn(steps, 2, 3, generator=generator)
        self.body_quat = nn.functional.normalize(
            torch.randn(steps, 2, 4, generator=generator), dim=2
        )

    def forward(self, x: torch.Tensor, time_step: torch.Tensor) -> tuple[torch.Tensor, ...]:
        step = time_step.long().squeeze(-1).clamp(max=len(self.joint_pos) - 1)
        tables = (self.joint_pos, self.joint_vel, self.body_pos, self.body_quat)
        return (self.actor(x), *(table[step] for table in tables))


def matrix(quat: Any) -> np.ndarray:
    turned = np.zeros(9)
    mujoco.mju_quat2Mat(turned, np.asarray(quat, float))
    return turned.reshape(3, 3)


def save_motion(folder: Path, layers: WithMotion, size: int, **changes: str) -> Path:
    path = folder / "dance.onnx"
    outputs = ["actions", "joint_pos", "joint_vel", "body_pos_w", "body_quat_w"]
    example = (torch.zeros(1, size), torch.zeros(1, 1))
    names = ["obs", "time_step"]
    torch.onnx.export(
        layers, example, str(path), input_names=names, output_names=outputs, dynamo=False
    )
    order = list(reversed(G1_29.joint_names))
    numbers = {
        "joint_stiffness": 40.0,
        "joint_damping": 2.0,
        "default_joint_pos": 0.1,
        "action_scale": 0.2,
    }
    texts = {name: ",".join([f"{value:.3f}"] * 29) for name, value in numbers.items()}
    texts |= {
        "joint_names": ",".join(order),
        "command_names": "motion",
        "observation_names": "command,motion_anchor_pos_b,motion_anchor_ori_b,base_ang_vel,joint_pos,joint_vel,actions",
        "anchor_body_name": "torso_link",
        "body_names": "pelvis,torso_link",
    }
    model = onnx.load(path)
    onnx.helper.set_model_props(model, {**texts, **changes})
    onnx.save(model, path)
    return path


def test_a_policy_of_beyondmimic_imitates_the_motion_in_its_file(tmp_path: Path) -> None:
    """The motion begins at the place and with the heading of the robot, and stays at its end."""
    size = 58 + 9 + 3 + 3 * 29
    layers = WithMotion(size)
    policy, cfg, _ = policy_and_task(G1, save_motion(tmp_path, layers, size))
    core = core_of(exact(cfg))
    observation = core.reset(seed=2)[0]
    names = list(cfg.robot.joint_names)
    order = [names.index(name) for name in reversed(G1_29.joint_names)]
    body = core.sim.body_ids(("torso_link",))[0]
    default = np.full(29, 0.1)
    action = np.zeros(29)
    start = matrix(core.sim.body_quat_w[0, body])
    first = matrix(layers.body_quat[0, 1])
    turn = np.arctan2(start[1, 0], start[0, 0]) - np.arctan2(first[1, 0], first[0, 0])
    yaw = matrix([np.cos(turn / 2), 0.0, 0.0, np.sin(turn / 2)])
    origin = core.sim.body_pos_w[0, body].double().numpy().copy()
    sent = targets_of(core)
    for i in range(16):
        step = min(i, 11)
        here = matrix(core.sim.body_quat_w[0, body])
        pos = core.sim.body_pos_w[0, body].double().numpy()
        reference = layers.body_pos[:, 1].double().numpy()
        wanted_pos = yaw @ (reference[step] - reference[0]) + [*origin[:2], reference[0, 2]]
        wanted = here.T @ yaw @ matrix(layers.body_quat[step, 1])
        parts = [
            layers.joint_pos[step].numpy(),
            layers.joint_vel[step].numpy(),
            here.T @ (wanted_pos - pos),
            wanted[:, :2].ravel(),
            core.sim.root_ang_vel_b[0].numpy(),
            core.sim.joint_pos[0].numpy()[order] - default,
            core.sim.joint_vel[0].numpy()[order],
            action,
        ]
        seen = torch.from_numpy(np.concatenate(parts)).float()
        action = layers.actor(seen).numpy()
        observation = core.step(policy(observation))[0]
        np.testing.assert_allclose(sent[-1][0].numpy()[order], default + 0.2 * action, atol=1e-3)
    core.close()


def test_a_motion_without_an_anchor_is_named_term_by_term(tmp_path: Path) -> None:
    size = 58 + 9 + 3 + 3 * 29
    path = save_motion(tmp_path, WithMotion(size), size, anchor_body_name="head")
    with pytest.raises(ValueError, match="'head'"):
        policy_and_task(G1, path)
    texts = {**mjlab_metadata(), "observation_names": "motion_anchor_ori_b,base_ang_vel,foo"}
    bare = save_network(tmp_path / "bare.onnx", network(45, 12), 45, **texts)
    with pytest.raises(ValueError, match=r"motion_anchor_ori_b.*anchor_body_name.*foo"):
        policy_and_task(GO2, bare)


# --- checkpoints -----------------------------------------------------------------------------------


def old_checkpoint(layers: nn.Sequential) -> dict[str, Any]:
    """A checkpoint of rsl_rl 1 or 2, with the normalizer next to the model."""
    state = {f"actor.{name}": value for name, value in layers.state_dict().items()}
    state |= {f"critic.{name}": value for name, value in network(45, 1).state_dict().items()}
    return {
        "model_state_dict": {**state, "std": torch.ones(12)},
        "optimizer_state_dict": {},
        "iter": 7,
    }


def with_normalizer(layers: nn.Sequential) -> dict[str, Any]:
    state = old_checkpoint(layers)
    state["model_state_dict"] |= {
        "actor_obs_normalizer._mean": torch.full((1, 45), 0.3),
        "actor_obs_normalizer._var": torch.full((1, 45), 4.0),
        "actor_obs_normalizer._std": torch.full((1, 45), 2.0),
        "actor_obs_normalizer.count": torch.tensor(5),
    }
    return state


def new_checkpoint(layers: nn.Sequential) -> dict[str, Any]:
    """Of rsl_rl 5."""
    state = {f"mlp.{name}": value for name, value in layers.state_dict().items()}
    return {
        "actor_state_dict": {**state, "distribution.std_param": torch.ones(12)},
        "critic_state_dict": {},
    }


@pytest.mark.parametrize("make", [old_checkpoint, with_normalizer, new_checkpoint])
def test_a_checkpoint_of_rsl_rl_is_its_actor(
    make: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    terms = {
        "base_ang_vel": term(3, 1.0),
        "projected_gravity": term(3, 1.0),
        "velocity_commands": term(3, 1.0),
    }
    terms |= {
        "joint_pos_rel": term(12, 1.0),
        "joint_vel_rel": term(12, 1.0),
        "last_action": term(12, 1.0),
    }
    description = write(tmp_path / "deploy.yaml", deploy_yaml(observations=terms))
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(45, 16), nn.Tanh(), nn.Linear(16, 12)).requires_grad_(False)
    path = tmp_path / "model_7.pt"
    torch.save(make(layers), path)
    write(tmp_path / "agent.yaml", {"policy": {"class_name": "ActorCritic", "activation": "tanh"}})
    policy, _, _ = policy_and_task(GO2, path, description=description)
    seen = torch.randn(5, 45, generator=torch.Generator().manual_seed(2))
    inputs = (seen - 0.3) / 2.01 if make is with_normalizer else seen
    torch.testing.assert_close(policy.network.network(seen), layers(inputs), atol=1e-6, rtol=0.0)


class Opens:
    """A pickle that runs code when it is read."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.path), "w")


def test_no_code_of_a_checkpoint_runs(tmp_path: Path) -> None:
    description = write(tmp_path / "deploy.yaml", deploy_yaml())
    state = old_checkpoint(network(45, 12))
    torch.save({**state, "infos": Opens(tmp_path / "opened")}, tmp_path / "model.pt")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Opens(tmp_path / "opened")))
    for name in ("model.pt", "plain.pt"):
        with pytest.raises(ValueError, match=name):
            policy_and_task(GO2, tmp_path / name, description=description)
    assert not (tmp_path / "opened").exists()


# --- refused ---------------------------------------------------------------------------------------


def without(tree: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in tree.items() if key != name}


def changed_action(**changes: Any) -> dict[str, Any]:
    tree = deploy_yaml()
    tree["actions"]["JointPositionAction"] |= changes
    return tree


SCAN = {"height_scanner": term(187, 1.0), "foo": term(1, 1.0)}
REFUSED: dict[str, tuple[Any, str]] = {
    "terms": (deploy_yaml(observations=SCAN), "height_scanner.*resolution.*foo"),
    "no gains": (without(deploy_yaml(), "damping"), "damping is missing"),
    "too few gains": (deploy_yaml(stiffness=[20.0] * 5), "stiffness has 5"),
    "a text": (deploy_yaml(default_joint_pos="all"), r"default_joint_pos.*'all'"),
    "a bool": (deploy_yaml(step_dt=True), "step_dt.*True"),
    "nan": (deploy_yaml(step_dt=float("nan")), "step_dt.*nan"),
    "no time": (deploy_yaml(step_dt=0.0), "step_dt.*0.0"),
    "a motor twice": (deploy_yaml(joint_ids_map=[0] * 12), "joint_ids_map"),
    "a motor too far": (deploy_yaml(joint_ids_map=[*range(11), 40]), "joint_ids_map.*40"),
    "names of another robot": (
        deploy_yaml(joint_names=[f"j{i}" for i in range(12)]),
        "j0, j1.*'go2'",
    ),
    "another action": (deploy_yaml(actions={"JointEffortAction": {}}), "JointEffortAction"),
    "a scale too few": (changed_action(scale=[0.25] * 11), "scale.* 12 .*11"),
    "a clip that is none": (changed_action(clip=[[1.0, -1.0]] * 12), r"clip.0.*\[1.0, -1.0\]"),
    "another size": (deploy_yaml(observations={"base_ang_vel": term(3, 1.0)}), "3 numbers"),
    "an unknown part of a term": (
        deploy_yaml(observations={"base_ang_vel": {**term(3, 1.0), "delay": 2}}),
        "base_ang_vel.delay .*history_length",
    ),
    "neither": ({"a": 1, "b": 2}, "a, b"),
    "a list": ([1, 2], "deploy.yaml"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_mapped_is_named_in_one_line(case: str, tmp_path: Path) -> None:
    tree, named = REFUSED[case]
    path = save_network(tmp_path / "policy.onnx", network(45, 12), 45)
    description = write(tmp_path / "deploy.yaml", tree)
    with pytest.raises(ValueError, match=named) as error:
        policy_and_task(GO2, path, description=description)
    text = str(error.value)
    assert "\n" not in text and len(text) < 700


def test_a_file_of_python_tags_makes_no_object_and_a_slice_stands_for_all_joints(
    tmp_path: Path,
) -> None:
    tree = changed_action(joint_ids="SLICE")
    description = tmp_path / "deploy.yaml"
    text = yaml.safe_dump(tree, sort_keys=False)
    tagged = text.replace("SLICE", "!!python/object/apply:builtins.slice [null, null, null]")
    tagged += f"extra: !!python/object/apply:os.mkdir ['{tmp_path}/made']\n"
    description.write_text(tagged)
    path = save_network(tmp_path / "policy.onnx", network(lab_size(tree), 12), lab_size(tree))
    policy, _, _ = policy_and_task(GO2, path, description=description)
    assert len(policy.contract["action_joints"]) == 12 and not (tmp_path / "made").exists()


def test_aliases_that_would_fill_the_memory_are_refused_in_a_moment(tmp_path: Path) -> None:
    lines = ["joint_ids_map: &a0 [1, 1]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    lines += ["step_dt: *a11"]
    (tmp_path / "deploy.yaml").write_text("\n".join(lines))
    path = save_network(tmp_path / "policy.onnx", network(45, 12), 45)
    with pytest.raises(ValueError, match="joint_ids_map"):
        policy_and_task(GO2, path, description=tmp_path / "deploy.yaml")


class Loops(nn.Module):
    """A module that may never end."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while bool(x.sum() > -1e9):
            x = x + 1.0
        return x[:, :12]


class Writes(nn.Module):
    """A module that writes a file."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.save(x, "written")
        return x[:, :12]


def test_torchscript_of_other_than_tensor_operations_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    description = write(tmp_path / "deploy.yaml", deploy_yaml())
    torch.jit.script(Loops()).save("loops.pt")
    torch.jit.script(Writes()).save("writes.pt")
    with pytest.raises(ValueError, match=r"loops.pt.*prim::Loop"):
        policy_and_task(GO2, tmp_path / "loops.pt", description=description)
    with pytest.raises(ValueError, match=r"writes.pt.*save"):
        policy_and_task(GO2, tmp_path / "writes.pt", description=description)
    assert not (tmp_path / "written").exists()


def test_files_that_are_no_policies_are_one_line(tmp_path: Path) -> None:
    description = write(tmp_path / "deploy.yaml", deploy_yaml())
    for name in ("policy.onnx", "policy.pt", "empty.pt"):
        (tmp_path / name).write_bytes(b"" if name == "empty.pt" else b"no policy")
        with pytest.raises(ValueError, match=name) as error:
            policy_and_task(GO2, tmp_path / name, description=description)
        assert "\n" not in str(error.value)
    path = save_network(tmp_path / "bare.onnx", network(45, 12), 45)
    with pytest.raises(ValueError, match="--contract"):
        policy_and_task(GO2, path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        policy_and_task(GO2, tmp_path / "nowhere.onnx", description=description)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        policy_and_task(GO2, path, description=tmp_path / "nowhere.yaml")
    with pytest.raises(ValueError, match="Go2-Mimic"):
        policy_and_task("Legged/Go2-Mimic-v0", path, description=description)


class Counts(nn.Module):
    """A module that changes its own tensors in place."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(1.0)
        return torch.clamp_min_(x[:, :12] * 0.0, 0.0) + self.count


def test_a_module_that_counts_has_a_memory_of_each_robot(tmp_path: Path) -> None:
    torch.jit.script(Counts()).save(tmp_path / "counts.pt")
    network = TorchScriptNetwork(tmp_path / "counts.pt")
    for step in range(3):
        torch.testing.assert_close(network(torch.ones(4, 45)), torch.full((4, 12), step + 1.0))
    network.reset(torch.tensor([True, False, False, False]))
    assert network(torch.ones(4, 45))[:, 0].tolist() == [1.0, 4.0, 4.0, 4.0]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("export Legged/Go2-Rough-v0 --format unitree-rl-lab", "height_scan"),
        ("export Legged/G1-Flat-v0 --format unitree-rl-gym", "0.6 s"),
        ("export Legged/G1-Flat-v0 --format mjlab", "clock"),
        ("export Legged/Tron1-WF-Flat-v0 --format mjlab", "velocity"),
        ("export Legged/Go2-Mimic-v0 --format rl-sar", "Go2-Mimic"),
        ("export Legged/Go2-Flat-v0 --format mjlab --half", "--half"),
        ("export Legged/Go2-Flat-v0 --format lab", "unitree-rl-lab"),
    ],
)
def test_what_a_format_cannot_say_is_one_line_and_nothing_is_written(
    words: str,
    named: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        cli.main([*words.split(), "--folder", "new"])
    told = capsys.readouterr().err
    assert stop.value.code == 2 and named in told and told.count("\n") == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_policies_with_a_memory_are_written_in_no_format(
    cell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = tiny_run(tmp_path / "run", LSTMCfg(memory=8, cell=cell, **TINY))
    for name in FILES:
        with pytest.raises(ValueError, match=r"remembers the past .* no format has a place"):
            export_format(GO2, run, tmp_path / "new", name)
    assert not (tmp_path / "new").exists()


def test_a_control_step_of_an_exported_policy_comes_back(tmp_path: Path) -> None:
    changes = {"sim.decimation": 2}
    run = tiny_run(tmp_path / "run", PPOCfg(**TINY), changes)
    export_format(GO2, run, tmp_path / "new", "mjlab")
    policy, cfg, _ = policy_and_task(GO2, tmp_path / "new" / "policy.onnx")
    assert policy.contract["control_dt"] == cfg.sim.step_dt == 0.01
    # Files of mjlab itself do not have it, and the user may know it.
    model = onnx.load(tmp_path / "new" / "policy.onnx")
    kept = [entry for entry in model.metadata_props if entry.key != "control_dt"]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    onnx.save(model, tmp_path / "plain.onnx")
    policy, cfg, _ = policy_and_task(GO2, tmp_path / "plain.onnx", changes)
    assert policy.contract["control_dt"] == cfg.sim.step_dt == 0.01
    policy, cfg, _ = policy_and_task(GO2, tmp_path / "plain.onnx")
    assert policy.contract["control_dt"] == cfg.sim.step_dt == 0.02


def test_a_checkpoint_of_this_package_is_no_policy_of_another_framework(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tiny_run(tmp_path / "run", PPOCfg(**TINY))
    for words in (["eval"], ["play", "--video", "a.mp4"], ["export", "--folder", "new"]):
        with pytest.raises(SystemExit):
            cli.main([words[0], GO2, *words[1:], "--policy", str(run / "checkpoint.pt")])
        told = capsys.readouterr().err
        assert f"name the run folder '{run}'" in told and told.count("\n") == 1


# --- robots with more joints, and the commands -----------------------------------------------------


def test_a_policy_of_29_joints_is_played_by_the_g1_with_29(tmp_path: Path) -> None:
    names = list(G1_29.joint_names)
    order = sorted(range(29), key=lambda i: names[i].split("_")[-2])
    default = [G1_29.default_joint_pos[i] for i in order]
    tree = deploy_yaml(
        joint_ids_map=order,
        stiffness=list(G1_29.kp),
        damping=list(G1_29.kd),
        default_joint_pos=default,
        actions={"JointPositionAction": {"clip": None, "scale": [0.25] * 29, "offset": default}},
        observations={
            "base_ang_vel": term(3, 0.2, 5),
            "joint_pos_rel": term(29, 1.0, 5),
            "last_action": term(29, 1.0),
        },
    )
    description = write(tmp_path / "deploy.yaml", tree)
    path = save_network(tmp_path / "policy.onnx", network(lab_size(tree), 29), lab_size(tree))
    policy, cfg, _ = policy_and_task(G1, path, description=description)
    assert cfg.robot.name == "g1_29" and cfg.robot.kp == G1_29.kp
    loop = LabLoop(description, path)
    assert_same_targets(core_of(exact(cfg)), policy, loop, motor_keys(cfg), steps=20)


def test_in_another_pose_the_feet_still_stand_on_the_ground(tmp_path: Path) -> None:
    """A robot of 0.3346 m at (0, 0.8, −1.5) is lower at (0.1, 0.9, −1.6)."""
    tree = deploy_yaml()
    path = save_network(tmp_path / "policy.onnx", network(lab_size(tree), 12), lab_size(tree))
    _, cfg, _ = policy_and_task(GO2, path, description=write(tmp_path / "deploy.yaml", tree))
    core = core_of(exact(cfg))
    model = core.sim.model
    data = mujoco.MjData(model)
    data.qpos[2] = cfg.robot.base_height
    for name, angle in zip(cfg.robot.joint_names, cfg.robot.default_joint_pos, strict=True):
        data.qpos[model.joint(name).qposadr[0]] = angle
    mujoco.mj_kinematics(model, data)
    heights = [data.body(name).xpos[2] for name in cfg.robot.foot_names]
    assert min(heights) == pytest.approx(cfg.robot.foot_radius, abs=0.004)
    assert cfg.robot.base_height < GO2_ROBOT.base_height - 0.005
    core.close()


def test_eval_and_crosscheck_take_a_policy_of_another_framework(
    exported: dict[tuple[str, str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A policy that ships, written for unitree_rl_lab, walks as well as it does here."""
    monkeypatch.chdir(tmp_path)
    folder = exported["unitree-rl-lab", GO2]
    words = ["--policy", str(folder / "exported" / "policy.onnx")]
    words += ["--contract", str(folder / "params" / "deploy.yaml")]
    small = ["--episodes", "2", "--json", "eval.json"]
    cli.main(["eval", GO2, *words, *small])
    told = capsys.readouterr().out
    assert "joint_pos_rel is joint_pos" in told
    numbers = json.loads((tmp_path / "eval.json").read_text())
    assert numbers["falls"] == 0.0 and numbers["lin_vel_error"] < 0.15
    cli.main(
        [
            "crosscheck",
            GO2,
            *words,
            "--sims",
            "mujoco",
            "--robots",
            "2",
            "--seconds",
            "1.2",
            "--json",
            "c.json",
        ]
    )
    runs = json.loads((tmp_path / "c.json").read_text())["runs"]
    assert runs["plain mj_step"]["parted"] == 0.0
    with pytest.raises(SystemExit):
        cli.main(["eval", GO2, *words, "--record"])
    assert "--json" in capsys.readouterr().err
    mjlab = str(exported["mjlab", GO2] / "policy.onnx")
    refused = {(): "--format", ("--format", "rl-sar"): "checkpoint", ("--card",): "--format"}
    for more, told in refused.items():
        with pytest.raises(SystemExit):
            cli.main(["export", GO2, "--policy", mjlab, "--folder", "new", *more])
        assert told in capsys.readouterr().err and not Path("new").exists()


def test_a_card_tells_robot_task_evaluation_costs_and_licence(tmp_path: Path) -> None:
    cli.main(["export", GO2, "--card", "--folder", str(tmp_path / "new")])
    text = (tmp_path / "new" / "README.md").read_text()
    front = yaml.safe_load(text.split("---")[1])
    assert front["license"] == "bsd-3-clause" and "go2" in front["tags"]
    cfg = make_task_cfg(GO2)
    for word in (GO2, *cfg.costs, "0.5 to 1.25", "-1 to 2 kg", "m/s ahead", "a plane"):
        assert word in text
    error = load_policy(tmp_path / "new" / "policy.safetensors").contract
    assert error["training"]["friction"] == [0.5, 1.25]
    cli.main(["export", GO2, "--format", "mjlab", "--card", "--folder", str(tmp_path / "mjlab")])
    assert (tmp_path / "mjlab" / "README.md").is_file()


def test_files_without_what_they_name_are_refused(tmp_path: Path) -> None:
    size = 58 + 9 + 3 + 3 * 29
    path = save_motion(tmp_path, WithMotion(size), size, anchor_body_name="")
    with pytest.raises(ValueError, match="anchor_body_name must be a body, got ''"):
        policy_and_task(G1, path)
    folder = tmp_path / "go2" / "himloco"
    folder.mkdir(parents=True)
    write(tmp_path / "go2" / "base.yaml", {})
    description = write(folder / "config.yaml", {"go2/himloco": sar_config()})
    network_path = save_network(folder / "policy.pt", network(135, 12), 135)
    with pytest.raises(ValueError, match=r"base\.yaml' is empty"):
        policy_and_task(GO2, network_path, description=description)
