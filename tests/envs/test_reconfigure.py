"""Changing a task while it runs, and schedules that do so."""

import copy
from typing import Any

import pytest
import torch

from legged_envs import make_task_cfg
from legged_envs.configuration import Configuration
from legged_envs.managers import CurriculumTermCfg, RewardTermCfg
from legged_envs.mdp import curricula, rewards
from legged_envs.mdp.commands import CommandTerm

CHANGES = {
    "rewards.tracking_lin_vel.params.sigma": 0.5,
    "costs.joint_velocity.params.soft_limit": 0.1,
    "terminations.fallen.params.max_projected_gravity": -0.9,
    "observations.policy.terms.joint_pos.noise": 0.2,
    "observations.policy.terms.gravity.scale": 3.0,
    "actions.joint_position.scale": 0.3,
    "events.push.params.velocity": 3.0,
    "events.push.interval_s": (0.02, 0.02),
    "sim.dt": 0.01,
    "sim.decimation": 2,
}


def rollout(env: Any, steps: int = 8) -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(1)
    parts = []
    for _ in range(steps):
        observation, *outcome, info = env.step(torch.rand(4, 12, generator=draw) * 2 - 1)
        parts += [observation["policy"], observation["critic"], *outcome, info["costs"]]
    return parts


def equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(map(torch.equal, one, other))


def test_a_task_changed_while_it_runs_goes_on_as_one_made_so(make_vec: Any) -> None:
    kwargs = {"array": "torch", "observations": "dict"}
    changed, made, left = (
        make_vec(4, **kwargs),
        make_vec(4, cfg=CHANGES, **kwargs),
        make_vec(4, **kwargs),
    )
    for env in (changed, made, left):
        env.reset(seed=3)
    before = rollout(changed, 4)
    assert equal(before, rollout(left, 4))
    state = changed.unwrapped.get_state()
    changed.unwrapped.reconfigure(dict(list(CHANGES.items())[:3]))
    changed.unwrapped.reconfigure(dict(list(CHANGES.items())[3:]))
    assert changed.unwrapped.decimation == 2
    assert changed.unwrapped.changes == CHANGES
    changes = made.unwrapped.get_state()["own"]["changes"]
    made.unwrapped.set_state({**state, "own": {**state["own"], "changes": changes}})
    later = changed.unwrapped.get_state()
    after = rollout(changed)
    assert equal(after, rollout(made)) and not equal(after, rollout(left))
    left.unwrapped.set_state(later)  # of a task that was changed, into one that was not
    assert left.unwrapped.changes == CHANGES and equal(after, rollout(left))
    changed.unwrapped.set_state(state)  # and back
    left.unwrapped.set_state(state)
    assert not changed.unwrapped.changes and equal(rollout(changed), rollout(left))


def test_weights_that_were_set_stay_and_limits_change(make_vec: Any) -> None:
    core = make_vec(2).unwrapped
    core.reset(seed=0)
    core.rewards.set_weight("joint_torque", -0.5)
    core.reconfigure({"costs.body_contact.limit": 0.5, "rewards.joint_acc.weight": -0.25})
    weights = dict(zip(core.rewards.names, core.rewards.weights, strict=True))
    assert (weights["joint_torque"], weights["joint_acc"]) == (-0.5, -0.25)
    assert core.cost_limits[core.cost_names.index("body_contact")] == 0.5


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("rewards.tracking_lin_vel.params.sigmma", 1.0, "sigmma"),
        ("rewards.tracking_lin_vel.weight", "much", "weight"),
        ("commands.velocity.heading", True, "heading"),
        ("sim.dt", 0.01, "4 physics steps of 0.01 s"),
        ("sim.iterations", 3, "dt and decimation"),
        ("rewards.joint_torque.weight", 0.0, "rewards.*: joint_torque"),
        ("observations.policy.history", 3, "observations.*135"),
        (
            "observations.policy.terms.gravity",
            None,
            "observations.policy.*: gravity",
        ),
        ("costs.body_contact.limit", -1.0, "body_contact.*-1.0"),
    ],
)
def test_what_cannot_be_changed_changes_nothing(
    make_vec: Any, path: str, value: Any, words: str
) -> None:
    envs = [make_vec(4, array="torch", observations="dict") for _ in range(2)]
    for env in envs:
        env.reset(seed=0)
    with pytest.raises((ValueError, TypeError), match=words):
        envs[0].unwrapped.reconfigure({"rewards.tracking_lin_vel.params.sigma": 9.0, path: value})
    assert not envs[0].unwrapped.changes and equal(*map(rollout, envs))


class Counting(CommandTerm):
    """A command whose state grows."""

    STATE = ("value", "moving", "still", "results")

    def __init__(self, env: Any):
        self.value = torch.zeros(env.num_envs, 1)
        self.moving = torch.ones(env.num_envs)
        self.still = torch.zeros(env.num_envs)
        self.results: list[int] = []

    def reset(self, env_ids: torch.Tensor) -> None:
        self.results.append(len(env_ids))

    def advance(self) -> None:
        pass


class CountingCfg(Configuration):
    def build(self, env: Any) -> Counting:
        return Counting(env)


def test_a_state_of_any_length_continues_in_a_changed_task(make_vec: Any) -> None:
    cfg = make_task_cfg("Legged/Go2-Flat-v0")
    cfg.commands["counting"] = CountingCfg()
    envs = [make_vec(4, cfg=cfg, array="torch", observations="dict") for _ in range(2)]
    for env in envs:
        env.reset(seed=0)
    for _ in range(3):
        envs[0].reset(options={"reset_mask": torch.tensor([True, False, True, False])})
    envs[0].unwrapped.reconfigure({"events.push.params.velocity": 3.0})
    envs[1].set_state(envs[0].get_state())
    results = [env.unwrapped.commands.terms["counting"].results for env in envs]
    assert results[0] == results[1] and len(results[0]) > 3
    assert equal(*map(rollout, envs))


def test_tasks_of_other_frameworks_are_not_reconfigured(make_vec: Any) -> None:
    core = make_vec(1, task="Legged/Go2-Legs-v0").unwrapped
    with pytest.raises(ValueError, match="reconfigure"):
        core.reconfigure({"rewards.joint_torque.weight": -1.0})


def test_a_schedule_moves_any_path_piece_by_piece_and_is_resumed(make_vec: Any) -> None:
    path = "events.push.params.velocity"
    params = {"path": path, "steps": (0, 8), "values": (0.0, 1.0), "pieces": 2}
    cfg = {
        "curriculum": {"push": CurriculumTermCfg(curricula.schedule, params)},
        "events.push.interval_s": (0.02, 0.02),
    }
    kwargs = {"cfg": cfg, "array": "torch", "observations": "dict", "max_episode_steps": 2}
    envs = [make_vec(4, **kwargs) for _ in range(2)]
    for env in envs:
        env.reset(seed=0)
    seen = []
    for _ in range(5):
        rollout(envs[0], 2)
        seen.append(envs[0].unwrapped.changes[path])
    assert seen == [0.0, 0.5, 0.5, 1.0, 1.0]
    envs[1].set_state(envs[0].get_state())
    assert envs[1].unwrapped.events.cfg["push"].params["velocity"] == 1.0
    assert equal(*map(rollout, envs))


def test_a_term_that_comes_as_another_goes_is_refused(make_vec: Any) -> None:
    """With another set of terms, the old weights would belong to other terms."""
    env = make_vec(2, cfg={"rewards.lin_vel_z.weight": 0.0})
    env.reset(seed=0)
    before = env.unwrapped.rewards.weights
    with pytest.raises(ValueError, match=r"rewards.*: base_height, lin_vel_z"):
        env.unwrapped.reconfigure(
            {"rewards.lin_vel_z.weight": -1.0, "rewards.base_height.weight": 0.0}
        )
    assert env.unwrapped.rewards.weights == before


def _moving(env: Any, weight: float = 1.0) -> torch.Tensor:
    return env.robot.joint_vel.abs().sum(1) * weight


def test_a_parameter_called_weight_is_no_weight(make_vec: Any) -> None:
    cfg = make_task_cfg("Legged/Go2-Flat-v0")
    cfg.rewards["moving"] = RewardTermCfg(_moving, weight=0.5, params={"weight": 1.0})
    env = make_vec(2, cfg=cfg).unwrapped
    env.reset(seed=0)
    env.reconfigure({"rewards.moving.params.weight": 7.0})
    assert dict(zip(env.rewards.names, env.rewards.weights, strict=True))["moving"] == 0.5


def test_a_copy_made_before_the_first_reset_has_the_changes(make_vec: Any) -> None:
    env = make_vec(2)
    env.unwrapped.reconfigure({"rewards.tracking_lin_vel.weight": 5.0})
    other = copy.deepcopy(env)
    assert other.unwrapped.rewards.weights == env.unwrapped.rewards.weights
    with pytest.raises(RuntimeError, match="before reset"):
        other.step(other.action_space.sample())
    assert (other.reset(seed=1)[0] == env.reset(seed=1)[0]).all()


def test_a_weight_may_be_changed_by_any_path_that_holds_it(make_vec: Any) -> None:
    core = make_vec(2).unwrapped
    core.reset(seed=0)
    core.rewards.set_weight("joint_acc", -0.25)

    def weights() -> dict[str, float]:
        return dict(zip(core.rewards.names, core.rewards.weights, strict=True))

    with pytest.warns(FutureWarning, match="'torques' is now named 'joint_torque'"):
        core.reconfigure({"rewards.torques.weight": -5.0})
        assert weights()["joint_torque"] == -5.0
        core.reconfigure({"rewards.joint_torque": RewardTermCfg(rewards.joint_torque, -7.0)})
    assert (weights()["joint_torque"], weights()["joint_acc"]) == (-7.0, -0.25)
    terms = {**make_task_cfg("Legged/Go2-Flat-v0").rewards}
    core.reconfigure({"rewards": terms})
    assert weights()["joint_torque"] == terms["joint_torque"].weight


def test_the_last_change_of_a_parameter_counts(make_vec: Any) -> None:
    core = make_vec(2).unwrapped
    velocity = "events.push.params.velocity"
    push = copy.deepcopy(core.cfg.events["push"])
    push.params["velocity"] = 3.0
    for changes in ({velocity: 1.0}, {"events.push": push}, {velocity: 2.0}):
        core.reconfigure(changes)
    assert list(core.changes) == ["events.push", velocity]
    assert core.events.cfg["push"].params["velocity"] == 2.0
