"""Exported policies: the files, the loops in Python and C++ that drive them, and the page about them."""

import ast
import json
import math
import re
import runpy
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from rich.console import Console
from safetensors import safe_open

from legged_envs import cli, make_task_cfg
from legged_envs.envs import CoreVectorEnv, make_core
from legged_envs.envs.cfg import override
from legged_envs.evaluation.metrics.task import TaskMetrics
from legged_envs.mdp.actions import JointPositionCfg
from legged_envs.policy.export import export, scene_xml
from legged_envs.policy.header import read_evaluation
from legged_envs.policy.memory import MEMORY_KEY
from legged_envs.policy.metadata import LATER_ENTRIES, contract
from legged_envs.policy.policy import (
    SHIPPED,
    Policy,
    load_policy,
    load_shipped_policy,
    save_onnx,
    save_policy,
)
from legged_envs.policy.scene_files import write_scene
from legged_envs.policy.training_facts import complete_contract
from legged_envs.policy.weights_file import read_header
from legged_envs.robots import GO2 as GO2_ROBOT
from legged_envs.sim.scene import build_scene
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.scheme_options import CTSCfg, DreamWaQCfg, EECfg, HIMCfg, LSTMCfg
from legged_envs.training.trainer import Trainer

GAITS = "Legged/Go2-Gaits-v0"
GO2, G1, WHEELS = "Legged/Go2-Flat-v0", "Legged/G1-Flat-v0", "Legged/Tron1-WF-Flat-v0"
MIMIC, ROUGH = "Legged/Go2-Mimic-v0", "Legged/Go2-Rough-v0"
ROOT = Path(__file__).parents[2]
DEPLOY, PAGE = ROOT / "examples" / "deploy.py", (ROOT / "docs" / "how-to" / "deploy.md").read_text()
WALKS = [(GO2, (0.6, 0.1, -0.4)), (G1, (0.4, 0.0, 0.3)), (WHEELS, (0.5, 0.0, 0.3))]
TETRAHEDRON = "v 0 0 0\nv .02 0 0\nv 0 .02 0\nv 0 0 .02\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
deploy = SimpleNamespace(**runpy.run_path(str(DEPLOY)))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Task id → the folder that the command wrote for it."""
    made = {task_id: tmp_path_factory.mktemp("deploy") / "new" for task_id in (GO2, G1, WHEELS)}
    for task_id, folder in made.items():
        cli.main(["export", task_id, "--folder", str(folder)])
    return made


def environment(task_id: str, command: tuple[float, float, float], **changes: Any) -> CoreVectorEnv:
    """One robot in its default pose with a ``command``, without noise and randomness."""
    exact = {"events": {}, "max_action_delay": 0, "observations.policy.noisy": False}
    ranges = zip(("lin_vel_x", "lin_vel_y", "ang_vel_z"), command, strict=True)
    exact |= {f"commands.velocity.{name}": (speed, speed) for name, speed in ranges}
    cfg = override(
        make_task_cfg(task_id), {**exact, "commands.velocity.standing_fraction": 0.0, **changes}
    )
    return make_core(cfg, 1, array="torch")


def test_what_is_exported_is_the_shipped_policy_and_the_model_that_is_simulated(
    folders: dict[str, Path],
) -> None:
    for task_id, folder in folders.items():
        assert sorted(path.name for path in folder.iterdir()) == [
            "policy.onnx",
            "policy.safetensors",
            "scene.xml",
        ]
        # The header also says where a training started, which those that ship do not say yet.
        files = (folder / "policy.safetensors", SHIPPED[task_id])
        weights, shipped = (path.read_bytes()[read_header(path)[1] :] for path in files)
        assert weights == shipped
        ours, cfg = mujoco.MjModel.from_xml_path(str(folder / "scene.xml")), make_task_cfg(task_id)
        theirs = build_scene(cfg.robot, cfg.sim)
        for name in (
            "body_mass",
            "body_inertia",
            "geom_size",
            "geom_solref",
            "geom_friction",
            "dof_armature",
            "jnt_range",
        ):
            np.testing.assert_allclose(
                getattr(ours, name), getattr(theirs, name), atol=1e-6, err_msg=name
            )
        assert (ours.opt.timestep, ours.opt.integrator) == (
            theirs.opt.timestep,
            theirs.opt.integrator,
        )
        controller = deploy.Controller(str(folder / "policy.onnx"))
        assert controller.about == load_policy(folder / "policy.safetensors").contract


def assert_same_observations_and_actions(
    controller: Any,
    robot: Any,
    core: CoreVectorEnv,
    policy: Policy,
    steps: int = 40,
    follows: bool = False,
) -> None:
    """Whatever is done in these control steps.

    Float32 and contacts let the two drift apart by a little, and more with every step that a foot
    takes. A robot that follows is placed at the environment's state before each step.
    """
    (observation, _), limit = core.reset(seed=0), core.actions.limit
    command = core.commands["velocity"][0, :3].tolist()
    if "gait" in controller.about:  # it begins at any time of the stride
        controller.time = (
            float(torch.atan2(*core.commands["gait"][0]) / (2.0 * torch.pi))
            * controller.clock["period"]
        )
    for step in range(steps):
        action = policy(observation)
        if follows:
            robot.data.qpos[:7] = torch.cat((core.sim.root_pos_w[0], core.sim.root_quat_w[0]))
            robot.data.qvel[3:6] = core.robot.root_ang_vel_b[0]
            robot.data.qpos[robot.angles] = core.robot.joint_pos[0]
            robot.data.qvel[robot.speeds] = core.robot.joint_vel[0]
        robot.write(controller(command, *robot.read()))
        np.testing.assert_allclose(
            controller.observation, observation[0], atol=1e-4, err_msg=f"step {step}"
        )
        np.testing.assert_allclose(
            controller.action, action[0].clamp(-limit, limit), atol=1e-4, err_msg=f"step {step}"
        )
        observation = core.step(action)[0]
    if not follows:
        np.testing.assert_allclose(robot.data.qpos[:3], core.sim.root_pos_w[0], atol=1e-3)
    core.close()


@pytest.mark.parametrize(("task_id", "command"), WALKS)
def test_the_loop_observes_and_acts_as_the_environment_and_walks_at_its_command(
    task_id: str, command: tuple[float, float, float], folders: dict[str, Path]
) -> None:
    controller = deploy.Controller(str(folders[task_id] / "policy.onnx"))
    robot = deploy.Robot(str(folders[task_id] / "scene.xml"), controller.about)
    assert_same_observations_and_actions(
        controller, robot, environment(task_id, command), load_shipped_policy(task_id)
    )
    speeds = []
    for _ in range(200):
        robot.write(controller(command, *robot.read()))
        frame, velocity = np.zeros(9), robot.data.qvel
        mujoco.mju_quat2Mat(frame, robot.data.qpos[3:7])
        speeds.append([*(velocity[:3] @ frame.reshape(3, 3))[:2], velocity[5]])
    assert abs(np.mean(speeds, axis=0) - command).max() < 0.15


def test_a_policy_with_gaits_observes_and_acts_in_the_loop_as_in_the_environment(
    tmp_path: Path,
) -> None:
    for gait, speed in (("bound", 0.5), ("pace", 0.0)):
        changes = {"commands.gait.gaits": (gait,), "commands.velocity.lin_vel_x": (speed, speed)}
        core, policy = write_changed(tmp_path, GAITS, changes)
        controller = deploy.Controller(str(tmp_path / "policy.onnx"))
        robot = deploy.Robot(str(tmp_path / "scene.xml"), controller.about)
        core.reset(seed=0)
        term = core.commands.terms["gait"]
        style = dict(zip(deploy.STYLE, term.value[0, 3:].tolist(), strict=True))
        controller.set_gait(gait=gait, **style)
        controller.strides = term.stride_time.item()
        assert_same_observations_and_actions(controller, robot, core, policy, follows=True)


@pytest.mark.parametrize(
    ("style", "match"),
    [({"gait": "amble"}, "amble"), ({"period": 2.0}, r"2\.0"), ({"tail": 1}, "tail")],
)
def test_a_gait_that_the_policy_has_not_ends_the_loop(style, match, tmp_path: Path) -> None:
    core, _ = write_changed(tmp_path, GAITS, {})
    core.close()
    controller = deploy.Controller(str(tmp_path / "policy.onnx"))
    with pytest.raises(SystemExit, match=match):
        controller.set_gait(**style)


CHANGED: dict[str, dict[str, Any]] = {
    "some joints of a gait": {
        "actions.joint_position.joints": (".*knee_joint", ".*hip_pitch_joint"),
        "actions.joint_position.scale": 0.4,
    },
    "a gait that lifts no foot": {"actions.joint_position.around": None},
    "a gait with a foot behind": {"commands.gait.offsets": (0.0, -0.5)},
    "clips on one side": {
        "actions.joint_position.clip": (-math.inf, 0.85),
        "observations.policy.terms.ang_vel.clip": (-0.1, math.inf),
    },
    "numbers beyond the limit": {"observations.policy.terms.command.scale": 300.0},
    "the past of the group": {
        "observations.policy.history": 3,
        "observations.policy.terms.joint_vel.clip": (-0.5, 0.5),
    },
    "the past of a term": {"observations.policy.terms.ang_vel.history": 30},
    "some joints": {"actions.joint_position.joints": (".*calf_joint", "FR_hip_joint")},
    "clipped targets": {"actions.joint_position.clip": (-1.5, 0.85)},
    "larger actions": {"action_limit": 2.5},
}


def write_changed(
    folder: Path, task_id: str, changes: dict[str, Any]
) -> tuple[CoreVectorEnv, Policy]:
    """A policy that is not trained, exported for a changed task; its environment."""
    core = environment(task_id, (0.5, 0.0, 0.0), **changes)
    torch.manual_seed(0)
    hidden = torch.nn.Linear(core.group_sizes["policy"], 12)
    layers = torch.nn.Sequential(
        hidden, torch.nn.Tanh(), torch.nn.Linear(12, core.actions.size)
    ).requires_grad_(False)
    layers[2].weight *= 4.0
    meaning = contract(task_id, core)
    save_policy(folder / "policy.safetensors", layers, meaning)
    save_onnx(folder / "policy.onnx", layers, meaning)
    (folder / "scene.xml").write_text(scene_xml(core.cfg))
    return core, load_policy(folder / "policy.safetensors")


@pytest.mark.parametrize("name", CHANGED)
def test_what_changes_change_is_in_the_contract_and_in_the_loop(name: str, tmp_path: Path) -> None:
    core, policy = write_changed(tmp_path, G1 if "gait" in name else GO2, CHANGED[name])
    controller = deploy.Controller(str(tmp_path / "policy.onnx"))
    robot = deploy.Robot(str(tmp_path / "scene.xml"), controller.about)
    json.dumps(controller.about, allow_nan=False)
    assert_same_observations_and_actions(controller, robot, core, policy)


SCHEMES: dict[str, PPOCfg] = {
    "teacher and student": CTSCfg(encoder_hidden=(24,), history=4),
    "estimator": EECfg(encoder_hidden=(24,), history=4),
    "autoencoder": DreamWaQCfg(encoder_hidden=(24,), history=4),
    "internal model": HIMCfg(encoder_hidden=(24,), history=4),
    "LSTM": LSTMCfg(memory=24),
    "GRU": LSTMCfg(memory=24, cell="gru"),
}


@pytest.fixture(scope="module")
def scheme_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Exports of policies with a past that were hardly trained."""
    folders = {}
    for name, algo in SCHEMES.items():
        run, folder = tmp_path_factory.mktemp("run"), tmp_path_factory.mktemp("export")
        algo = replace(algo, hidden=(16,), steps_per_env=4, epochs=1, mini_batches=2)
        cfg = TrainCfg(GO2, num_envs=4, run_dir=run, iterations=1, video=False, algo=algo)
        trainer = Trainer(prepare(cfg), Console(quiet=True))
        trainer.iterate()
        trainer.export()
        trainer.env.env.close()
        export(GO2, run / "policy.safetensors", folder)
        folders[name] = folder
    return folders


CALM_SCHEMES = ("teacher and student", "LSTM")
"""Schemes whose policies here hardly move a foot, so that two simulations stay together."""

FOUR_SECONDS = 200
"""In control steps: fifty times the longest history here."""


@pytest.mark.parametrize("follows", [False, True], ids=["on its own", "at the same states"])
@pytest.mark.parametrize("name", SCHEMES)
def test_a_policy_with_a_past_acts_in_the_loop_as_in_the_environment(
    name: str, follows: bool, scheme_folders: dict[str, Path]
) -> None:
    folder = scheme_folders[name]
    controller = deploy.Controller(str(folder / "policy.onnx"))
    robot = deploy.Robot(str(folder / "scene.xml"), controller.about)
    policy = load_policy(folder / "policy.safetensors")
    core = environment(GO2, (0.5, 0.0, 0.0), **policy.changes)
    steps = FOUR_SECONDS if follows or name in CALM_SCHEMES else 40
    assert_same_observations_and_actions(controller, robot, core, policy, steps, follows)
    assert ("memory" in controller.about) == (name in ("LSTM", "GRU"))


def of_its_own(env: Any) -> torch.Tensor:
    return env.robot.joint_pos


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"observations.policy.terms.joint_pos.func": of_its_own}, "joint_pos"),
        ({"commands.velocity.heading_column": True}, "command"),
    ],
    ids=["a function of its own", "a size of its own"],
)
def test_what_only_has_the_name_of_a_quantity_is_refused(
    changes: dict[str, Any], name: str, tmp_path: Path
) -> None:
    write_changed(tmp_path, GO2, changes)
    controller = deploy.Controller(str(tmp_path / "policy.onnx"))
    robot = deploy.Robot(str(tmp_path / "scene.xml"), controller.about)
    with pytest.raises(SystemExit, match=f"this loop cannot observe {name}, only"):
        controller((0.0, 0.0, 0.0), *robot.read())


def test_a_wheel_without_an_action_stands_still(tmp_path: Path) -> None:
    changes = {"actions": {"joint_position": JointPositionCfg(0.2, (".*hip.*", ".*knee.*"))}}
    core, policy = write_changed(tmp_path, WHEELS, changes)
    assert "where actuators has position" not in policy.contract["action"]
    controller = deploy.Controller(str(tmp_path / "policy.onnx"))
    robot = deploy.Robot(str(tmp_path / "scene.xml"), controller.about)
    assert_same_observations_and_actions(controller, robot, core, policy)


def test_gains_and_limits_of_the_scene_are_those_of_the_contract(folders: dict[str, Path]) -> None:
    for task_id, folder in folders.items():
        model, about = (
            mujoco.MjModel.from_xml_path(str(folder / "scene.xml")),
            load_policy(folder).contract,
        )
        for i, name in enumerate(about["joint_names"]):
            motor, kind = model.actuator(name), about["actuators"][i]
            kp, kd, limit = (about[each][i] for each in ("kp", "kd", "torque_limits"))
            assert motor.gainprm[0] == pytest.approx(kp if kind == "position" else kd), (
                task_id,
                name,
            )
            assert motor.biasprm[1:3] == pytest.approx([-kp if kind == "position" else 0.0, -kd])
            assert motor.forcerange == pytest.approx([-limit, limit])


def test_a_scene_has_its_meshes_wherever_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "robot" / "parts").mkdir(parents=True)
    (tmp_path / "robot" / "parts" / "hat.obj").write_text(TETRAHEDRON)
    hat = '<freejoint name="root"/><geom class="visual" type="mesh" mesh="hat"/>'
    text = GO2_ROBOT.path.read_text().replace('<freejoint name="root"/>', hat)
    text = text.replace("<asset>", '<asset><mesh name="hat" file="hat.obj"/>').replace(
        "<compiler", '<compiler meshdir="parts"'
    )
    (tmp_path / "robot" / "go2.xml").write_text(text)
    cfg = override(
        make_task_cfg(GO2), {"robot": replace(GO2_ROBOT, xml=str(tmp_path / "robot" / "go2.xml"))}
    )
    (tmp_path / "scene.xml").write_text(scene_xml(cfg))
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "scene.xml")).nmesh == 1
    write_scene(tmp_path / "there" / "scene.xml", cfg)
    (tmp_path / "there").rename(tmp_path / "here")
    shutil.rmtree(tmp_path / "robot")
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "here" / "scene.xml")).nmesh == 1
    assert str(tmp_path) not in (tmp_path / "here" / "scene.xml").read_text()


@pytest.fixture(scope="module")
def rough_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Export of a policy that sees the ground, in a folder that was moved."""
    folder = tmp_path_factory.mktemp("rough")
    cli.main(["export", ROUGH, "--folder", str(folder / "there")])
    (folder / "there").rename(folder / "here")
    return folder / "here"


def test_a_policy_that_sees_the_ground_is_driven_on_the_exported_terrain(
    rough_folder: Path,
) -> None:
    text = (rough_folder / "scene.xml").read_text()
    assert str(rough_folder.parent) not in text and str(ROOT) not in text
    controller = deploy.Controller(str(rough_folder / "policy.onnx"))
    robot = deploy.Robot(str(rough_folder / "scene.xml"), controller.about)
    scan = controller.about["scan"]
    assert scan["cell"] == make_task_cfg(ROUGH).scene.terrain.horizontal_scale
    policy = load_shipped_policy(ROUGH)
    changes = {"events.push": None, "max_action_delay": 0, "observations.policy.noisy": False}
    core = make_core(override(make_task_cfg(ROUGH), changes), 1, array="torch")
    observation = core.reset(seed=4)[0]
    for _ in range(100):
        robot.data.qpos[:] = np.concatenate(
            [core.sim.root_pos_w[0], core.sim.root_quat_w[0], core.sim.joint_pos[0]]
        )
        robot.data.qvel[3:6] = core.sim.root_ang_vel_b[0]
        robot.data.qvel[robot.speeds] = core.sim.joint_vel[0]
        controller(core.commands["velocity"][0, :3].tolist(), *robot.read())
        off = abs(controller.observation - observation[0].numpy())
        # Where a point of the scan lies on the border of two cells, float32 decides.
        assert (off > 1e-3).sum() <= 2
        action = policy(observation)
        controller.action = action[0].clamp(-core.actions.limit, core.actions.limit).numpy()
        observation = core.step(action)[0]
    assert controller.observation[-187:].std() > 0.05  # it was not flat
    core.close()


def test_lookups_of_heights_are_those_of_the_environment(rough_folder: Path) -> None:
    ground = deploy.Ground(mujoco.MjModel.from_xml_path(str(rough_folder / "scene.xml")))
    core = make_core(make_task_cfg(ROUGH), 1)
    points = np.random.default_rng(0).uniform(-70.0, 70.0, (4000, 2))
    x, y = torch.from_numpy(points).float().T
    for lookup in ("lowest", "bilinear", "height"):
        expected = getattr(core.sim.ground, lookup)(x, y)
        off = abs(ground(points, lookup) - expected.numpy())
        assert (off > 1e-4).mean() < 2e-3, lookup
    core.close()


def test_box_stairs_are_in_the_height_field_for_a_policy_with_a_height_scan(tmp_path: Path) -> None:
    changes = {"scene.terrain.vertical_risers": True}
    core = make_core(override(make_task_cfg(ROUGH), changes), 1)
    (tmp_path / "run").mkdir()
    layers = torch.nn.Sequential(torch.nn.Linear(core.group_sizes["policy"], core.actions.size))
    entries = contract(ROUGH, core, changes=changes)
    save_policy(tmp_path / "run" / "policy.safetensors", layers, entries)
    core.close()
    export(ROUGH, tmp_path / "run", tmp_path / "out")
    ground = deploy.Ground(mujoco.MjModel.from_xml_path(str(tmp_path / "out" / "scene.xml")))
    points = np.random.default_rng(0).uniform(-70.0, 70.0, (4000, 2))
    x, y = torch.from_numpy(points).float().T
    without_boxes = make_core(make_task_cfg(ROUGH), 1)
    off = abs(ground(points, "lowest") - without_boxes.sim.ground.lowest(x, y).numpy())
    # A point on the border of two cells may round to the other one.
    assert (off > 1e-4).mean() < 2e-3
    without_boxes.close()


def test_the_contract_says_what_was_met_in_training() -> None:
    about = contract(GO2, make_core(make_task_cfg(GO2), 1))
    training = about["training"]
    assert training["commands"]["lin_vel_x"] == [-1.0, 1.0] and training["can_stand"]
    assert training["friction"] == [0.5, 1.25] and training["payload"] == [-1.0, 2.0]
    assert training["terrain"] is None
    model = build_scene(GO2_ROBOT, make_task_cfg(GO2).sim)
    for i, name in enumerate(about["joint_names"]):
        joint = model.joint(name)
        assert about["armature"][i] == model.dof_armature[joint.dofadr[0]]
        assert about["friction_loss"][i] == model.dof_frictionloss[joint.dofadr[0]]
        assert about["joint_ranges"][i] == joint.range.tolist()
    rough = contract(ROUGH, make_core(make_task_cfg(ROUGH), 1))
    assert (
        not rough["training"]["can_stand"] and "stairs_up" in rough["training"]["terrain"]["kinds"]
    )
    assert not contract(G1, make_core(make_task_cfg(G1), 1))["training"]["can_stand"]
    wheels = contract(WHEELS, make_core(make_task_cfg(WHEELS), 1))
    assert wheels["joint_ranges"].count(None) == 2


def test_what_the_loop_cannot_observe_is_one_line(folders: dict[str, Path]) -> None:
    controller = deploy.Controller(str(folders[GO2] / "policy.onnx"))
    controller.terms.append({"name": "height_scan", "size": 187})
    robot = deploy.Robot(str(folders[GO2] / "scene.xml"), controller.about)
    with pytest.raises(
        SystemExit, match="this loop cannot observe height_scan, only command, gravity, ang_vel"
    ):
        controller((0.0, 0.0, 0.0), *robot.read())


def test_the_example_runs_without_the_package(
    folders: dict[str, Path],
) -> None:
    tree = ast.parse(DEPLOY.read_text())
    imports = {
        name.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for name in node.names
    }
    assert imports == {"json", "sys", "time", "mujoco", "numpy", "onnxruntime"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    words = [sys.executable, "-I", str(DEPLOY), str(folders[GO2]), "0.8", "0", "0"]
    told = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    assert 7.0 < float(re.search(r"x = (\S+) m", told)[1]) < 9.0
    assert told.split(" at ")[1].split(",")[0] in PAGE
    usage = subprocess.run(words[:3], capture_output=True, text=True, timeout=60)
    assert usage.returncode == 1 and "legged-envs export" in usage.stderr
    for folder, speed, message in (
        (folders[GO2], "fast", "could not convert string to float: 'fast'"),
        (folders[GO2], "nan", "vx, vy and ωz must be finite numbers"),
        ("nowhere", "0", "nowhere/policy.onnx"),
    ):
        words = [sys.executable, "-I", str(DEPLOY), str(folder), speed, "0", "0"]
        mistake = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert (
            mistake.returncode == 1
            and message in mistake.stderr
            and mistake.stderr.count("\n") == 1
        )


def test_the_loop_keeps_commands_within_those_of_the_training(folders: dict[str, Path]) -> None:
    controllers = []
    for command in ((2.0, -1.5, 2.0), (1.3, -0.7, 1.5)):
        controller = deploy.Controller(str(folders[GO2] / "policy.onnx"))
        assert controller.limit_command(command).tolist() == [1.3, -0.7, 1.5]
        robot = deploy.Robot(str(folders[GO2] / "scene.xml"), controller.about)
        for _ in range(5):
            robot.write(controller(command, *robot.read()))
        controllers.append(controller)
    beyond, within = controllers
    assert beyond.observation.tolist() == within.observation.tolist()
    words = [sys.executable, str(DEPLOY), str(folders[GO2]), "2", "-0.25", "0"]
    told = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    assert told.startswith("limited to the commands of the training: 1.3 -0.25 0.0\nafter 10.0 s")
    (height,) = re.findall(r"height (\S+) m", told)
    assert float(height) > 0.25  # also at its largest speed


@pytest.mark.parametrize(
    ("training", "least", "most"),
    [
        pytest.param(
            {"commands": {"lin_vel_x": [0.5, 1.0], "lin_vel_y": [None, 0.5], "ang_vel_z": None}},
            [0.0, -9.0, -9.0],
            [1.0, 0.5, 9.0],
            id="some bounds",
        ),
        pytest.param(
            {"commands": {"lin_vel_x": [-1.0, -0.5]}},
            [-1.0, -9.0, -9.0],
            [0.0, 9.0, 9.0],
            id="one range",
        ),
        pytest.param({"commands": None}, [-9.0] * 3, [9.0] * 3, id="no commands"),
        pytest.param({}, [-9.0] * 3, [9.0] * 3, id="nothing of the training"),
        pytest.param(None, [-9.0] * 3, [9.0] * 3, id="no training"),
    ],
)
def test_the_loop_does_not_limit_by_unknown_ranges_and_always_allows_to_stop(
    training: dict[str, Any] | None, least: list[float], most: list[float], tmp_path: Path
) -> None:
    core = environment(GO2, (0.0, 0.0, 0.0))
    meaning = contract(GO2, core) | {"training": training}
    layer = torch.nn.Linear(core.group_sizes["policy"], core.actions.size).requires_grad_(False)
    core.close()
    save_onnx(tmp_path / "policy.onnx", layer, meaning)
    controller = deploy.Controller(str(tmp_path / "policy.onnx"))
    assert controller.limit_command([9.0, 9.0, 9.0]).tolist() == most
    assert controller.limit_command([-9.0, -9.0, -9.0]).tolist() == least
    assert controller.limit_command([0.0, 0.0, 0.0]).tolist() == [0.0, 0.0, 0.0]
    # A wrong command must not become the fastest one.
    assert np.isnan(controller.limit_command([np.nan] * 3)).all()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The loop in C++, compiled."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    program, home = tmp_path_factory.mktemp("cpp") / "deploy", mujoco.__path__[0]
    options = ["-std=c++17", "-I", f"{home}/include", f"-Wl,-rpath,{home}"]
    libraries = [str(path) for path in Path(home).glob("libmujoco.*")]
    source = str(ROOT / "examples" / "deploy.cpp")
    subprocess.run(
        [compiler, source, *options, *libraries, "-o", str(program)], check=True, timeout=120
    )
    return program


def test_the_loop_in_cpp_follows_a_gait_command_as_the_environment_does(
    program: Path, tmp_path: Path
) -> None:
    style = {"period": 0.4, "clearance": 0.08, "height": 0.28, "pitch": 0.1}
    core = environment(GAITS, (0.5, 0.0, 0.0))
    torch.manual_seed(0)
    layer = torch.nn.Linear(core.group_sizes["policy"], core.actions.size).requires_grad_(False)
    meaning = contract(GAITS, core)
    # Without what the robot feels, two simulations get the same targets however far they part.
    at, kept = 0, ("command", "action", "gait", "gait_style", "clock_sin", "clock_cos")
    for term in meaning["inputs"]["policy"]:
        if term["name"] not in kept:
            layer.weight[:, at : at + term["size"]] = 0.0
        at += term["size"]
    save_policy(tmp_path / "policy.safetensors", layer, meaning)
    (tmp_path / "scene.xml").write_text(scene_xml(core.cfg))
    core.reset(seed=0)
    term = core.commands.terms["gait"]
    term.stride_time = torch.zeros(1)
    term.hold_gait("pace", **style)
    core.commands.terms["velocity"].hold(torch.tensor([0.5, 0.0, 0.0]))
    observation, targets = core.observe_again(), []
    for _ in range(500):
        action = layer(observation).clamp(-core.actions.limit, core.actions.limit)
        targets.append(core.actions.terms["joint_position"].targets(action)[0].clone())
        observation = core.step(action)[0]
    core.close()
    table = tmp_path / "targets.csv"
    words = [str(program), str(tmp_path), "0.5", "0", "0", str(table), "gait=pace"]
    words += [f"{name}={value}" for name, value in style.items()]
    subprocess.run(words, check=True, timeout=60)
    expected = torch.stack(targets)
    assert expected.std(dim=0).min() > 0.01  # the gait moves every joint
    np.testing.assert_allclose(np.loadtxt(table, delimiter=",")[:500], expected, atol=1e-4)


def test_the_loop_in_cpp_keeps_commands_within_those_of_the_training(
    program: Path, folders: dict[str, Path], tmp_path: Path
) -> None:
    tables, told = [], []
    for vx in ("2", "1.3"):
        table = tmp_path / f"{vx}.csv"
        words = [str(program), str(folders[GO2]), vx, "-0.25", "0", str(table)]
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
        tables.append(table.read_text())
        told.append(done.stdout)
    assert tables[0] == tables[1]
    assert told[0] == "limited to the commands of the training: 1.3 -0.25 0\n" + told[1]


@pytest.mark.parametrize(
    ("training", "limited"),
    [
        ({"commands": {"lin_vel_x": [0.5, 1.0], "lin_vel_y": [None, 0.5]}}, "1 -9 9"),
        ({"commands": {"lin_vel_x": [-1.0, -0.5], "ang_vel_z": None}}, "0 -9 9"),
        ({"commands": None}, None),
        ({}, None),
        (None, None),
    ],
)
def test_the_loop_in_cpp_does_not_limit_by_unknown_ranges_and_always_allows_to_stop(
    training: dict[str, Any] | None, limited: str | None, program: Path, tmp_path: Path
) -> None:
    core = environment(GO2, (0.0, 0.0, 0.0))
    meaning = contract(GO2, core) | {"training": training}
    layer = torch.nn.Linear(core.group_sizes["policy"], core.actions.size).requires_grad_(False)
    (tmp_path / "scene.xml").write_text(scene_xml(core.cfg))
    core.close()
    save_policy(tmp_path / "policy.safetensors", layer, meaning)
    for command, expected in ((["9", "-9", "9"], limited), (["0", "0", "0"], None)):
        words = [str(program), str(tmp_path), *command]
        told = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
        line = "" if expected is None else f"limited to the commands of the training: {expected}\n"
        assert told.startswith(f"{line}after 10.0 s")


def test_the_loop_in_cpp_is_that_in_python(
    program: Path,
    folders: dict[str, Path],
    rough_folder: Path,
    scheme_folders: dict[str, Path],
    tmp_path: Path,
) -> None:
    cases = [(folders[task_id], command) for task_id, command in WALKS]
    cases.append((rough_folder, (0.6, 0.0, 0.0)))
    for name, changes in CHANGED.items():
        (folder := tmp_path / name.replace(" ", "_")).mkdir()
        write_changed(folder, G1 if "gait" in name else GO2, changes)
        cases.append((folder, (0.5, 0.0, 0.0)))
    (gaits := tmp_path / "gaits").mkdir()
    write_changed(gaits, GAITS, {})
    cases.append((gaits, (0.5, 0.0, 0.0)))
    for name in ("teacher and student", "LSTM", "GRU"):
        cases.append((scheme_folders[name], (0.5, 0.0, 0.0)))
    calm = [scheme_folders[name] for name in CALM_SCHEMES]
    for folder, command in cases:
        words = [str(program), str(folder), *map(str, command), str(tmp_path / "targets.csv")]
        told = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
        theirs = np.loadtxt(tmp_path / "targets.csv", delimiter=",")
        controller = deploy.Controller(str(folder / "policy.onnx"))
        robot, ours = deploy.Robot(str(folder / "scene.xml"), controller.about), []
        robot.data.qpos[robot.angles[0]] += 0.01  # as in the program
        # Of walks that may part later, half a second is compared.
        is_whole = folder in calm or folder in folders.values()
        while controller.time < 10.0 and (is_whole or len(ours) < 25):
            ours.append(controller(command, *robot.read()))
            robot.write(ours[-1])
        assert theirs.shape[1:] == ours[0].shape
        assert len(theirs) == len(ours) if is_whole else len(theirs) > len(ours)
        np.testing.assert_allclose(theirs[:25], ours[:25], atol=1e-3, err_msg=str(folder))
        if folder in calm:
            np.testing.assert_allclose(theirs, ours, atol=1e-4, err_msg=str(folder))
        if folder not in folders.values():
            continue
        places = [float(number) for number in re.findall(r"= (\S+) m", told)]
        np.testing.assert_allclose(places, robot.data.qpos[:2], atol=0.3)
    (cut := tmp_path / "cut").mkdir()
    for file in folders[GO2].iterdir():
        (cut / file.name).write_bytes(file.read_bytes())
    with (cut / "policy.safetensors").open("rb+") as file:
        file.truncate((cut / "policy.safetensors").stat().st_size - 4)
    (own := tmp_path / "own").mkdir()
    write_changed(own, GO2, {"observations.policy.terms.joint_pos.func": of_its_own})
    (mimic := tmp_path / "mimic").mkdir()
    (mimic / "policy.safetensors").write_bytes(SHIPPED[MIMIC].read_bytes())
    for words, code, message in (
        (f"{cut} 0 0 0", 1, "is not whole: there is no "),
        (f"{own} 0 0 0", 1, "this loop cannot observe joint_pos"),
        (f"{mimic} 0 0 0", 1, "this loop cannot observe command"),
        (f"{tmp_path} 0 0 0", 1, "is no safetensors file"),
        ("", 2, "usage: "),
        (f"{gaits} 0 0 0 gait=amble", 1, "gait must be within trot, pace, bound, pronk, got amble"),
        (f"{gaits} 0 0 0 period=2", 1, "period must be within "),
        (f"{gaits} 0 0 0 tail=1", 1, "the policy has no tail, only period, clearance, height"),
        (f"{folders[GO2]} 0 0 0 period=0.4", 1, "the policy has no period, only a velocity"),
        (f"{folders[GO2]} 0.5 fast 0", 1, "fast is no finite number"),
        (f"{folders[GO2]} 0.5 nan 0", 1, "nan is no finite number"),
        (f"{folders[GO2]} 0.5 0 0 {tmp_path}/nowhere/a.csv", 1, "nowhere/a.csv cannot be written"),
    ):
        told = subprocess.run(
            [str(program), *words.split()], capture_output=True, text=True, timeout=60
        )
        assert told.returncode == code and message in told.stderr and told.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            f"export {GO2} --folder full",
            "'full'",
        ),
        (
            f"export {GO2} --folder full/mine",
            "'full/mine'",
        ),
        ("export Legged/Go2-Nav-v0 --folder new", "'Legged/Go2-Nav-v0'"),
        (
            f"export {GO2} --folder new --policy old",
            "actuators",
        ),
        (f"export {GO2} --folder new --policy nowhere", "'nowhere'"),
        (
            "export Legged/Go2-Flat --folder new",
            f"'{GO2}'",
        ),
    ],
)
def test_a_mistake_of_export_is_one_line_and_nothing_is_written(
    words: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    (tmp_path / "old").mkdir()
    meaning = load_shipped_policy(GO2).contract
    layers = torch.nn.Linear(45, 12)
    earlier = {name: value for name, value in meaning.items() if name not in LATER_ENTRIES}
    save_policy(tmp_path / "old" / "policy.safetensors", layers, earlier)
    with pytest.raises(SystemExit) as stop:
        cli.main(words.split())
    told = capsys.readouterr().err
    assert stop.value.code == 2 and message in told and told.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_a_policy_whose_weights_do_not_fit_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meaning = load_shipped_policy(GO2).contract
    save_policy(tmp_path / "policy.safetensors", torch.nn.Linear(45, 11), meaning)
    with pytest.raises(SystemExit):
        cli.main(["export", GO2, "--policy", str(tmp_path), "--folder", str(tmp_path / "new")])
    assert "(2, 12)" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("task_id", ["Legged/Go2-Pair-v0", "Legged/Go2-Legs-v0"])
def test_a_task_of_several_agents_is_trained_and_exported_if_terms_move_it(
    task_id: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two robots of twelve joints, whose targets the task sets; and one, whose legs the action terms move."""
    monkeypatch.setattr(TaskMetrics, "EPISODE_SECONDS", 1.2)
    small = "--iterations 1 --num-envs 8 --episodes 2 --no-video --changes episode_length_s 0.1"
    cli.main(["train", task_id, "--run-dir", str(tmp_path / "run"), *small.split()])
    about = load_policy(tmp_path / "run").contract
    pair = task_id == "Legged/Go2-Pair-v0"
    assert about["action_size"] == (24 if pair else 12) and ("action_joints" in about) is not pair
    export = [
        "export",
        task_id,
        "--policy",
        str(tmp_path / "run"),
        "--folder",
        str(tmp_path / "new"),
    ]
    if not pair:
        cli.main(export)
        return
    capsys.readouterr()
    with pytest.raises(SystemExit):
        cli.main(export)
    assert "'Legged/Go2-Pair-v0'" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_half_precision_is_half_a_file_that_says_nearly_the_same(tmp_path: Path) -> None:
    cli.main(["export", GO2, "--half", "--folder", str(tmp_path)])
    file, shipped = tmp_path / "policy.safetensors", load_policy(SHIPPED[GO2])
    half, header = load_policy(file), read_evaluation(SHIPPED[GO2])
    assert half.contract == complete_contract(shipped.contract, make_task_cfg(GO2))
    assert read_evaluation(file) == header
    with safe_open(file, "pt") as weights:
        assert {weights.get_tensor(name).dtype for name in weights.keys()} == {torch.float16}  # noqa: SIM118
    observation = torch.randn(256, 45, generator=torch.Generator().manual_seed(0))
    expected = shipped(observation)
    assert half(observation).dtype == torch.float32
    torch.testing.assert_close(
        half(observation), expected, atol=4e-3 * float(expected.abs().max()), rtol=0.0
    )
    onnx = deploy.Controller(str(tmp_path / "policy.onnx")).network.run(
        None, {"obs": observation[:1].numpy()}
    )[0]
    np.testing.assert_allclose(
        onnx, half(observation[:1]), atol=1e-5
    )  # both files are of the same policy


def test_the_page_names_every_entry_of_every_contract_and_no_other() -> None:
    entries, terms = set(), set()
    # None with gaits ships.
    gaits = contract(GAITS, make_core(make_task_cfg(GAITS), 1))
    for meaning in (gaits, *(load_shipped_policy(task_id).contract for task_id in SHIPPED)):
        entries |= {
            *meaning,
            *(
                key
                for name in ("gait", "gait_command", "scan", "reference")
                for key in meaning.get(name, ())
            ),
        }
        for group in meaning["inputs"].values():
            entries |= {key for term in group for key in term}
            terms |= {term["name"] for term in group}
    tables = re.findall(r"^\| (`?\w+`?) \|.*\n\|---.*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    told = {
        head: set(re.findall(r"^\| `(\w+)` ", "".join(t for h, t in tables if h == head), re.M))
        for head, _ in tables
    }
    past = contract(
        GO2, make_core(override(make_task_cfg(GO2), {"observations.policy.history": 2}), 1)
    )
    motions = contract(MIMIC, make_core(make_task_cfg(MIMIC), 1))
    assert told["entry"] == entries | {*past["observation"][0]} | {*motions, MEMORY_KEY}
    assert told["`name`"] == terms
