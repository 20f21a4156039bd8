"""Engines: found by name, and held to the conformance tests."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from legged_envs import cli
from legged_envs.conformance import test_engine as tests
from legged_envs.conformance.conftest import begin
from legged_envs.evaluation import bench
from legged_envs.evaluation.crosscheck import installed_engines
from legged_envs.robots import GO2 as ROBOT
from legged_envs.robots import RobotCfg
from legged_envs.sim import SimCfg, Simulation, make_simulation
from legged_envs.sim.engines import ENGINES, find_engine, known_engines
from legged_envs.sim.engines.mujoco import MujocoSimulation

GO2 = "Legged/Go2-Flat-v0"


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
    """All environments share a parameter."""

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


def test_the_conformance_tests_take_the_name_of_an_engine(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = [
        "-p",
        "legged_envs.conformance.options",
        "-p",
        "no:cacheprovider",
        "--pyargs",
        "legged_envs.conformance",
    ]
    assert pytest.main(["-q", *words, "--sim", "mujoco"]) == 0
    assert "14 passed" in capsys.readouterr().out


@pytest.fixture
def other_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with three engines; one needs a module that is not there, of one the name is wrong."""
    code = "from legged_envs.sim.engines.mujoco import MujocoSimulation\n\n\nclass Mine(MujocoSimulation):\n    pass\n"
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
        match=r"sim='wrong'.*'my_engine:Min'",
    ):
        find_engine("wrong")
    with pytest.raises(ModuleNotFoundError, match=r"sim='broken'.*nothing_of_that_name"):
        find_engine("broken")
    with pytest.raises(ValueError, match=r"sim='mein'.*'mujoco', 'mujoco_warp', .*'mine'"):
        make_vec(2, sim="mein")


def test_an_engine_that_has_only_planes_refuses_terrain(monkeypatch, make_vec):
    class OnPlanes(MujocoSimulation):
        def __init__(self, robot: RobotCfg, cfg: SimCfg, num_envs: int, device: torch.device):
            super().__init__(robot, cfg, num_envs, device)

    monkeypatch.setitem(ENGINES, "mine", OnPlanes)
    make_vec(2, sim="mine")
    with pytest.raises(
        ValueError,
        match=r"sim='mine'.*SceneCfg.*terrain",
    ):
        make_vec(2, "Legged/Go2-Rough-v0", sim="mine")


def test_an_engine_that_is_not_installed_names_its_extra(monkeypatch, make_vec, capsys):
    monkeypatch.setitem(sys.modules, "mujoco_warp", None)
    monkeypatch.delitem(sys.modules, "legged_envs.sim.engines.mujoco_warp", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"sim='mujoco_warp'.*'legged-envs\[warp\]'"):
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
    monkeypatch.delitem(sys.modules, "legged_envs.sim.engines.mujoco_warp", raising=False)
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
