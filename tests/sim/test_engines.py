"""Engines: found by name, held to the conformance tests, and compared by the same policy."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from legged_envs import cli
from legged_envs.conformance import test_engine as tests
from legged_envs.conformance.conftest import begin
from legged_envs.envs import LeggedVectorEnv
from legged_envs.envs.cfg import override
from legged_envs.evaluation import bench
from legged_envs.evaluation.crosscheck import PLAIN, Policy, compare, crosscheck, installed_engines
from legged_envs.evaluation.crosscheck_options import CrosscheckCfg
from legged_envs.evaluation.plain_loop import PlainLoop
from legged_envs.policy.metadata import contract
from legged_envs.policy.policy import load_shipped_policy, save_onnx
from legged_envs.robots import GO2 as ROBOT
from legged_envs.robots import RobotCfg
from legged_envs.sim import SimCfg, Simulation, make_simulation
from legged_envs.sim.engines import ENGINES, find_engine, known_engines
from legged_envs.sim.mujoco_cpu import MujocoSimulation
from legged_envs.tasks import make_task_cfg

GO2, G1 = "Legged/Go2-Flat-v0", "Legged/G1-Flat-v0"


@pytest.fixture
def conform(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """``conform(engine, test)`` runs one of the conformance tests on an engine."""
    made: list[Simulation] = []

    def run(engine: type[Simulation], test: Callable[..., None], **arguments: Any) -> None:
        monkeypatch.setitem(ENGINES, "mine", engine)

        def make(num_envs: int, reference: bool = False) -> Simulation:
            name = "mujoco" if reference else "mine"
            made.append(make_simulation(name, ROBOT, SimCfg(num_threads=1), num_envs, "cpu"))
            begin(made[-1])
            return made[-1]

        test(make, **arguments)

    yield run
    for sim in made:
        sim.close()


class Moon(MujocoSimulation):
    def step(self, num_steps: int) -> None:
        self.batch.expand("opt.gravity")[:, 2] = -1.6
        super().step(num_steps)


class Slippery(MujocoSimulation):
    """Whoever sets a friction gets half of it."""

    def _write_parameter(self, name: str, values: torch.Tensor, env_ids: torch.Tensor) -> None:
        super()._write_parameter(name, values * (0.5 if name == "friction" else 1.0), env_ids)


class AllAtOnce(MujocoSimulation):
    def reset(self, env_ids: torch.Tensor) -> None:
        super().reset(torch.arange(self.num_envs))


class ForgetsParameters(MujocoSimulation):
    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state({**state, "parameters": self.get_state()["parameters"]})


class Blind(MujocoSimulation):
    def diverged(self) -> None:
        return None


class ForAll(MujocoSimulation):
    """A parameter is that of all environments."""

    def _write_parameter(self, name: str, values: torch.Tensor, env_ids: torch.Tensor) -> None:
        super()._write_parameter(
            name, values[:1].expand(self.num_envs, *values.shape[1:]), torch.arange(self.num_envs)
        )


class LeftHanded(MujocoSimulation):
    """Writes the quaternion as (x, y, z, w)."""

    def _read_quantity(self, name: str) -> torch.Tensor:
        value = super()._read_quantity(name)
        return value.roll(-1, dims=1) if name == "root_quat_w" else value


@pytest.mark.parametrize(
    ("engine", "test", "arguments"),
    [
        (Moon, tests.test_a_robot_in_the_air_falls_freely, {}),
        (Moon, tests.test_a_robot_that_stands_weighs_what_its_bodies_do, {}),
        (Slippery, tests.test_a_robot_slides_as_far_as_its_friction_lets_it, {"seconds": 0.3}),
        (ForAll, tests.test_every_parameter_acts_in_its_environment_alone_as_on_the_cpu_engine, {}),
        (AllAtOnce, tests.test_a_partial_reset_leaves_the_others_alone, {}),
        (
            ForgetsParameters,
            tests.test_a_state_is_exact_with_its_parameters_and_one_of_another_simulation_refused,
            {},
        ),
        (Blind, tests.test_an_environment_that_diverges_is_told_and_begins_anew, {}),
        (LeftHanded, tests.test_a_robot_tumbles_as_on_the_cpu_engine, {}),
    ],
)
def test_an_engine_that_breaks_a_promise_fails_the_conformance_tests(
    engine, test, arguments, conform, log_elsewhere
):
    conform(MujocoSimulation, test, **arguments)
    with pytest.raises(AssertionError):
        conform(engine, test, **arguments)


def test_the_conformance_tests_take_the_name_of_an_engine(tmp_path):
    words = [
        "-p",
        "legged_envs.conformance.options",
        "-p",
        "no:cacheprovider",
        "--pyargs",
        "legged_envs.conformance",
    ]
    command = [sys.executable, "-m", "pytest", "-q", *words, "--sim", "mujoco"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and "14 passed" in done.stdout, done.stdout


@pytest.fixture
def other_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with three engines; one needs a module that is not there, of one the name is wrong."""
    code = "from legged_envs.sim.mujoco_cpu import MujocoSimulation\n\n\nclass Mine(MujocoSimulation):\n    pass\n"
    (tmp_path / "my_engine.py").write_text(code)
    (tmp_path / "my_other_engine.py").write_text("import nothing_of_that_name\n")
    info = tmp_path / "my_engine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-engine\nVersion: 1.0\n")
    entries = "mine = my_engine:Mine\nbroken = my_other_engine:Other\nmujoco = my_engine:Mine\nwrong = my_engine:Min\n"
    (info / "entry_points.txt").write_text(f"[legged_envs.engines]\n{entries}")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_engine", raising=False)


def test_an_engine_of_another_package_is_found_by_its_entry_point(other_package, make_vec):
    envs = make_vec(2, sim="mine")
    assert type(envs.unwrapped.sim).__name__ == "Mine"
    assert type(make_vec(2).unwrapped.sim) is MujocoSimulation  # nobody replaces this package's own
    assert list(known_engines())[:2] == ["mujoco", "mujoco_warp"] and {"mine", "broken"} <= {
        *known_engines()
    }
    assert "mine" in installed_engines() and not {"broken", "wrong"} & {*installed_engines()}
    with pytest.raises(
        ImportError,
        match=r"sim='wrong' cannot be imported from 'my_engine:Min': .*no attribute 'Min'",
    ):
        find_engine("wrong")
    with pytest.raises(
        ModuleNotFoundError, match=r"sim='broken' is not installed: .*nothing_of_that_name"
    ):
        find_engine("broken")
    with pytest.raises(
        ValueError, match=r"sim='mein'; available: 'mujoco', 'mujoco_warp', .*'mine'"
    ):
        make_vec(2, sim="mein")


def test_an_engine_that_has_only_planes_refuses_terrain(monkeypatch, make_vec):
    class OnPlanes(MujocoSimulation):
        def __init__(self, robot: RobotCfg, cfg: SimCfg, num_envs: int, device: torch.device):
            super().__init__(robot, cfg, num_envs, device)

    monkeypatch.setitem(ENGINES, "mine", OnPlanes)
    make_vec(2, sim="mine")
    with pytest.raises(
        ValueError,
        match="sim='mine' has one robot on a plane: SceneCfg must be as it is, got terrain",
    ):
        make_vec(2, "Legged/Go2-Rough-v0", sim="mine")


def test_an_engine_that_is_not_installed_names_its_extra(monkeypatch, make_vec, capsys):
    monkeypatch.setitem(sys.modules, "mujoco_warp", None)
    monkeypatch.delitem(sys.modules, "legged_envs.sim.mujoco_warp", raising=False)
    with pytest.raises(
        ModuleNotFoundError, match=r"sim='mujoco_warp' is not installed: .*'legged-envs\[warp\]'"
    ):
        make_vec(2, sim="mujoco_warp")
    assert "mujoco_warp" not in installed_engines()
    with pytest.raises(SystemExit) as stop:
        cli.main(["crosscheck", GO2, "--sims", "mujoco_warp"])
    assert stop.value.code == 2 and "pip install 'legged-envs[warp]'" in capsys.readouterr().err


def test_a_step_is_measured_beside_the_engine_alone(tmp_path, monkeypatch, capsys):
    steps: list[int] = []

    class Counted(MujocoSimulation):
        def step(self, num_steps: int) -> None:
            steps.append(num_steps)
            super().step(num_steps)

    monkeypatch.setitem(ENGINES, "mine", Counted)
    numbers = tmp_path / "bench.json"
    cli.main(f"bench {GO2} --sim mine --sizes 4 --rounds 1 --json {numbers}".split())
    assert f"{GO2}, mine, cpu" in capsys.readouterr().out
    report = json.loads(numbers.read_text())
    [row] = report["sizes"]
    assert (
        steps == [4] * (2 * 2 * bench.MAX_STEPS)
        and report["sim"] == "mine"
        and row["num_envs"] == 4
    )
    assert row["ratio"] > 0.5 and row["ratio"] == pytest.approx(row["env_ms"] / row["batch_ms"])
    with pytest.raises(SystemExit):
        cli.main(f"bench {GO2} --sim mine --sizes 0".split())
    assert "--sizes must be a positive integer, got 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    "verb", ["train {} --num-envs 2 --iterations 1", "eval {} --episodes 1", "bench {} --sizes 2"]
)
def test_verbs_refuse_an_engine_that_cannot_be_before_they_write(
    verb, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "mujoco_warp", None)
    monkeypatch.delitem(sys.modules, "legged_envs.sim.mujoco_warp", raising=False)
    for options, message in (
        ("--sim mujoco_warp", "pip install 'legged-envs[warp]'"),
        ("--sim bullet", "unknown simulation engine sim='bullet'; available: 'mujoco', "),
        ("--device cuda:9", "sim='mujoco' runs on device='cpu', got device='cuda:9'"),
    ):
        with pytest.raises(SystemExit) as stop:
            cli.main([*verb.format(GO2).split(), *options.split()])
        assert stop.value.code == 2 and message in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


def test_a_policy_is_trained_and_evaluated_on_the_engine_that_is_named(tmp_path, monkeypatch):
    made: list[int] = []

    class Mine(MujocoSimulation):
        def __init__(self, robot: RobotCfg, cfg: SimCfg, num_envs: int, device: torch.device):
            super().__init__(robot, cfg, num_envs, device)
            made.append(num_envs)

    monkeypatch.setitem(ENGINES, "mine", Mine)
    monkeypatch.setattr("legged_envs.evaluation.metrics.task.TaskMetrics.EPISODE_SECONDS", 1.2)
    run, numbers = tmp_path / "run", tmp_path / "eval.json"
    few = f"--num-envs 4 --episodes 3 --no-video --run-dir {run} ppo --steps-per-env 4"
    cli.main(f"train {GO2} --sim mine --iterations 1 {few}".split())
    assert made == [4, 3] and '"sim": "mine"' in (run / "config.json").read_text()
    cli.main(f"eval {GO2} --sim mine --policy {run} --episodes 5 --json {numbers}".split())
    assert made == [4, 3, 5] and json.loads(numbers.read_text())["sim"] == "mine"
    with pytest.raises(SystemExit):
        cli.main(f"eval {GO2} --sim mine --policy {run} --record".split())


# --- crosscheck -------------------------------------------------------------------------------------------------------


def untrained(task_id: str) -> Policy:
    core = LeggedVectorEnv(make_task_cfg(task_id), 1)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(core.group_sizes["policy"], core.actions.size), nn.Tanh())
    return Policy(network, contract(task_id, core))


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Policy, Path]]:
    """``exported(task_id, **changes)``: a policy, and its ONNX file with entries of the contract changed."""

    def export(task_id: str, **changes: Any) -> tuple[Policy, Path]:
        policy = untrained(task_id) if task_id == G1 else load_shipped_policy(task_id)
        path = tmp_path_factory.mktemp("onnx") / "policy.onnx"
        save_onnx(path, policy, {"inputs": policy.inputs, **policy.contract, **changes})
        return policy, path

    return export


@pytest.mark.parametrize("task_id", [GO2, G1, "Legged/Tron1-WF-Flat-v0"])
def test_a_plain_loop_walks_as_the_environment_by_the_contract_alone(task_id, exported):
    options = CrosscheckCfg(task_id, sims=("mujoco",), robots=2, seconds=0.6)
    runs, remark = crosscheck(options, make_task_cfg(task_id), *exported(task_id))
    np.testing.assert_allclose(runs[PLAIN]["root"], runs["mujoco"]["root"], atol=1e-5)
    np.testing.assert_allclose(runs[PLAIN]["joints"], runs["mujoco"]["joints"], atol=1e-4)
    np.testing.assert_allclose(runs[PLAIN]["torque"], runs["mujoco"]["torque"], atol=0.05)
    for name in ("lin_vel", "gravity", "height", "twist"):
        np.testing.assert_allclose(runs[PLAIN][name], runs["mujoco"][name], atol=1e-3, err_msg=name)
    assert (runs[PLAIN]["contact"] == runs["mujoco"]["contact"]).all()
    assert float(remark.split(" is off by ")[1].split()[0]) < 1e-5


def test_sensors_that_are_late_in_training_are_not_in_a_crosscheck(exported):
    cfg = override(make_task_cfg(GO2), {"observations.policy.terms.joint_pos.delay": 2})
    options = CrosscheckCfg(GO2, sims=("mujoco",), robots=2, seconds=0.6)
    runs, _ = crosscheck(options, cfg, *exported(GO2))
    np.testing.assert_allclose(runs[PLAIN]["root"], runs["mujoco"]["root"], atol=1e-5)


@pytest.mark.parametrize(
    "change",
    [
        {"kp": [20.0] * 12},
        {"default_joint_pos": [0.1, 0.9, -1.6] * 4},
        {"action_scale": [0.3] * 12},
        {"joint_names": [*ROBOT.joint_names[3:6], *ROBOT.joint_names[:3], *ROBOT.joint_names[6:]]},
        {"torque_limits": [8.0] * 12},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_contract_that_says_something_else_parts_the_runs(change, exported):
    options = CrosscheckCfg(GO2, sims=("mujoco",), robots=2, seconds=0.6)
    runs, _ = crosscheck(options, make_task_cfg(GO2), *exported(GO2, **change))
    numbers = compare(runs, ROBOT, 0.02)
    assert numbers[PLAIN]["parted"] == 1.0 and numbers[PLAIN]["parts_after"] < 0.6
    assert numbers["mujoco"]["parted"] == 0.0 and numbers["mujoco"]["where"] == ""


def test_what_a_plain_loop_cannot_observe_is_told(exported):
    policy, path = exported("Legged/Go2-Rough-v0")
    with pytest.raises(
        ValueError, match="it observes 'height_scan', and this loop knows command, gravity"
    ):
        PlainLoop(path, ROBOT, SimCfg())
    bare, other = onnx.load(str(exported(GO2)[1])), path.with_name("bare.onnx")
    del bare.metadata_props[:]
    onnx.save(bare, str(other))
    with pytest.raises(
        ValueError,
        match=r"bare.onnx' has no contract of this version in its metadata: no 'joint_names'",
    ):
        PlainLoop(other, ROBOT, SimCfg())
    terms = [
        dict(term, size=6) if term["name"] == "gravity" else term
        for term in policy.inputs["policy"]
    ]
    loop = PlainLoop(exported(GO2, observation=terms[:6])[1], ROBOT, SimCfg())
    pose = np.array([[0.0, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0]])
    state = {
        "root": pose,
        "twist": np.zeros((1, 6)),
        "joints": loop.default[None],
        "joint_vel": np.zeros((1, 12)),
    }
    loop.start(state, np.zeros((1, 3)), np.zeros(1))
    with pytest.raises(ValueError, match="'gravity' has 6 numbers in the contract, and 3"):
        loop.observe()


def recording(steps: int = 100, robots: int = 2) -> dict[str, Any]:
    """Robots that stand still, their command (1, 0, 0.5)."""
    root, gravity = np.zeros((steps, robots, 7)), np.zeros((steps, robots, 3))
    root[..., 2], gravity[..., 2] = ROBOT.base_height, -1.0
    run = {
        "root": root,
        "twist": np.zeros((steps, robots, 6)),
        "lin_vel": np.zeros((steps, robots, 3)),
    }
    run |= {
        "gravity": gravity,
        "height": root[..., 2],
        "contact": np.ones((steps, robots, 4), dtype=bool),
    }
    run |= {"joints": np.zeros((steps, robots, 12)), "torque": np.full((steps, robots, 12), 3.0)}
    return run | {"command": np.tile((1.0, 0.0, 0.5), (robots, 1))}


def test_runs_are_compared_in_numbers_that_can_be_worked_out():
    first, other = recording(), recording()
    other["lin_vel"][..., 0], other["twist"][..., 5] = 0.6, 0.4
    other["joints"][70:, 1, 4] = 0.2
    other["contact"][60:, :, :2] = False
    other["torque"] *= 2.0
    other["gravity"][80:, 0] = (1.0, 0.0, 0.0)
    still, moved = compare({"a": first, "b": other}, ROBOT, 0.02).values()
    assert (
        still["lin_vel_error"],
        still["ang_vel_error"],
        still["falls"],
        still["torque_rms"],
    ) == (1.0, 0.5, 0.0, 3.0)
    np.testing.assert_allclose((moved["lin_vel_error"], moved["ang_vel_error"]), (0.4, 0.1))
    assert (moved["falls"], moved["torque_rms"], moved["parted"]) == (0.5, 6.0, 0.5)
    np.testing.assert_allclose(moved["parts_after"], 71 * 0.02)
    assert moved["where"].startswith(f"robot 1, {ROBOT.joint_names[4]};")
    # From step 50 on, 30 steps of the robot that falls and 50 of the other; half of the feet are up from step 60 on.
    np.testing.assert_allclose(moved["same_contact"], 1.0 - 0.5 * (20 + 40) / 80)
    np.testing.assert_allclose(moved["duty_factor"], moved["same_contact"])
    other["joints"][30:, 0] = np.nan
    _, lost = compare({"a": first, "b": other}, ROBOT, 0.02).values()
    assert lost["parted"] == 1.0 and lost["parts_after"] == pytest.approx(31 * 0.02)


def test_crosscheck_prints_draws_and_writes(tmp_path, monkeypatch, capsys):
    class SoftKnees(MujocoSimulation):
        def step(self, num_steps: int) -> None:
            self.batch.expand("actuator_gainprm")[:, :, 0] = 30.0
            super().step(num_steps)

    monkeypatch.setitem(ENGINES, "soft", SoftKnees)
    picture, numbers = tmp_path / "new" / "runs.png", tmp_path / "runs.json"
    words = f"crosscheck {GO2} --sims mujoco soft --robots 2 --seconds 1.4 --picture {picture} --json {numbers}"
    cli.main(words.split())
    told = capsys.readouterr().out
    assert picture.stat().st_size > 10_000 and str(picture) in told.replace("\n", "")
    report = json.loads(numbers.read_text())
    assert list(report["runs"]) == ["mujoco", "soft", PLAIN] and report["robots"] == 2
    assert report["runs"][PLAIN]["parted"] == 0.0 and report["runs"]["soft"]["parted"] == 1.0
    assert (
        report["runs"]["mujoco"]["same_contact"] == 1.0 and report["runs"]["mujoco"]["falls"] == 0.0
    )
    for word in ("lin vel error", "torque rms", "duty factor", "parts after", "soft", PLAIN):
        assert word in told, word


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (f"{GO2} --robots 0", "--robots must be a positive integer, got 0"),
        (
            f"{GO2} --seconds 0.5",
            "--seconds must be a finite number above 1 and at most 3600, got 0.5",
        ),
        (
            f"{GO2} --seconds 1.005",
            "--seconds must be at least 1.02, a control step more than is left out, got 1.005",
        ),
        (
            f"{GO2} --seconds 1e12",
            "--seconds must be a finite number above 1 and at most 3600, got 10000",
        ),
        (
            f"{GO2} --picture runs.jpg",
            r"the ending of --picture must be one of \('.png',\), got '.jpg'",
        ),
        (f"{GO2} --policy nowhere", "there is no policy file 'nowhere'"),
        (
            f"{GO2} --sims bullet",
            "unknown simulation engine sim='bullet'; available: 'mujoco', 'mujoco_warp'",
        ),
        (f"{GO2} --device toaster", "unknown device 'toaster'"),
        (
            "Legged/Go2-Mimic-v0",
            "crosscheck is for velocity commands and tasks of terms, got 'Legged/Go2-Mimic-v0'",
        ),
        (f"{GO2} --seed -1", "--seed must be an integer of at least 0"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(
    words, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        cli.main(["crosscheck", *words.split()])
    assert stop.value.code == 2
    assert re.search(message, capsys.readouterr().err)
    assert not [*tmp_path.iterdir()]


def test_the_file_of_a_run_is_the_one_that_is_checked(tmp_path, exported, capsys):
    """Not what this package would export today."""
    _, path = exported(GO2, action_scale=[0.1] * 12)
    entries = {entry.key: entry.value for entry in onnx.load(str(path)).metadata_props}
    assert json.loads(entries["action_scale"]) == [0.1] * 12
    run = tmp_path / "run"
    run.mkdir()
    (run / "policy.onnx").write_bytes(path.read_bytes())
    shipped = Path(cli.__file__).parent / "policies" / "go2_flat.safetensors"
    (run / "policy.safetensors").write_bytes(shipped.read_bytes())
    numbers = tmp_path / "runs.json"
    words = f"crosscheck {GO2} --policy {run} --sims mujoco --robots 1 --seconds 1.1"
    cli.main([*words.split(), "--picture", str(tmp_path / "a.png"), "--json", str(numbers)])
    assert json.loads(numbers.read_text())["runs"][PLAIN]["parted"] == 1.0
    (run / "policy.safetensors").rename(
        run / "other.safetensors"
    )  # of which policy.onnx is not the file
    words = words.replace(str(run), f"{run}/other.safetensors")
    cli.main([*words.split(), "--picture", str(tmp_path / "b.png"), "--json", str(numbers)])
    assert json.loads(numbers.read_text())["runs"][PLAIN]["parted"] == 0.0
