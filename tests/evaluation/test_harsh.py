"""Evaluations under harsh conditions: conditions, commands, measurements, and the files with the results."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

from legged_envs import cli, make_task_cfg
from legged_envs.envs import make_core
from legged_envs.envs.cfg import override
from legged_envs.evaluation import harsh
from legged_envs.evaluation.conditions import evaluation_cfg
from legged_envs.evaluation.evaluator import Evaluator
from legged_envs.evaluation.metrics.harsh import HarshMetrics
from legged_envs.managers import ObservationGroupCfg
from legged_envs.policy.header import HARSH_KEY, harsh_headline, read_evaluation
from legged_envs.policy.policy import shipped_file
from legged_envs.tasks import TASKS
from legged_envs.tasks.kind import kind_of

FLAT, BLIND, WHEELS = "Legged/Go2-Flat-v0", "Legged/Go2-Blind-v0", "Legged/Tron1-WF-Flat-v0"
DT = 0.02
GO2_MASS = 15.2
WALKS = [each for each in TASKS if each.startswith("Legged/")]


def commands(task: str, changes: dict[str, object], n: int = 200) -> torch.Tensor:
    """Commands (steps, n, 3) of an episode, without physics."""
    cfg = override(make_task_cfg(task), changes)
    core = make_core(harsh.harsh_cfg(evaluation_cfg(cfg), cfg), n, array="torch")
    core.reset(seed=3)
    rows = [core.commands["velocity"].clone()]
    for _ in range(round(harsh.EPISODE_SECONDS / DT) - 1):
        core.commands.advance()
        rows.append(core.commands["velocity"].clone())
    core.close()
    return torch.stack(rows)


def at(seen: torch.Tensor, seconds: float) -> torch.Tensor:
    return seen[round(seconds / DT)]


def test_commands_start_reverse_and_stop_at_once_at_the_ends_of_their_ranges() -> None:
    seen = commands(FLAT, {"commands.velocity.lin_vel_x": (-0.5, 1.5)})
    assert not at(seen, 0.0).any() and not at(seen, 0.96).any()
    first = at(seen, 1.0)
    ends = torch.tensor([[-0.5, 1.5], [-0.5, 0.5], [-1.0, 1.0]])
    for column in range(3):
        values = set(first[:, column].tolist())
        assert values == {0.0, *ends[column].tolist()}
    assert torch.equal(at(seen, 8.9), first) and torch.equal(at(seen, 11.5), first)
    back = at(seen, 9.5)
    assert torch.equal(back[:, 1:], -first[:, 1:])
    # The range is narrower backwards.
    assert set(back[first[:, 0] == 1.5, 0].tolist()) == {-0.5}
    assert set(back[first[:, 0] == -0.5, 0].tolist()) == {0.5}
    assert not at(seen, 17.02).any() and not seen[-1].any()
    assert first.any(1).all()


def test_a_robot_on_wheels_is_not_asked_to_move_sideways() -> None:
    first = at(commands(WHEELS, {}), 1.5)
    assert not first[:, 1].any() and first.any(1).all()


def test_on_rough_ground_robots_walk_straight_on() -> None:
    seen = commands(BLIND, {"commands.velocity.lin_vel_x": (-0.4, 0.5)}, n=40)
    first = at(seen, 1.5)
    assert not first[:, 1].any() and not at(seen, 17.5).any()
    assert 0.4 <= first[:, 0].min() < 0.42 and 0.48 < first[:, 0].max() <= 0.5
    back = at(seen, 9.5)[:, 0]
    assert torch.equal(back, -first[:, 0].clamp(max=0.4))
    # Nobody has turned: the heading is that of the start.
    assert first[:, 2].abs().max() < 1e-4


def test_robots_on_rough_ground_turn_to_their_heading_only_while_they_walk() -> None:
    # Inversions of the training are not those of the phases.
    changes = {"commands.velocity.inversion_fraction": 1.0}
    cfg = override(make_task_cfg(BLIND), changes)
    core = make_core(harsh.harsh_cfg(evaluation_cfg(cfg), cfg), 8, array="torch")
    core.reset(seed=3)
    term = core.commands.terms["velocity"]
    term.heading = term.heading + 0.5
    rows = []
    for _ in range(round(harsh.EPISODE_SECONDS / DT) - 1):
        core.commands.advance()
        rows.append(core.commands["velocity"].clone())
    core.close()
    seen = torch.stack(rows)
    for standing in (0.5, 18.5):
        assert not at(seen, standing).any()
    for walking, sign in ((1.5, 1.0), (9.5, -1.0), (12.0, 1.0)):
        assert (at(seen, walking)[:, 0] * sign > 0.0).all()
        turn = min(0.5 * term.cfg.heading_stiffness, term.cfg.ang_vel_z[1])
        torch.testing.assert_close(at(seen, walking)[:, 2], torch.full((8,), turn))


@pytest.mark.parametrize("task", WALKS)
def test_every_velocity_task_can_be_harsh_and_others_say_why_not(task: str) -> None:
    cfg = make_task_cfg(task)
    if not kind_of(cfg).follows_velocity:
        with pytest.raises(ValueError, match=rf"'{task}'.*--harsh"):
            Evaluator(task, cfg, 1, harsh=True)
        return
    made = harsh.harsh_cfg(evaluation_cfg(cfg), cfg)
    velocity = made.commands["velocity"]
    assert velocity.lin_vel_x == cfg.commands["velocity"].lin_vel_x
    assert made.max_action_delay == 1
    noise = [term.noise for group in made.observations.values() for term in group.terms.values()]
    assert made.observations["policy"].noisy
    if "ang_vel" in made.observations["policy"].terms:
        assert 0.8 in noise and 3.0 in noise
    assert not made.observations.get("critic", ObservationGroupCfg({}, noisy=False)).noisy
    # The evaluated configuration is a copy.
    assert cfg == make_task_cfg(task)


def test_friction_payload_and_delay_are_drawn_in_their_ranges() -> None:
    cfg = make_task_cfg(FLAT)
    core = make_core(harsh.harsh_cfg(evaluation_cfg(cfg), cfg), 300, array="torch")
    core.reset(seed=0)
    friction = core.sim.get_parameter("friction")
    assert 0.2 <= friction.min() < 0.22 and 0.98 < friction.max() <= 1.0
    added = core.sim.get_parameter("body_mass") - core.sim.default_parameter("body_mass")
    assert not added[:, 1:].any()
    assert core.sim.default_parameter("body_mass")[0].sum() == pytest.approx(GO2_MASS, abs=0.1)
    assert -1.01 < added.min() < -0.95 and 2.95 < added.max() < 3.03
    assert core.actions.delayed.float().mean() == pytest.approx(0.5, abs=0.1)
    core.close()


def test_a_light_base_keeps_half_of_its_mass() -> None:
    masses = torch.tensor([[1.0, 30.0]])

    class Sim:
        def default_parameter(self, name: str) -> torch.Tensor:
            return masses

    low, high = harsh.payload_range(Sim())
    assert low == -0.5 and high == pytest.approx(31.0 * 3.0 / 15.2)


def test_what_is_measured_while_moving_and_after_the_stop() -> None:
    evaluator = Evaluator(FLAT, make_task_cfg(FLAT), 4, harsh=True)
    metrics = evaluator.metrics
    assert isinstance(metrics, HarshMetrics)
    metrics.start(evaluator._envs, 0, False)
    *_, info = evaluator._envs.step(torch.zeros(4, 12))
    steps = round(harsh.EPISODE_SECONDS / DT)
    values = {}
    for name, value in metrics.measures(info).items():
        values[name] = value[None].repeat(steps, *[1] * value.ndim).float()
    time = torch.arange(steps)[:, None] * DT
    moving = ((time >= 1.0) & (time < 17.0)).expand(steps, 4)
    values["moving"] = moving.float()
    # Errors while standing do not count, and neither does the first second after the stop.
    values["lin_vel_error"] = torch.where(moving, 0.25, 9.0)
    values["duty_factor"] = torch.where(time < 18.0, 0.5, 0.75).expand(steps, 4)
    velocity = torch.where(time < 18.0, 2.0, 0.0).repeat(1, 8).view(steps, 4, 2)
    # Sways that return are no drift.
    velocity[900::2, 0, 0] = 0.3
    velocity[901::2, 0, 0] = -0.3
    velocity[900:, 1] = torch.tensor([0.03, 0.04])
    values["lin_vel_w"] = velocity
    alive = torch.ones(steps, 4, dtype=torch.bool)
    alive[500:, 3] = False
    result = metrics.result(values, alive)
    assert result.walk.lin_vel_error == pytest.approx(0.25)
    assert result.walk.still_contact == pytest.approx(0.75)
    assert result.still_drift == pytest.approx(0.05 / 3, abs=1e-6)
    assert result.falls == 0.25
    assert result.as_dict()["harsh"]["payload"][1] == pytest.approx(3.0, abs=0.03)
    evaluator.close()


def test_commands_of_slow_robots_are_said_to_be_clipped() -> None:
    slow = {"lin_vel_x": (-1.0, 1.0), "lin_vel_y": (-0.3, 0.5), "ang_vel_z": (-2.0, 0.8)}
    changes = {f"commands.velocity.{name}": span for name, span in slow.items()}
    trained = override(make_task_cfg("Legged/Go2-Flat-v0"), changes)
    cfg = harsh.harsh_cfg(evaluation_cfg(trained), trained)
    assert harsh.clipped_commands(cfg) == ["lin_vel_y", "ang_vel_z"]
    assert harsh.commanded_ranges(cfg) == slow
    # On rough ground they walk straight on, and have none of these commands.
    trained = override(make_task_cfg("Legged/Go2-Rough-v0"), changes)
    rough = harsh.harsh_cfg(evaluation_cfg(trained), trained)
    assert harsh.clipped_commands(rough) == []
    assert harsh.commanded_ranges(rough) == {"lin_vel_x": (0.0, 1.0)}


def test_numbers_of_a_seed_are_the_same_and_stand_in_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HarshMetrics, "EPISODE_SECONDS", 2.5)
    numbers = []
    for i, seed in enumerate(("4", "4", "5")):
        file = tmp_path / f"{i}.json"
        words = ["--harsh", "--episodes", "16", "--seed", seed, "--json", str(file)]
        picture = ["--picture", str(tmp_path / f"{i}.png")]
        cli.main(["eval", BLIND, *words, *picture])
        numbers.append(json.loads(file.read_text()))
        assert (tmp_path / f"{i}.png").exists()
    assert numbers[0] == numbers[1]
    assert numbers[0]["lin_vel_error"] != numbers[2]["lin_vel_error"]
    # The stop was not reached.
    assert numbers[0]["still_drift"] is None
    printed = capsys.readouterr().out
    assert "payload -1 to 3 kg" in printed and "cross their tile" in printed


def test_a_headline_of_harsh_conditions() -> None:
    assert harsh_headline({}) == ""
    numbers = {"lin_vel_error": 0.2734, "falls": 0.047, "still_contact": 0.637}
    assert harsh_headline(numbers) == "0.273 m/s, 5% fall, feet 64% down at a stop"
    rough = {**numbers, "crossed": 0.5, "lin_vel_error": None, "still_contact": None}
    assert harsh_headline(rough) == "- m/s, 5% fall, 50% cross their tile"


def test_the_table_of_the_page_is_what_the_files_of_the_policies_hold() -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "train.md"
    section = page.read_text().split("### Under harsh conditions")[1].split("\n### ")[0]
    rows = re.findall(
        r"^\| `(.*?)` \| (.*?) \| (.*?) \| (.*?)% \| (.*?) \|$", section, re.MULTILINE
    )
    assert len(rows) >= 3
    for task, usual, hard, contact, drift in rows:
        numbers = read_evaluation(shipped_file(task), HARSH_KEY)
        assert f"{numbers['still_contact']:.0%}" == f"{contact}%"
        assert f"{numbers['still_drift']:.3f}" == drift
        assert numbers["episodes"] == 256
        for cell, values in ((usual, read_evaluation(shipped_file(task))), (hard, numbers)):
            expected = [f"{values['lin_vel_error']:.3f}", f"{values['falls']:.1%}"]
            if "crossed" in values:
                expected.append(f"{values['crossed']:.0%}")
            assert cell == ", ".join(expected)
