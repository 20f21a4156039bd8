"""Policies in RoboGauge: the driver against `examples/deploy.py`, the reader on files of its runs, and the whole way.

RoboGauge itself is no part of the repository. A stand-in has the names of it that are used.
"""

from __future__ import annotations

import importlib.util
import runpy
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import onnx
import pytest
from rich.console import Console

from legged_envs.policy.export import export
from legged_envs.training.options import TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.scheme_options import CTSCfg, LSTMCfg
from legged_envs.training.trainer import Trainer
from tools.robogauge import __main__ as program
from tools.robogauge.cell import check_joint_order
from tools.robogauge.driver import Driver, Senses
from tools.robogauge.ground import Ground
from tools.robogauge.protocol import SUBSET, TERRAINS, WHOLE, cells_of
from tools.robogauge.robot import JOINT_ORDER, ContractRobot, command_limits
from tools.robogauge.table import make_table, read_summary

ROOT = Path(__file__).parents[1]
FLAT, ROUGH, G1 = "Legged/Go2-Flat-v0", "Legged/Go2-Rough-v0", "Legged/G1-Flat-v0"
SCHEMES = {"history": CTSCfg(encoder_hidden=(24,), history=4), "memory": LSTMCfg(memory=24)}
deploy = SimpleNamespace(**runpy.run_path(str(ROOT / "examples" / "deploy.py")))


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Exports a policy that ships, or one with a past that was hardly trained."""

    @cache
    def make(name: str) -> Path:
        folder = tmp_path_factory.mktemp("export")
        if name not in SCHEMES:
            export(name, None, folder)
            return folder
        run = tmp_path_factory.mktemp("run")
        algo = replace(SCHEMES[name], hidden=(16,), steps_per_env=4, epochs=1, mini_batches=2)
        cfg = TrainCfg(FLAT, num_envs=4, run_dir=run, iterations=1, video=False, algo=algo)
        trainer = Trainer(prepare(cfg), Console(quiet=True))
        trainer.iterate()
        trainer.export()
        trainer.env.env.close()
        export(FLAT, run / "policy.safetensors", folder)
        return folder

    return make


def robot_of(folder: Path, raw_commands: bool = False) -> ContractRobot:
    control = SimpleNamespace(model_path=str(folder / "policy.onnx"), raw_commands=raw_commands)
    return ContractRobot(SimpleNamespace(control=control))


def state_of(robot: Any, names: list[str]) -> SimpleNamespace:
    """Return RoboGauge's measurements for the robot of ``examples/deploy.py``."""
    quat, gyro, q, dq, _ = robot.read()
    order = [names.index(name) for name in JOINT_ORDER]
    joint = SimpleNamespace(pos=q[order], vel=dq[order])
    base = SimpleNamespace(pos=robot.data.qpos[:3])
    imu = SimpleNamespace(quat=quat, ang_vel=gyro)
    return SimpleNamespace(proprio=SimpleNamespace(joint=joint, base=base, imu=imu))


def goal_of(command: tuple[float, float, float]) -> SimpleNamespace:
    names = ("lin_vel_x", "lin_vel_y", "ang_vel_yaw")
    return SimpleNamespace(velocity_goal=SimpleNamespace(**dict(zip(names, command, strict=True))))


# --- the driver -------------------------------------------------------------------------------------------------------


def command_of(step: int) -> tuple[float, float, float]:
    return (0.8, 0.0, 0.4) if step < 12 else (-0.5, 0.2, 0.0)


@pytest.mark.parametrize("name", [G1, "history", "memory"])  # the G1 has a clock
def test_the_driver_observes_and_acts_as_the_deployment_loop(
    name: str, folder_of: Callable[[str], Path]
) -> None:
    path = folder_of(name) / "policy.onnx"
    driver = Driver(path)
    plant = deploy.Robot(str(folder_of(name) / "scene.xml"), driver.contract)
    for episode in range(2):  # the second must not remember the first
        mujoco.mj_resetDataKeyframe(plant.model, plant.data, 0)
        controller = deploy.Controller(str(path))
        driver.reset()
        for step in range(24):
            told = f"episode {episode}, step {step}"
            quat, gyro, q, dq, _ = plant.read()
            target = controller(command_of(step), quat, gyro, q, dq)
            ours = driver.act(Senses(np.array(command_of(step)), quat, gyro, q, dq))
            np.testing.assert_allclose(driver.observation, controller.observation, atol=1e-6)
            np.testing.assert_allclose(driver.action, controller.action, atol=1e-6, err_msg=told)
            np.testing.assert_allclose(ours, target, atol=1e-6, err_msg=told)
            plant.write(target)
    assert ("memory" in driver.contract) == (name == "memory")
    assert ("gait" in driver.contract) == (name == G1)


def test_a_robot_that_sees_the_ground_sends_the_targets_of_the_deployment_loop(
    folder_of: Callable[[str], Path],
) -> None:
    driven = robot_of(folder_of(ROUGH))
    controller = deploy.Controller(str(folder_of(ROUGH) / "policy.onnx"))
    names = controller.about["joint_names"]
    plant = deploy.Robot(str(folder_of(ROUGH) / "scene.xml"), controller.about)
    driven.see(SimpleNamespace(mj_model=plant.model, mj_data=plant.data))
    order = [names.index(joint) for joint in JOINT_ORDER]
    assert order != sorted(order)
    # On rough ground, in the part of the terrain that Ground knows.
    plant.data.qpos[:2] = 3.0, -13.0
    plant.data.qpos[2] = 0.35 + plant.ground(plant.data.qpos[None, :2], "height").item()
    mujoco.mj_forward(plant.model, plant.data)
    for step in range(24):
        senses = driven.build_observation(state_of(plant, names), goal_of(command_of(step)))
        target = controller(command_of(step), *plant.read())
        ours, kp, kd, kind = driven.get_action(senses)
        np.testing.assert_allclose(driven.driver.observation, controller.observation, atol=1e-6)
        np.testing.assert_allclose(ours, target[order], atol=1e-6, err_msg=f"step {step}")
        plant.write(target)
    assert np.ptp(senses.height_scan) > 0.05
    assert kind == "P"
    assert kp.tolist() == [controller.about["kp"][i] for i in order]
    assert kd.tolist() == [controller.about["kd"][i] for i in order]


def test_commands_are_limited_to_those_of_the_training_unless_raw_ones_are_asked_for(
    folder_of: Callable[[str], Path],
) -> None:
    folder = folder_of("history")
    plant = deploy.Robot(str(folder / "scene.xml"), Driver(folder / "policy.onnx").contract)
    for raw, told in ((True, (2.0, -1.5, 2.0)), (False, (1.0, -0.5, 1.0))):
        driven = robot_of(folder, raw)
        names = driven.driver.contract["joint_names"]
        senses = driven.build_observation(state_of(plant, names), goal_of((2.0, -1.5, 2.0)))
        assert senses.command.tolist() == pytest.approx(told)
    loop = deploy.Controller(str(folder / "policy.onnx"))
    for training in (loop.about["training"], {"commands": {"lin_vel_x": [0.5, None]}}, {}, None):
        loop.about["training"] = training
        np.testing.assert_equal(command_limits(loop.about), loop.command_limits())


def test_the_ground_is_the_top_of_boxes_and_not_the_robot() -> None:
    model = mujoco.MjModel.from_xml_string("""<mujoco><worldbody>
        <geom type="plane" size="0 0 .1"/>
        <geom type="box" pos="1 0 .1" size=".25 .25 .1"/>
        <body pos="0 0 3"><freejoint/><geom type="box" size=".3 .3 .1" group="3"/></body>
    </worldbody></mujoco>""")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    ground = Ground(model, data, 0.1)
    points = np.array([[0.01, 0.0], [0.99, 0.01], [0.73, 0.01], [0.91, 0.27]])
    assert ground(points, "lowest").tolist() == pytest.approx([0.0, 0.2, 0.0, 0.0])
    # Corners at x = 0.7 and at y = 0.3 are on the plane, those at x = 0.8 and y = 0.2 on the box.
    for lookup in ("bilinear", "height"):
        assert ground(points, lookup).tolist() == pytest.approx([0.0, 0.2, 0.06, 0.06], abs=1e-6)


# --- what cannot be driven --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task_id", "named"),
    [
        ("Legged/G1-Flat-v0", "Legged/G1-Flat-v0"),
        ("Legged/Go2-Mimic-v0", "reference, reference_mask"),
        ("Legged/Tron1-WF-Flat-v0", "velocity"),
        ("Legged/Nothing-v0", "Legged/Nothing-v0"),
    ],
)
def test_a_policy_that_robogauge_cannot_drive_is_named(
    task_id: str, named: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=named):
        program.find_policy(task_id, tmp_path)


def test_what_is_missing_is_named_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(FileNotFoundError, match="git clone"):
        program.check_checkout(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"policy\.onnx"):
        program.find_policy(str(tmp_path), tmp_path)
    # Isolated and without site-packages, an interpreter has the standard library alone.
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(ValueError, match=r"bare' has no dm_control, imageio, .*pip install"):
        program.check_packages(str(bare))
    with pytest.raises(ValueError, match="no-python"):
        program.check_packages(str(tmp_path / "no-python"))
    for words, named in ((["--processes", "0"], "0"), (["--out", "nowhere/scores.md"], "nowhere")):
        with pytest.raises(SystemExit):
            program.read_options(["RoboGauge", "--policy", FLAT, *words])
        assert named in capsys.readouterr().err


# --- the table --------------------------------------------------------------------------------------------------------

# From runs of RoboGauge (commit 2aaa7ad) with two policies, without the metrics that are not read.
STAIRS = """
model_path: policy.onnx
benchmark_score: 0.1284
scores:
  stairs_bd: 0.1284
  benchmark: 0.1284
stairs_bd_2_baseMass0.0_friction0.6:
  success:
    Seed_0_BaseMass_0.0_Friction_0.6: true
    Seed_1_BaseMass_0.0_Friction_0.6: true
  terrain_name: stairs_bd
  terrain_level: 2
  summary:
    quality_score:
      mean: 0.4107 ± 0.0124
      mean@50: 0.2021 ± 0.0106
    terrain_quality_score:
      mean: 0.1680 ± 0.0124
      mean@50: 0.1284 ± 0.0106
cpu_time_s: 101.2
"""
FLAT_GROUND = """
scores:
  flat: 0.3838
flat_None_baseMass0.0_friction0.6:
  terrain_level: 0
  summary:
    quality_score:
      mean@50: 0.3838 ± 0.0461
    terrain_quality_score:
      mean: 0.5809 ± 0.0282
      mean@50: 0.3838 ± 0.0461
"""
NO_LEVEL = "scores:\n  obstacle: 0.0\nobstacle_0_baseMass-1.0_friction0.2: null\n"


def test_cells_are_read_with_their_level_and_conditions(tmp_path: Path) -> None:
    rows = []
    for name, text in (("stairs", STAIRS), ("flat", FLAT_GROUND), ("none", NO_LEVEL)):
        (tmp_path / name).write_text(text, encoding="utf-8")
        rows += read_summary(tmp_path / name)
    found = [(row.terrain, row.level, row.payload, row.friction, row.score) for row in rows]
    assert found == [
        ("stairs_bd", 2, 0.0, 0.6, 0.1284),
        ("flat", None, 0.0, 0.6, 0.3838),
        ("obstacle", 0, -1.0, 0.2, 0.0),
    ]
    (tmp_path / "empty").write_text("scores: {}\n")
    with pytest.raises(ValueError, match="empty"):
        read_summary(tmp_path / "empty")


def test_the_score_is_the_mean_of_the_terrains_and_needs_all_of_them(tmp_path: Path) -> None:
    rows = []
    for number, terrain in enumerate(TERRAINS):
        level = "None" if terrain == "flat" else str(number)
        for friction, score in ((0.2, 0.1), (0.6, 0.1 + 0.1 * number)):
            rows.append(
                f"{terrain}_{level}_baseMass0.0_friction{friction}:\n  summary:\n"
                f"    terrain_quality_score:\n      mean@50: {score:.4f} ± 0.0100\n"
            )
    (tmp_path / "all").write_text("".join(rows), encoding="utf-8")
    scored = read_summary(tmp_path / "all")
    # Terrain n has the scores 0.1 and 0.1 + n / 10, and level n.
    last = make_table("policy", scored).splitlines()[-1]
    assert last.startswith("| policy | **0.250** | 3.50 | 0.100 | 0.150 L1.0 |"), last
    last = make_table("policy", scored[2:]).splitlines()[-1]
    assert last.startswith("| policy | – | – | – | 0.150 L1.0 |"), last


def test_protocols_have_the_cells_of_robogauges_documentation() -> None:
    assert len(cells_of(SUBSET, TERRAINS)) == 7
    assert len(cells_of(WHOLE, TERRAINS)) == 63


# --- the whole way ----------------------------------------------------------------------------------------------------

STAND_IN = {
    "robogauge/__init__.py": "ROBOGAUGE_LOGS_DIR = None\n",
    "robogauge/utils/__init__.py": "",
    "robogauge/utils/helpers.py": """
import argparse
from pathlib import Path
def parse_path(path):
    return str(Path(__file__).parents[2] / path)
def parse_args(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("--stress-benchmark", action="store_true")
    parser.add_argument("--headless", action="store_true")
    for name in ("--task-name", "--model-path", "--num-processes"):
        parser.add_argument(name)
    for name in ("--stress-terrain-names", "--frictions", "--base-masses", "--seeds", "--search-seeds"):
        parser.add_argument(name, nargs="+")
    return parser.parse_args(words)
""",
    "robogauge/utils/task_register.py": """
class Register:
    def __init__(self):
        self.pipelines, self.robot_cfgs, self.sim_cfgs, self.gauger_cfgs = {}, {}, {}, {}
    def register(self, name, pipeline, sim_cfg, gauger_cfg, robot_cfg):
        self.pipelines[name], self.robot_cfgs[name] = pipeline, robot_cfg
        self.sim_cfgs[name], self.gauger_cfgs[name] = sim_cfg, gauger_cfg
task_register = Register()
""",
    "robogauge/tasks/__init__.py": """
from types import SimpleNamespace
from robogauge.utils.task_register import task_register
from robogauge.tasks.pipeline.base_pipeline import BasePipeline
class Go2:
    def __init__(self):
        self.assets, self.control = SimpleNamespace(robot_xml="go2.xml"), SimpleNamespace()
for terrain in ("flat", "stairs_fd"):
    task_register.register(f"go2.{terrain}", BasePipeline, dict, dict, Go2)
    task_register.register(f"other.{terrain}", BasePipeline, dict, dict, None)
""",
    "robogauge/tasks/pipeline/__init__.py": """
from robogauge.tasks.pipeline.stress_pipeline import StressPipeline
""",
    "robogauge/tasks/pipeline/base_pipeline.py": """
from types import SimpleNamespace
import numpy as np
class BasePipeline:
    def __init__(self, run_name, sim_cfg, robot_cfg, gauger_cfg, args):
        control = robot_cfg.control
        control.model_path = args.model_path
        self.pose, self.sim, self.robot = control.default_dof_pos, None, eval(robot_cfg.robot_class)(robot_cfg)
    def run(self):
        imu = SimpleNamespace(quat=np.array([1.0, 0.0, 0.0, 0.0]), ang_vel=np.zeros(3))
        joint = SimpleNamespace(pos=np.array(self.pose), vel=np.zeros(12))
        proprio = SimpleNamespace(imu=imu, joint=joint, base=SimpleNamespace(pos=np.zeros(3)))
        goal = SimpleNamespace(lin_vel_x=1.0, lin_vel_y=0.0, ang_vel_yaw=0.0)
        seen = self.robot.build_observation(
            SimpleNamespace(proprio=proprio), SimpleNamespace(velocity_goal=goal)
        )
        return self.robot.get_action(seen)[0]
""",
    "robogauge/tasks/pipeline/stress_pipeline.py": """
from robogauge.utils.task_register import task_register
class StressPipeline:
    def __init__(self, args):
        self.args = args
    def run(self):
        [terrain], [friction] = self.args.stress_terrain_names, self.args.frictions
        name = f"{self.args.task_name}.{terrain}"
        cfg = task_register.robot_cfgs[name]()
        target = task_register.pipelines[name]("run", {}, cfg, {}, self.args).run()
        if friction == "0.9":
            return None
        score = {"mean@50": f"{target[2]:.4f} ± 0.0000"}
        key = f"{terrain}_None_baseMass{self.args.base_masses[0]}_friction{friction}"
        return {"scores": {}, key: {"summary": {"terrain_quality_score": score}}}
""",
}
"""A stand-in for RoboGauge that returns the first target of the front left calf as its score."""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in, and packages of the names that are looked for."""
    folder = tmp_path / "RoboGauge"
    for name, text in STAND_IN.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    sensors = "".join(f'<jointpos joint="{name}"/>' for name in JOINT_ORDER)
    (folder / "go2.xml").write_text(f"<mujoco><sensor>{sensors}</sensor></mujoco>")
    for name in program.MODULES:
        # A stand-in would hide a package that is here; dm_control may be here and not fit.
        if name != "dm_control" and importlib.util.find_spec(name) is not None:
            continue
        (tmp_path / "packages" / name).mkdir(parents=True)
        (tmp_path / "packages" / name / "__init__.py").write_text("")
    (tmp_path / "packages" / "dm_control" / "mjcf.py").write_text(
        "from types import SimpleNamespace\nRootElement = dict\n"
        "Physics = SimpleNamespace(from_mjcf_model=str)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    return folder


def test_cells_run_in_processes_and_are_not_run_again(
    checkout: Path,
    folder_of: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [str(checkout), "--policy", str(folder_of("history")), "--terrains", "flat"]
    words += ["--folder", str(tmp_path / "cells"), "--out", str(tmp_path / "scores.md")]
    monkeypatch.setattr(sys, "argv", ["robogauge", *words])
    program.main()
    controller = deploy.Controller(str(folder_of("history") / "policy.onnx"))
    about = controller.about
    target = controller(
        (1.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), np.zeros(3), controller.default, np.zeros(12)
    )[about["joint_names"].index("FL_calf_joint")]
    assert f"| {target:.3f} |" in (tmp_path / "scores.md").read_text()
    assert "flat_friction0.6_payload0: " in capsys.readouterr().out
    # A second time nothing runs, also without RoboGauge's program.
    (checkout / "robogauge" / "__init__.py").write_text("raise SystemExit(1)\n")
    program.main()
    assert f"| {target:.3f} |" in capsys.readouterr().out
    # Results of one policy are not those of another.
    monkeypatch.setattr(sys, "argv", ["robogauge", *words, "--policy", str(folder_of("memory"))])
    with pytest.raises(SystemExit, match="cells"):
        program.main()


def test_a_cell_without_a_result_is_named(
    checkout: Path,
    folder_of: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(program, "SUBSET", replace(SUBSET, frictions=(0.9,)))
    options = program.read_options(
        [
            *(str(checkout), "--policy", str(folder_of("history")), "--terrains", "flat"),
            *("--folder", str(tmp_path / "cells")),
        ]
    )
    with pytest.raises(RuntimeError, match=r"flat_friction0\.9_payload0"):
        program.evaluate(options)
    assert not list((tmp_path / "cells").glob("*.yaml"))


def test_versions_that_do_not_fit_are_named(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "packages" / "dm_control" / "mjcf.py").write_text(
        "class Physics:\n    def from_mjcf_model(root): raise AttributeError('flex_vertedge')\n"
        "RootElement = dict\n"
    )
    with pytest.raises(ValueError, match="flex_vertedge"):
        program.check_packages(sys.executable)


def test_a_robot_with_other_joints_is_refused(checkout: Path) -> None:
    text = (checkout / "go2.xml").read_text()
    (checkout / "go2.xml").write_text(text.replace("FL_hip", "LF_hip"))
    with pytest.raises(SystemExit, match="LF_hip_joint"):
        check_joint_order(checkout / "go2.xml")


def test_a_file_without_a_contract_is_named(
    folder_of: Callable[[str], Path], tmp_path: Path
) -> None:
    model = onnx.load(str(folder_of("memory") / "policy.onnx"))
    del model.metadata_props[:]
    onnx.save(model, str(tmp_path / "policy.onnx"))
    with pytest.raises(ValueError, match="no contract"):
        Driver(tmp_path / "policy.onnx")
