"""Managers evaluate terms: they add, check, accumulate and print them."""

from __future__ import annotations

import functools
import json
import math
import operator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from legged_envs import make_task_cfg
from legged_envs.envs import CoreVectorEnv, make_core
from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.envs.changes import RENAMED_REWARDS
from legged_envs.managers import (
    CostTermCfg,
    CurriculumTermCfg,
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from legged_envs.mdp import observations, rewards
from legged_envs.mdp.actions import JointPositionCfg
from legged_envs.mdp.commands import CommandTerm
from legged_envs.robots import GO2
from legged_envs.runs.run_folder import as_json

TASK = "Legged/Go2-Flat-v0"
DT = 0.02
Q0 = torch.tensor(GO2.default_joint_pos)


def task(**fields: Any) -> TaskCfg:
    """The Go2 task with fields replaced."""
    cfg = make_task_cfg(TASK)
    for name, value in fields.items():
        setattr(cfg, name, value)
    return cfg


def joint_positions(**fields: Any) -> dict[str, Any]:
    """The field of a task that has joint positions as its one action term."""
    return {"actions": {"joint_position": JointPositionCfg(**fields)}}


def make(cfg: TaskCfg, num_envs: int = 3, **kwargs: Any) -> CoreVectorEnv:
    env = make_core(cfg, num_envs, array="torch", **kwargs)
    env.reset(seed=0)
    return env


def still(env: CoreVectorEnv) -> torch.Tensor:
    return torch.zeros(env.num_envs, 12)


def index(env: Any) -> torch.Tensor:
    """Return 0, 1, 2, …: a different value for each environment."""
    return torch.arange(env.num_envs, dtype=torch.float32)


def index_plus(env: Any, offset: float) -> torch.Tensor:
    return index(env) + offset


def always(env: Any) -> torch.Tensor:
    return torch.ones(env.num_envs, dtype=torch.bool)


# --- adding a term takes one function and one line --------------------------------------------------------------------


def test_a_reward_term_counts_with_its_weight_and_the_time_step():
    cfg = task(rewards={})
    cfg.rewards["mine"] = RewardTermCfg(index_plus, weight=2.0, params={"offset": 0.5})
    env = make(cfg)
    assert torch.allclose(env.step(still(env))[1], (index(env) + 0.5) * 2.0 * DT)


@pytest.mark.parametrize("weight", ["2", None, float("nan")])
def test_a_reward_weight_that_is_no_number_is_named(weight):
    with pytest.raises(ValueError, match="reward term 'mine': weight"):
        make(task(rewards={"mine": RewardTermCfg(index, weight=weight)}))


def test_the_reward_is_the_weighted_sum_of_the_terms_floored_at_zero_if_asked():
    rewards = {
        "plus": RewardTermCfg(index, weight=1.0),
        "minus": RewardTermCfg(index_plus, weight=-0.5, params={"offset": 1.0}),
        "off": RewardTermCfg(index, weight=0.0),
    }
    expected = DT * (index(make(task())) * 0.5 - 0.5)
    for floored in (False, True):
        env = make(task(rewards=rewards, only_positive_rewards=floored))
        reward = env.step(still(env))[1]
        assert torch.allclose(reward, expected.clamp(min=0.0) if floored else expected)
        assert env.rewards.names == ("plus", "minus")


def test_a_cost_term_is_one_more_column_with_its_limit():
    cfg = task()
    cfg.costs["mine"] = CostTermCfg(index, limit=0.5)
    env = make(cfg)
    info = env.step(still(env))[4]
    assert env.cost_names[-1] == "mine" and env.cost_limits[-1] == 0.5
    assert torch.equal(info["costs"][:, -1], index(env))
    assert torch.allclose(info["cost"], info["costs"].sum(1))
    assert info["costs"].shape == (3, len(env.cost_names))


def test_a_termination_term_ends_episodes():
    cfg = task(terminations={})
    cfg.terminations["mine"] = TerminationTermCfg(lambda env: index(env) == 1.0)
    env = make(cfg)
    assert env.step(still(env))[2].tolist() == [False, True, False]


def test_without_any_term_nothing_is_rewarded_costs_or_ends():
    env = make(task(rewards={}, costs={}, terminations={}, events={}))
    _, reward, terminated, _, info = env.step(still(env))
    assert not reward.any() and not terminated.any() and not info["cost"].any()
    assert info["costs"].shape == (3, 0)


def test_an_observation_term_is_one_more_part_of_its_group():
    cfg = task()
    cfg.observations["policy"].terms["mine"] = ObservationTermCfg(
        lambda env: index(env).unsqueeze(1).expand(3, 2)
    )
    cfg.observations["extra"] = ObservationGroupCfg(
        {"mine": ObservationTermCfg(lambda env: index(env)[:, None])}
    )
    env = make(cfg, observations="dict")
    observation = env.step(still(env))[0]
    assert env.single_observation_space["policy"].shape == (47,)
    assert env.single_observation_space["extra"].shape == (1,)
    assert torch.equal(observation["policy"][:, 45:], index(env).unsqueeze(1).expand(3, 2))
    assert torch.equal(observation["extra"][:, 0], index(env))
    assert ("mine", 2, 0) in env.observations.groups["policy"].layout


def test_an_event_term_gets_the_environments_a_stream_of_its_own_and_its_parameters():
    calls = []

    def note(env: Any, env_ids: torch.Tensor, random: Any, word: str) -> None:
        calls.append(
            (env_ids.tolist(), random.uniform(0.0, 1.0, 1, env_ids).squeeze(1).tolist(), word)
        )

    cfg = task()
    cfg.events["mine"] = EventTermCfg(note, "reset", params={"word": "hello"})
    env = make(cfg)
    env.reset(options={"reset_mask": torch.tensor([False, True, False])})
    (first_ids, first_draw, word), (second_ids, second_draw, _) = calls
    assert (first_ids, second_ids, word) == ([0, 1, 2], [1], "hello")
    assert len({*first_draw, *second_draw}) == 4


class CountingCommand(CommandTerm):
    """A command of one number: how many steps its episode has had."""

    def __init__(self, env: Any):
        self.value = torch.zeros(env.num_envs, 1)
        self.moving = torch.ones(env.num_envs)
        self.still = torch.zeros(env.num_envs)

    def reset(self, env_ids: torch.Tensor) -> None:
        self.value = self.value.index_fill(0, env_ids, 0.0)

    def on_placed(self, env_ids: torch.Tensor) -> None:
        assert (self.value[env_ids] == 0.0).all()

    def advance(self) -> None:
        self.value = self.value + 1.0

    def state_dict(self) -> dict[str, Any]:
        return {"value": self.value.clone()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.value = state["value"].clone()


class CountingCommandCfg:
    def build(self, env: Any) -> CountingCommand:
        return CountingCommand(env)


def test_a_command_term_is_reset_advanced_observed_and_saved():
    cfg = task()
    cfg.commands["count"] = CountingCommandCfg()
    cfg.observations["count"] = ObservationGroupCfg(
        {"count": ObservationTermCfg(observations.command, params={"name": "count"})}
    )
    env = make(cfg, observations="dict")
    for _ in range(3):
        observation = env.step(still(env))[0]
    assert observation["count"].squeeze(1).tolist() == [3.0, 3.0, 3.0]
    observation = env.reset(options={"reset_mask": torch.tensor([True, False, False])})[0]
    assert observation["count"].squeeze(1).tolist() == [0.0, 3.0, 3.0]
    state = env.get_state()
    env.step(still(env))
    env.set_state(state)
    assert env.step(still(env))[0]["count"].squeeze(1).tolist() == [1.0, 4.0, 4.0]


@pytest.mark.parametrize("task_id", [TASK, "Legged/G1-Flat-v0"])
def test_the_rewards_costs_and_terminations_of_a_step_are_what_their_terms_return(
    task_id, random_actions
):
    """Through resets, a held command and a loaded state, also when the terms are evaluated together."""
    cfg = make_task_cfg(task_id)
    del cfg.events["push"]
    for term in cfg.terminations.values():
        term.grace_s = 0.0
    env = make(cfg, num_envs=5)
    clock = env.commands.terms.get("gait")
    ended = set()
    for step, action in enumerate(torch.from_numpy(random_actions(200, 5))):
        if step % 12 == 11:
            env.reset(
                options={"reset_mask": torch.tensor([step == 23, True, False, step == 35, False])}
            )
        if step == 30:
            env.commands.terms["velocity"].hold(torch.tensor([0.5, -0.3, 0.2]))
        if step == 45:
            env.commands.terms["velocity"].hold(torch.zeros(3))
        if step == 50:
            state = env.get_state()
            env.step(-action)
            env.set_state(state)
        asked = clock and clock.state_dict()
        _, reward, terminated, _, info = env.step(action)
        ticked = clock and clock.state_dict()
        if clock:
            clock.load_state_dict(asked)  # what the step was asked to do, not what the next one is
        costs = torch.stack([term.func(env, **term.params) for term in cfg.costs.values()], dim=1)
        assert torch.equal(info["costs"], costs), step
        terms = [(term.weight, term.func(env, **term.params)) for term in cfg.rewards.values()]
        total = sum(weight * value.double() for weight, value in terms if weight) * DT
        assert torch.allclose(reward.double(), total.clamp(min=0.0), rtol=1e-4, atol=1e-6), step
        holds = [term.func(env, **term.params) for term in cfg.terminations.values()]
        assert torch.equal(terminated, torch.stack(holds).any(0)), step
        if clock:
            clock.load_state_dict(ticked)
        ended |= set(terminated.tolist())
    assert ended == {True, False}


def test_a_users_term_around_one_of_the_packages_is_run_as_it_is_written():
    factor = {"value": 1.0}

    @functools.wraps(rewards.alive)
    def scaled(env: Any) -> torch.Tensor:
        return rewards.alive(env) * factor["value"]

    env = make(task(rewards={"scaled": RewardTermCfg(scaled, weight=1.0)}))
    for factor["value"] in (1.0, 3.0, 2.0):
        assert torch.allclose(env.step(still(env))[1], torch.tensor(factor["value"] * DT))


# --- a term that returns the wrong thing is named ---------------------------------------------------------------------


WRONG_SCALARS = {
    "column": lambda env: torch.zeros(env.num_envs, 1),
    "too_short": lambda env: torch.zeros(env.num_envs - 1),
    "scalar": lambda env: torch.zeros(()),
    "double": lambda env: torch.zeros(env.num_envs, dtype=torch.float64),
    "number": lambda env: 1.0,
    "array": lambda env: np.zeros(env.num_envs, dtype=np.float32),
}


@pytest.mark.parametrize("wrong", WRONG_SCALARS)
def test_a_reward_or_cost_of_the_wrong_shape_or_type_is_named(wrong):
    cfg = task()
    cfg.rewards["culprit"] = RewardTermCfg(WRONG_SCALARS[wrong], weight=1.0)
    with pytest.raises(ValueError, match="reward term 'culprit'"):
        make(cfg)
    cfg = task()
    cfg.costs["culprit"] = CostTermCfg(WRONG_SCALARS[wrong], limit=1.0)
    with pytest.raises(ValueError, match="cost term 'culprit'"):
        make(cfg)


@pytest.mark.parametrize("wrong", [*WRONG_SCALARS.values(), index], ids=[*WRONG_SCALARS, "float"])
def test_a_termination_of_the_wrong_shape_or_type_is_named(wrong):
    cfg = task()
    cfg.terminations["culprit"] = TerminationTermCfg(wrong)
    with pytest.raises(ValueError, match="termination term 'culprit'"):
        make(cfg)


@pytest.mark.parametrize(
    "wrong",
    [
        index,
        lambda env: torch.zeros(env.num_envs + 1, 3),
        lambda env: torch.zeros(env.num_envs, 2, 2),
        lambda env: torch.zeros(env.num_envs, 3, dtype=torch.int64),
        lambda env: np.zeros((env.num_envs, 3), dtype=np.float32),
    ],
    ids=["flat", "too_long", "matrix", "integer", "array"],
)
def test_an_observation_of_the_wrong_shape_or_type_is_named(wrong):
    cfg = task()
    cfg.observations["policy"].terms["culprit"] = ObservationTermCfg(wrong)
    with pytest.raises(ValueError, match=r"'policy'.*'culprit'"):
        make(cfg)


def test_a_message_says_what_was_expected_and_what_was_returned():
    cfg = task()
    cfg.rewards["culprit"] = RewardTermCfg(WRONG_SCALARS["column"], weight=1.0)
    with pytest.raises(ValueError, match=r"\(3,\).*\(3, 1\)"):
        make(cfg)


def test_an_observation_scale_of_the_wrong_length_is_named():
    cfg = task()
    cfg.observations["policy"].terms["gravity"].scale = (1.0, 2.0)
    with pytest.raises(ValueError, match="gravity"):
        make(cfg)


def test_a_term_that_is_no_function_is_named():
    cfg = task()
    cfg.costs["culprit"] = CostTermCfg("joint_torque", limit=1.0)
    with pytest.raises(TypeError, match=r"'culprit'.*'joint_torque'"):
        make(cfg)


# --- configuration that makes no sense is refused ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value", "culprit"),
    [
        ("rewards.juggling.weight", 1.0, "juggling"),
        ("rewards.joint_torque.wieght", 1.0, "wieght"),
        ("costs.juggling", None, "juggling"),
        ("sim.timestep", 0.01, "timestep"),
        ("gravity", 9.81, "gravity"),
        ("sim.dt.x", 1.0, "sim.dt"),
    ],
)
def test_a_path_to_a_field_or_term_that_does_not_exist_is_named(path, value, culprit):
    with pytest.raises(ValueError, match=culprit):
        override(make_task_cfg(TASK), {path: value})


def test_an_earlier_name_of_a_reward_leads_to_its_present_name():
    """Older runs and policies have such names in their recorded changes."""
    cfg = make_task_cfg(TASK)
    for earlier, present in RENAMED_REWARDS.items():
        assert present in cfg.rewards and earlier not in cfg.rewards
        with pytest.warns(FutureWarning, match=f"'rewards.{earlier}.weight'.*'{present}'$"):
            changed = override(cfg, {f"rewards.{earlier}.weight": 7.0})
        assert changed.rewards[present].weight == 7.0


def test_override_changes_a_copy():
    cfg = make_task_cfg(TASK)
    before = str(cfg)
    changed = override(
        cfg,
        {
            "rewards.joint_torque.weight": -1.0,
            "sim.dt": 0.004,
            "rewards.base_height.params.target": 0.2,
        },
    )
    assert changed.rewards["joint_torque"].weight == -1.0
    assert changed.sim.dt == 0.004
    assert changed.rewards["base_height"].params == {"target": 0.2}
    assert str(cfg) == before


def test_override_reaches_the_defaults_of_a_terms_function():
    cfg = make_task_cfg(TASK)
    changes = {
        "costs.base_orientation.params.max_tilt": 0.2,
        "terminations.illegal_contact.params.threshold": 5.0,
    }
    changed = override(cfg, changes)
    assert changed.costs["base_orientation"].params == {"max_tilt": 0.2}
    assert changed.terminations["illegal_contact"].params == {"threshold": 5.0}
    make(changed).reset(seed=0)
    with pytest.raises(ValueError, match=r"'max_tlit'.*'max_tilt'"):
        override(cfg, {"costs.base_orientation.params.max_tlit": 0.2})


def test_override_reaches_the_fields_of_the_robot():
    cfg = make_task_cfg(TASK)
    changed = override(cfg, {"robot.kp": (30.0,) * 12})
    assert changed.robot.kp == (30.0,) * 12
    assert cfg.robot is GO2 and GO2.kp == (40.0,) * 12
    with pytest.raises(ValueError, match=r"kp.*11"):
        override(cfg, {"robot.kp": (30.0,) * 11})


@pytest.mark.parametrize(
    ("field", "value"), [("dt", 0.0), ("dt", -0.01), ("decimation", 0), ("decimation", -4)]
)
def test_physics_settings_that_make_no_sense_are_named(field, value):
    with pytest.raises(ValueError, match=rf"{field}.*{value}"):
        make(override(make_task_cfg(TASK), {f"sim.{field}": value}))


def test_each_task_configuration_is_fresh():
    first = make_task_cfg(TASK)
    first.rewards.clear()
    first.observations["policy"].terms.clear()
    first.sim.dt = 1.0
    second = make_task_cfg(TASK)
    assert second.rewards and second.observations["policy"].terms and second.sim.dt == 0.005
    with pytest.raises(ValueError, match=r"Legged/Cat-v0.*Legged/Go2-Flat-v0"):
        make_task_cfg("Legged/Cat-v0")


def test_an_environment_is_not_changed_by_what_later_happens_to_terms_of_another():
    cfg = make_task_cfg(TASK)
    env, other = make(cfg), make(override(cfg, {"rewards.joint_torque.weight": 0.0}))
    assert "joint_torque" in env.rewards.names and "joint_torque" not in other.rewards.names


@pytest.mark.parametrize("limit", [-0.1, float("nan")])
def test_a_cost_limit_below_zero_is_refused(limit):
    cfg = task()
    cfg.costs["foot_slip"].limit = limit
    with pytest.raises(ValueError, match=f"foot_slip.*{limit}"):
        make(cfg)


@pytest.mark.parametrize(
    ("action", "culprit"),
    [
        ({"max_action_delay": 2}, "max_action_delay.*2"),
        (joint_positions(scale=0.0), "scale.*0.0"),
        (joint_positions(scale=(0.5,) * 11), "scale.*12.*11"),
    ],
)
def test_an_action_configuration_that_makes_no_sense_is_refused(action, culprit):
    with pytest.raises(ValueError, match=culprit):
        make(task(**action))


@pytest.mark.parametrize(
    ("event", "culprit"),
    [
        (EventTermCfg(index, "sometimes"), "'mine'.*'sometimes'"),
        (EventTermCfg(index, "interval"), "'mine'.*interval_s"),
        (EventTermCfg(index, "reset", interval_s=(1.0, 2.0)), "'mine'.*interval_s"),
    ],
)
def test_an_event_configuration_that_makes_no_sense_is_refused(event, culprit):
    with pytest.raises(ValueError, match=culprit):
        make(task(events={"mine": event}))


def test_observations_need_a_policy_group():
    with pytest.raises(ValueError, match=r"'policy'.*critic"):
        make(task(observations={"critic": make_task_cfg(TASK).observations["critic"]}))


# --- episode statistics -----------------------------------------------------------------------------------------------


def test_the_log_holds_the_means_over_the_episodes_that_ended():
    """Rewards per second and costs per step, each episode counting alike however long it was."""
    clock = {"step": 0}

    def time(env: Any) -> torch.Tensor:
        return torch.full((env.num_envs,), float(clock["step"]))

    cfg = task(
        rewards={
            "index": RewardTermCfg(index, weight=2.0),
            "time": RewardTermCfg(time, weight=-1.0),
        },
        costs={"time": CostTermCfg(time, limit=1.0), "index": CostTermCfg(index, limit=1.0)},
        terminations={
            "early": TerminationTermCfg(lambda env: (index(env) == 1.0) & (clock["step"] == 3)),
            "late": TerminationTermCfg(lambda env: (index(env) >= 2.0) & (clock["step"] == 5)),
            "never": TerminationTermCfg(lambda env: ~always(env)),
        },
    )
    env = make(cfg, num_envs=4)
    logs = []
    for clock["step"] in range(1, 6):
        terminated, _, info = env.step(still(env))[2:]
        assert "log" not in info
        if terminated.any():
            logs.append(env.reset(options={"reset_mask": terminated})[1]["log"])

    first, second = logs
    assert first["episodes"] == 1 and second["episodes"] == 2
    assert first["episode_length_s"] == pytest.approx(3 * DT)
    assert second["episode_length_s"] == pytest.approx(5 * DT)
    assert first["reward/index"] == pytest.approx(2.0 * 1)
    assert second["reward/index"] == pytest.approx(2.0 * (2 + 3) / 2)
    assert first["reward/time"] == pytest.approx(-2.0)
    assert second["reward/time"] == pytest.approx(-3.0)
    assert first["cost/time"] == pytest.approx(2.0)
    assert second["cost/index"] == pytest.approx(2.5)
    for log, early, late in ((first, 1, 0), (second, 0, 2)):
        assert (log["termination/early"], log["termination/late"], log["termination/never"]) == (
            early,
            late,
            0,
        )
        assert log["termination/bad_physics"] == 0
        assert all(value.ndim == 0 for value in log.values())

    for clock["step"] in (10, 20):
        env.step(still(env))
    log = env.reset()[1]["log"]
    assert log["episodes"] == 4
    mean_of_episodes = (
        np.mean([1, 2, 3, 4, 5, 10, 20]) + np.mean([4, 5, 10, 20]) + 2 * np.mean([10, 20])
    ) / 4
    assert log["cost/time"] == pytest.approx(mean_of_episodes)
    assert log["episode_length_s"] == pytest.approx(DT * (7 + 4 + 2 + 2) / 4)


def test_a_reset_of_episodes_that_never_began_logs_nothing():
    env = make(task())
    assert "log" not in env.reset()[1]
    env.step(still(env))
    assert "log" in env.reset()[1]
    assert "log" not in env.reset(options={"reset_mask": torch.tensor([True, False, False])})[1]


# --- printing ---------------------------------------------------------------------------------------------------------


def test_the_managers_print_as_tables_with_every_term(make_vec):
    env = make_vec(observations="dict").unwrapped
    text = str(env)
    managers = {
        env.observations: [name for group in env.cfg.observations.values() for name in group.terms],
        env.rewards: env.cfg.rewards,
        env.costs: env.cfg.costs,
        env.terminations: env.cfg.terminations,
        env.events: env.cfg.events,
        env.commands: env.cfg.commands,
    }
    for manager, names in managers.items():
        table = str(manager)
        assert table in text
        first_words = [line.split()[0] for line in table.splitlines() if line]
        for name in names:
            assert name in first_words, f"{name} is missing from\n{table}"
    assert str(env.actions) in text
    costs = str(env.costs).splitlines()
    assert any(
        "joint_torque" in line and "0.025" in line and "soft_limit=0.8" in line for line in costs
    )


# --- grace time -------------------------------------------------------------------------------------------------------


def test_an_episode_ends_once_its_condition_has_held_for_longer_than_the_grace_time():
    holds = torch.zeros(3, dtype=torch.bool)
    terminations = {
        "patient": TerminationTermCfg(lambda env: holds.clone(), grace_s=0.1),
        "strict": TerminationTermCfg(lambda env: holds & (index(env) == 2.0)),
    }
    env = make(task(terminations=terminations))
    pattern = "01111101111110"
    ended = []
    for letter in pattern:
        holds[:] = letter == "1"
        ended.append(env.step(still(env))[2].tolist())
    patient = [row[0] for row in ended]
    assert patient == [row[1] for row in ended]
    assert [i for i, flag in enumerate(patient) if flag] == [12], (
        "the sixth step in a row is the first beyond 0.1 s"
    )
    assert [row[2] for row in ended] == [letter == "1" for letter in pattern]


@pytest.mark.parametrize("grace", [-1.0, math.inf, math.nan])
def test_a_grace_time_that_is_none_is_refused(grace):
    with pytest.raises(ValueError, match=rf"'patient': grace_s .*{grace}"):
        make(task(terminations={"patient": TerminationTermCfg(always, grace_s=grace)}))


def test_the_grace_time_starts_again_with_the_episode():
    env = make(task(terminations={"patient": TerminationTermCfg(always, grace_s=0.1)}))
    for _ in range(4):
        env.step(still(env))
    env.reset(options={"reset_mask": torch.tensor([True, False, False])})
    ended = [env.step(still(env))[2].tolist() for _ in range(6)]
    assert [row[0] for row in ended] == [False] * 5 + [True]
    assert [row[1] for row in ended] == [False] + [True] * 5


# --- actions ----------------------------------------------------------------------------------------------------------


def applied_targets(env: CoreVectorEnv) -> torch.Tensor:
    return torch.from_numpy(env.sim.batch.bind("ctrl").copy()).float()


@pytest.mark.parametrize("scale", [0.5, tuple(0.1 * (i + 1) for i in range(12))])
def test_actions_move_the_joint_targets_away_from_the_default_pose_by_their_scale(
    scale, random_actions
):
    env = make(task(**joint_positions(scale=scale)))
    for action in torch.from_numpy(random_actions(3, 3)):
        env.step(action)
        assert torch.allclose(applied_targets(env), Q0 + torch.tensor(scale) * action)


def test_actions_are_clipped_to_the_action_space_before_anything_sees_them():
    env = make(task(**joint_positions(scale=0.5)), observations="dict")
    action = torch.tensor([[3.0], [-7.0], [0.25]]).expand(3, 12).contiguous()
    observation = env.step(action)[0]
    assert torch.allclose(applied_targets(env), Q0 + 0.5 * action.clamp(-1.0, 1.0))
    assert torch.equal(observation["policy"][:, 33:], action.clamp(-1.0, 1.0))
    assert torch.equal(action[0], torch.full((12,), 3.0)), "the caller's array is left as it is"


def test_actions_of_delayed_environments_act_one_step_late_and_of_the_others_at_once(
    random_actions,
):
    env = make(task(**joint_positions(scale=0.5), max_action_delay=1, terminations={}), num_envs=40)
    actions = torch.from_numpy(random_actions(10, 40))
    previous = torch.zeros(40, 12)
    late = torch.ones(40, dtype=torch.bool)
    at_once = torch.ones(40, dtype=torch.bool)
    for action in actions:
        env.step(action)
        target = applied_targets(env)
        at_once &= torch.isclose(target, Q0 + 0.5 * action).all(1)
        late &= torch.isclose(target, Q0 + 0.5 * previous).all(1)
        previous = action
    assert (late ^ at_once).all()
    assert 8 <= late.sum() <= 32
    env.reset()
    env.step(actions[0])
    now_late = torch.isclose(applied_targets(env), Q0.expand(40, 12)).all(1)
    assert (now_late != late).any(), "the delay is drawn for each episode"


def test_without_delay_every_action_acts_at_once(random_actions):
    env = make(task(**joint_positions(scale=0.5), max_action_delay=0), num_envs=40)
    for action in torch.from_numpy(random_actions(3, 40)):
        env.step(action)
        assert torch.allclose(applied_targets(env), Q0 + 0.5 * action)


def test_a_reset_forgets_the_actions_of_its_environments_alone(random_actions):
    env = make(task(), observations="dict")
    for action in torch.from_numpy(random_actions(3, 3)):
        observation = env.step(action)[0]
    kept = observation["policy"][:, 33:].clone()
    observation = env.reset(options={"reset_mask": torch.tensor([False, True, False])})[0]
    assert not observation["policy"][1, 33:].any()
    assert torch.equal(observation["policy"][[0, 2], 33:], kept[[0, 2]])
    for actions in (env.actions.current, env.actions.previous, env.actions.before_previous):
        assert not actions[1].any() and actions[[0, 2]].all()


# --- observations -----------------------------------------------------------------------------------------------------


def test_the_policy_sees_noise_within_its_bounds_and_the_critic_none():
    env = make(task(), num_envs=300, observations="dict")
    differences, cleans = [], []
    for _ in range(4):
        observation = env.step(still(env))[0]
        cleans.append(observation["critic"][:, :45].clone())
        differences.append(observation["policy"] - cleans[-1])
    difference = torch.stack(differences)
    half_width = torch.tensor(
        [0.0] * 3 + [0.05] * 3 + [0.2 * 0.25] * 3 + [0.01] * 12 + [0.5 * 0.05] * 12 + [0.0] * 12
    )
    assert (difference.abs() <= half_width + 1e-5).all()
    largest = difference.abs().amax(dim=(0, 1))
    assert (largest >= 0.95 * half_width).all()
    assert torch.allclose(
        difference.mean(dim=(0, 1)) / half_width.clamp(min=1e-9), torch.zeros(45), atol=0.1
    )
    noisy = half_width > 0.0
    assert not difference[..., ~noisy].any()
    flat = difference[..., noisy].reshape(-1, int(noisy.sum())).numpy()
    assert np.abs(np.corrcoef(flat.T) - np.eye(flat.shape[1])).max() < 5 / np.sqrt(len(flat))

    robot, sim = env.robot, env.sim
    clean = torch.cat(
        (
            env.commands["velocity"],
            robot.projected_gravity,
            0.25 * sim.root_ang_vel_b,
            sim.joint_pos - Q0,
            0.05 * sim.joint_vel,
            env.actions.current,
        ),
        dim=1,
    )
    assert torch.equal(cleans[-1], clean)


def test_an_observation_is_its_value_with_noise_then_clipped_then_scaled():
    term = ObservationTermCfg(
        lambda env: torch.tensor([[0.0, 5.0, -5.0]]).expand(env.num_envs, 3),
        noise=1.0,
        clip=(-2.0, 3.0),
        scale=(10.0, 20.0, 1.0),
    )
    cfg = task(observations={"policy": ObservationGroupCfg({"x": term}, noisy=True)})
    env = make(cfg, num_envs=200)
    observation = env.step(torch.zeros(200, 12))[0]
    assert (observation[:, 0].abs() <= 10.0).all() and observation[:, 0].abs().max() > 9.0
    assert (observation[:, 1] == 60.0).all()
    assert (observation[:, 2] == -2.0).all()
    quiet = make(task(observations={"policy": ObservationGroupCfg({"x": term}, noisy=False)}))
    assert quiet.step(still(quiet))[0].tolist() == [[0.0, 60.0, -2.0]] * 3


def test_observations_stay_in_their_space_whatever_a_term_returns():
    cfg = task()
    cfg.observations["policy"].terms["huge"] = ObservationTermCfg(
        lambda env: torch.full((env.num_envs, 2), -1e9)
    )
    env = make(cfg)
    space = env.single_observation_space
    assert np.isfinite(space.low).all() and np.isfinite(space.high).all()
    observation = env.step(still(env))[0].numpy()
    assert observation in env.observation_space
    assert (observation[:, -2:] == space.low[-2:]).all()


# --- terms of users -----------------------------------------------------------------------------------------------


def test_a_users_term_runs_as_it_is_written_on_every_step():
    calls = []

    def counted(env: Any) -> torch.Tensor:
        calls.append(len(calls))
        return torch.full((env.num_envs,), float(len(calls)))

    cfg = task(only_positive_rewards=False)
    cfg.rewards = {
        "counted": RewardTermCfg(counted, weight=1.0),
        "joint_torque": cfg.rewards["joint_torque"],
    }
    env = make(cfg)
    before = len(calls)
    rewards = [env.step(still(env))[1] for _ in range(3)]
    assert len(calls) == before + 3
    assert (rewards[1] > rewards[0]).all()
    assert (rewards[2] > rewards[1]).all()


def test_making_an_environment_leaves_its_sums_at_zero():
    env = make(task())
    assert env.robot.joint_pos.data_ptr() == env.sim.joint_pos.data_ptr()
    fresh = make_core(task(), 3, array="torch")
    for sums in (fresh.rewards.episode_sums, fresh.costs.episode_sums, fresh.robot.foot_air_time):
        assert not sums.any()


# --- terms that go wrong are named at once ----------------------------------------------------------------------------


def make_faulty(value: float, width: int | None = None) -> tuple[Any, list[bool]]:
    """A term that gives 0.5, but ``value`` in environment 1 while the list that comes with it is not empty."""
    broken: list[bool] = []

    def faulty(env: Any) -> torch.Tensor:
        result = torch.full((env.num_envs,), 0.5, dtype=torch.float32)
        if broken:
            result[min(1, env.num_envs - 1)] = value
        return result if width is None else result.unsqueeze(1).repeat(1, width)

    return faulty, broken


def constant(env: Any, value: float) -> torch.Tensor:
    return env.robot.base_height * 0.0 + value


FAULTS = {
    "reward": lambda func, params: {"rewards": {"mine": RewardTermCfg(func, -1.0, params)}},
    "cost": lambda func, params: {"costs": {"mine": CostTermCfg(func, 0.5, params)}},
    "observation": lambda func, params: {
        "observations": {
            "policy": ObservationGroupCfg(
                {"mine": ObservationTermCfg(func, params=params)}, noisy=True
            )
        }
    },
}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), -0.25])
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("num_envs", [1, 3])
@pytest.mark.parametrize("floored", [False, True])
def test_a_term_that_is_not_finite_or_a_negative_cost_is_named_in_the_step_it_happens(
    kind, value, num_envs, floored
):
    fault, broken = make_faulty(value, 2 if kind == "observation" else None)
    env = make(task(**FAULTS[kind](fault, {}), only_positive_rewards=floored), num_envs)
    env.step(still(env))
    broken.append(True)
    if value == -0.25 and kind != "cost":
        env.step(still(env))
        return
    where = rf"{kind}.* term 'mine' \(faulty\).* {value:g} .*\[{min(1, num_envs - 1)}\]"
    with pytest.raises(ValueError, match=where):
        env.step(still(env))
    broken.clear()
    env.reset(options={"reset_mask": torch.ones(num_envs, dtype=torch.bool)})
    env.step(still(env))


@pytest.mark.parametrize("num_envs", [1, 3])
def test_a_term_that_goes_wrong_is_named_also_at_a_reset(num_envs):
    env = make(task(**FAULTS["cost"](constant, {"value": 1.0})), num_envs)
    env.step(still(env))
    bad = make(task(**FAULTS["cost"](constant, {"value": -0.5})), num_envs)
    with pytest.raises(ValueError, match=r"cost term 'mine' \(constant\).*-0.5"):
        bad.step(still(bad))
    seen, broken = make_faulty(float("inf"), 3)
    env = make(task(**FAULTS["observation"](seen, {})), num_envs)
    broken.append(True)
    with pytest.raises(ValueError, match=r"'policy': term 'mine' .*inf"):
        env.reset()


def test_numbers_whose_sum_is_too_large_are_no_error():
    cfg = task(rewards={name: RewardTermCfg(lambda env: index(env) + 3e38, 50.0) for name in "ab"})
    env = make(cfg)
    assert env.step(still(env))[1].isinf().all()


def test_a_term_that_fails_where_the_physics_diverged_is_no_error():
    fault, broken = make_faulty(float("nan"))
    env = make(task(rewards={"mine": RewardTermCfg(fault, 1.0)}))
    env.sim.batch.bind("qpos")[1, 3] = float("nan")
    broken.append(True)
    _, reward, terminated, *_ = env.step(still(env))
    assert reward.isfinite().all() and terminated.tolist() == [False, True, False]


def scaled(env: Any, factor: float = 1.0) -> torch.Tensor:
    return env.robot.base_height * factor


class Nameless:
    __module__ = None  # type: ignore[assignment]

    def __call__(self, env: Any) -> torch.Tensor:
        return scaled(env)


@pytest.mark.parametrize(
    "func",
    [
        functools.partial(scaled, factor=1.0),
        Nameless(),
        lambda env: scaled(env),
        operator.attrgetter("robot.base_height"),
    ],
    ids=["partial", "no module", "lambda", "built-in"],
)
def test_any_callable_can_be_a_term(func, tmp_path):
    env = make(task(rewards={"mine": RewardTermCfg(func, 1.0)}))
    assert torch.allclose(env.step(still(env))[1], scaled(env) * DT)
    # No address, which would differ between two runs with the same options.
    assert " at 0x" not in json.dumps({"func": func}, default=as_json)
    with pytest.raises(ValueError, match=r"cost term 'mine' .*float32"):
        make(task(costs={"mine": CostTermCfg(lambda env: func(env).double(), 1.0)}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"rewards": {"mine": RewardTermCfg(scaled, 1.0, {"facto": 2.0})}},
            r"reward term 'mine': scaled\(env.*'factor'\?",
        ),
        (
            {"costs": {"mine": CostTermCfg(lambda env, limit: env, 1.0)}},
            r"cost term 'mine': <lambda>\(env, limit\).*'limit'",
        ),
        ({"rewards": {"mine": RewardTermCfg(torch.sum, 1.0)}}, r"reward term 'mine' \(sum\)"),
        (
            {"events": {"mine": EventTermCfg(lambda env, env_ids: None, "reset")}},
            r"event term 'mine': <lambda>\(env, env_ids\)",
        ),
        (
            {"curriculum": {"mine": CurriculumTermCfg(scaled, {"a": 1})}},
            r"curriculum term 'mine': scaled\(",
        ),
    ],
)
def test_parameters_that_a_function_does_not_take_are_refused_with_the_term(changes, message):
    with pytest.raises(TypeError, match=message):
        make(task(**changes))


@pytest.mark.parametrize(
    "task_id",
    [
        "Legged/G1-Flat-v0",
        "Legged/Go2-Mimic-v0",
        "Legged/Go2-Nav-v0",
        "Legged/Go2-Gaits-v0",
        "Legged/Go2-Robust-v0",
    ],
)
def test_another_default_type_of_torch_and_numpy_sizes_change_nothing(
    task_id, random_actions, assert_same
):
    def roll(size: Any, default: torch.dtype) -> list[Any]:
        torch.set_default_dtype(default)
        try:
            env = gym.make_vec(task_id, num_envs=size, array="torch", max_episode_steps=size * 4)
            results = [env.reset(seed=1)]
            for action in torch.from_numpy(random_actions(20, 3, env.single_action_space.shape[0])):
                results.append(env.step(action))
                results[-1][4].get("final_info", {}).pop("episode", None)
                results[-1][4].pop("episode", None)
            core = env.unwrapped
            core.set_state(core.get_state())
            return results
        finally:
            torch.set_default_dtype(torch.float32)

    assert_same(roll(np.int64(3), torch.float64), roll(3, torch.float32))


def test_a_single_environment_takes_numpy_seeds(assert_same):
    env = gym.make("Legged/Go2-Flat-v0")
    assert_same(env.reset(seed=np.int64(3)), env.reset(seed=3))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("noise", -0.1),
        ("noise", float("inf")),
        ("clip", (1.0, -1.0)),
        ("clip", (float("nan"), 1.0)),
    ],
)
def test_noise_below_zero_and_bounds_the_wrong_way_round_are_refused(
    field: str, value: object, make_vec
) -> None:
    cfg = make_task_cfg("Legged/Go2-Flat-v0")
    setattr(cfg.observations["policy"].terms["ang_vel"], field, value)
    with pytest.raises(ValueError, match=rf"ang_vel.*{field}"):
        make_vec(1, cfg=cfg)


def test_terms_that_truncate_are_saved(make_vec: Any) -> None:
    changes = {"terminations": {"over": TerminationTermCfg(_always, time_out=True)}}
    env, other = (make_vec(2, cfg=changes, array="torch").unwrapped for _ in range(2))
    env.reset(seed=0)
    env.step(torch.zeros(2, 12))
    other.set_state(env.get_state())
    assert env.terminations.time_outs.all()
    assert torch.equal(other.terminations.time_outs, env.terminations.time_outs)


def _always(env: Any) -> torch.Tensor:
    return torch.ones(env.num_envs, dtype=torch.bool)
