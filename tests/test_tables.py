"""Texts of objects (``repr`` and ``str``), and wrong fields that configurations refuse."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass, replace

import gymnasium as gym
import pytest

from legged_envs import make_task_cfg
from legged_envs.configuration import Configuration
from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.managers import RewardTermCfg
from legged_envs.motions import MotionLibrary, shipped_motions
from legged_envs.policy.policy import load_shipped_policy
from legged_envs.robots import G1_29, GO2
from legged_envs.storage import RolloutStorageMM
from legged_envs.tasks import TASKS
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.wrappers import ActionRepeat, ActionScale, AutoReset, TimeLimit

GO2_TASK = "Legged/Go2-Flat-v0"


def parts_of(value: object) -> list[object]:
    """A configuration and everything in it."""
    inner = [*vars(value).values()] if isinstance(value, Configuration) else []
    inner += [*value.values()] if isinstance(value, dict) else []
    own = [value] if isinstance(value, Configuration) else []
    return own + [part for item in inner for part in parts_of(item)]


@pytest.mark.parametrize("task_id", [name for name in TASKS if name.startswith("Legged/")])
def test_every_object_says_what_it_is_on_a_line(task_id, make_vec, make_single):
    env, single = make_vec(2, task_id), make_single(task_id)
    core = env.unwrapped
    shown = [
        env,
        env.env,
        core,
        single,
        single.unwrapped,
        core.sim,
        core.robot,
        core.sim.robot_view,
    ]
    shown += [
        *core.managers.values(),
        *core.rewards.terms,
        *core.observations.groups.values(),
        *parts_of(core.cfg),
    ]
    assert len(parts_of(core.cfg)) > 40
    for each in shown:
        line = repr(each)
        assert len(line) < 151 and "\n" not in line and " at 0x" not in line, line
        assert f"{each}" == line, "what is written into a text is the line, not pages"
    inner = f"{type(core).__name__}({task_id}, num_envs=2)"
    assert repr(env) == f"<AutoReset, <EpisodeStatistics, <TimeLimit, {inner}>>>"
    assert repr(single.unwrapped) == f"<LeggedEnv<{task_id}>>"


def test_lines_name_what_matters():
    cfg = make_task_cfg(GO2_TASK)
    assert (
        repr(cfg.sim) == "SimCfg()"
        and repr(override(cfg, {"sim.dt": 0.004}).sim) == "SimCfg(dt=0.004)"
    )
    assert repr(cfg.robot) == "RobotCfg('go2', 12 joints, 4 feet)"
    tracking = "RewardTermCfg(func=tracking_lin_vel, weight=2.5, params={'sigma': 0.25})"
    assert repr(cfg.rewards["tracking_lin_vel"]) == tracking
    storage = RolloutStorageMM("rl", 4, 8, (5,), None, None, None, (3,))
    assert repr(storage) == "RolloutStorageMM('rl', num_envs=4, step 0 of 8)"
    library = MotionLibrary(shipped_motions(G1_29), G1_29)
    assert (
        repr(library)
        == f"MotionLibrary('g1_29', {library.num_clips} clips: {', '.join(library.names)})"
    )
    assert all(name in str(library) for name in library.names)
    policy = load_shipped_policy(GO2_TASK)
    assert repr(policy) == f"Policy({GO2_TASK}, policy)"


def test_printed_is_what_is_there(make_vec, make_single):
    env, single = make_vec(2), make_single()
    core = env.unwrapped
    assert str(core).startswith(f"{core}\nrobot ") and str(env) == f"{env}\n\n{core!s}"
    assert str(single.unwrapped).startswith(
        "<LeggedEnv<Legged/Go2-Flat-v0>>\n\nCoreVectorEnv(num_envs=1)\nrobot "
    )
    row = next(line for line in str(core.rewards).splitlines() if line.startswith("joint_torque "))
    assert row.split() == ["joint_torque", "joint_torque", "-0.0001"]
    cfg = make_task_cfg(GO2_TASK)
    text = str(cfg)
    for name in (
        *cfg.rewards,
        *cfg.events,
        *cfg.observations["critic"].terms,
        "observations.critic.terms",
    ):
        assert f"\n{name} " in text or f"\n{name}\n" in text, name
    assert all(f"\n{joint} " in str(GO2) for joint in GO2.joint_names)
    mixed = str(make_task_cfg("Legged/G1-Mimic-v0"))
    assert "velocity  VelocityCommandCfg(" in mixed and "motion    MotionCommandCfg(" in mixed


def test_a_notebook_gets_tables(make_vec):
    env = make_vec(2)
    html = env._repr_html_()
    assert (
        html.count("<table>") == str(env).count("\n\n") + 1 and "<td>tracking_lin_vel</td>" in html
    )
    cfg = replace(make_task_cfg(GO2_TASK), rewards={"<b>": RewardTermCfg(lambda env: None, 1.0)})
    assert "<b>" not in cfg._repr_html_() and "&lt;b&gt;" in cfg._repr_html_()
    assert env.unwrapped.sim._repr_html_() is None, "then a notebook shows the line"


def test_other_peoples_wrappers_write_a_line_too(make_single):
    core = gym.make_vec(GO2_TASK, num_envs=2, autoreset_mode="Disabled", statistics=False).unwrapped
    assert repr(gym.wrappers.vector.TransformReward(core, lambda reward: reward)).endswith(
        "num_envs=2)>"
    )
    assert (
        repr(gym.wrappers.ClipAction(make_single().unwrapped))
        == f"<ClipAction<LeggedEnv<{GO2_TASK}>>>"
    )
    assert repr(ActionRepeat(ActionScale(TimeLimit(core, 9), -2, 2), 2)).startswith(
        "<ActionRepeat, <ActionScale, <Time"
    )
    plain = AutoReset(gym.make_vec("CartPole-v1", 1, "sync", {"autoreset_mode": "Disabled"}))
    assert str(plain) == repr(plain)


# --- fields -----------------------------------------------------------------------------------------------------------


def test_a_configuration_refuses_what_it_has_not():
    cfg = make_task_cfg(GO2_TASK)
    with pytest.raises(
        AttributeError,
        match=r"TaskCfg.*'reward'.*'rewards'.*costs",
    ):
        cfg.reward = {}
    for part, name in (
        (cfg.sim, "timestep"),
        (cfg.robot, "kps"),
        (cfg.rewards["joint_torque"], "wieght"),
    ):
        with pytest.raises(AttributeError, match=name):
            setattr(part, name, 1.0)
    for part in parts_of(cfg):
        with pytest.raises(AttributeError):
            part.colour = "red"
    with pytest.raises(AttributeError, match=r"PPOCfg.*'learning_rat'.*'learning_rate'"):
        PPOCfg().learning_rat = 1e-3
    assert repr(TrainCfg(GO2_TASK)) == f"TrainCfg(task_id={GO2_TASK!r})"
    assert vars(cfg) == vars(make_task_cfg(GO2_TASK)), "nothing was set"


def test_what_a_configuration_has_can_be_set_and_copied():
    cfg = make_task_cfg(GO2_TASK)
    cfg.episode_length_s, cfg.rewards["joint_torque"].weight = 7.0, -1.0
    for other in (
        copy.copy(cfg),
        copy.deepcopy(cfg),
        pickle.loads(pickle.dumps(cfg)),
        replace(cfg),
        override(cfg, {}),
    ):
        assert (
            other == cfg
            and repr(other) == repr(cfg)
            and other.rewards["joint_torque"].weight == -1.0
        )


class Plain(TaskCfg):
    gravity_scale = 1.0


@dataclass
class Declared(TaskCfg):
    slope: float = 0.1

    def __post_init__(self) -> None:
        self.slope = 2 * self.slope


def test_a_subclass_has_what_it_declares():
    plain, declared = Plain(GO2), Declared(GO2)
    plain.gravity_scale, declared.slope = 2.0, 0.5
    assert (plain.gravity_scale, declared.slope, Declared(GO2).slope) == (2.0, 0.5, 0.2)
    assert repr(declared).startswith("Declared(robot=RobotCfg('go2'") and "slope=0.5" in repr(
        declared
    )
    for cfg in (plain, declared):
        with pytest.raises(AttributeError, match=f"{type(cfg).__name__}.*'slop'"):
            cfg.slop = 1.0
