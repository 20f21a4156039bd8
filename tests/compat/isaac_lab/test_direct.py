"""Tasks in Isaac Lab's direct workflow."""

import itertools
import re
import sys
from collections import deque
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch
from forms import register_form
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Tuple

import legged_envs
from legged_envs import rotation
from legged_envs.checks import match_names
from legged_envs.compat.isaac_lab.cfg import (
    InteractiveSceneCfg,
    RigidBodyMaterialCfg,
    SimulationCfg,
)
from legged_envs.compat.isaac_lab.contact_sensor import ContactSensor, ContactSensorCfg
from legged_envs.compat.isaac_lab.direct import DirectRLEnv, DirectRLEnvCfg
from legged_envs.compat.isaac_lab.entities import Articulation
from legged_envs.compat.isaac_lab.manager_based import EventTermCfg as IsaacEventTermCfg
from legged_envs.compat.isaac_lab.manager_based import ManagerBasedEnvCfg
from legged_envs.compat.isaac_lab.noise import (
    ConstantNoiseCfg,
    GaussianNoiseCfg,
    NoiseModel,
    NoiseModelCfg,
    NoiseModelWithAdditiveBiasCfg,
    UniformNoiseCfg,
)
from legged_envs.compat.isaac_lab.scene import TerrainImporterCfg
from legged_envs.compat.isaac_lab.scene_entity import SceneEntityCfg
from legged_envs.compat.isaac_lab.spaces import space_from
from legged_envs.configuration import configclass
from legged_envs.managers import EventTermCfg
from legged_envs.mdp import events
from legged_envs.mdp.actions import JointPositionCfg
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.rng import RandomStreams
from legged_envs.robots import GO2
from legged_envs.sim import ObjectCfg, PlacedRobot, ViewerCfg
from legged_envs.tasks import TASKS


@configclass
class StandCfg(DirectRLEnvCfg):
    episode_length_s = 20.0
    decimation = 4
    action_space = 12
    observation_space = 6
    state_space = 3
    sim = SimulationCfg(dt=0.005, num_threads=1)
    scene = InteractiveSceneCfg(num_envs=2)
    robot = GO2
    cost_limits = {"tilt": 0.1}  # noqa: RUF012
    commands = {"velocity": VelocityCommandCfg()}  # noqa: RUF012
    events = {"root": EventTermCfg(events.reset_root, "reset", params={"velocity": 0.3})}  # noqa: RUF012


class Stand(DirectRLEnv):
    def _get_observations(self):
        return {
            "policy": torch.cat((self.robot.projected_gravity, self.robot.lin_vel_b), 1),
            "critic": self.commands["velocity"],
        }

    def _get_rewards(self):
        return self.robot.base_height

    def _get_dones(self):
        return self.robot.projected_gravity[:, 2] > 0.0, self.episode_length_buf >= 10

    def _get_costs(self):
        return {"tilt": 1.0 + self.robot.projected_gravity[:, 2].clamp_min(-1.0)}


@pytest.fixture(autouse=True, scope="module")
def ids():
    """Ids that other modules, which go through all there are, do not see."""
    before = set(TASKS)
    legged_envs.register("Test/Stand-v0", Stand, StandCfg)
    yield
    for name in set(TASKS) - before:
        del TASKS[name], gym.registry[name]


class EndsInTime(Stand):
    def _get_dones(self):
        is_late = self.episode_length_buf >= self.max_episode_length - 1
        return torch.zeros_like(is_late), is_late


@pytest.mark.parametrize(("limit", "steps"), [(7, 7), (None, 9), (np.int64(23), 22)])
def test_a_longer_time_limit_reaches_the_methods_that_end_episodes(limit, steps):
    legged_envs.register("Test/EndsInTime-v0", EndsInTime, StandCfg)
    cfg = {"episode_length_s": 0.2, "action_limit": 2.0}
    env = gym.make_vec("Test/EndsInTime-v0", 2, cfg=cfg, max_episode_steps=limit)
    env.reset(seed=0)
    assert env.unwrapped.cfg.action_limit == 2.0
    for _ in range(steps):
        _, _, _, truncated, _ = env.step(np.zeros((2, 12), np.float32))
    assert truncated.all()
    env.close()


def rollout(envs, steps=25, seed=0):
    rng = np.random.default_rng(seed)
    results = [envs.reset(seed=seed)[0]]
    for _ in range(steps):
        *step, info = envs.step(rng.uniform(-1, 1, envs.action_space.shape).astype(np.float32))
        results += [*step, info["costs"]]
    return results


def test_example_is_go2_flat():
    changes = {
        "events.push.interval_s": (0.5, 1.5),
        "commands.velocity.resampling_time_s": (0.5, 2.0),
    }
    changes |= {"episode_length_s": 3.0, "events.root.params.velocity": 1.0}
    ids = ("Legged/Go2-Flat-v0", register_form("direct"))
    ours, theirs = (gym.make_vec(name, 24, cfg=changes, observations="dict") for name in ids)
    rng, ended = np.random.default_rng(0), np.zeros(2, int)
    same = [(ours.reset(seed=3)[0], theirs.reset(seed=3)[0])]
    for t in range(160):
        action = rng.uniform(-1.2, 1.2, (24, 12)).astype(np.float32) * (
            1.0 if t % 100 > 50 else 0.1
        )
        (*a, info), (*b, other) = ours.step(action), theirs.step(action)
        over = a[2] | a[3]
        ended += [a[2].sum(), a[3].sum()]
        assert ("final_obs" in info) == ("final_obs" in other) == over.any()
        if over.any():
            same += [({k: v[over] for k, v in i["final_obs"].items()} for i in (info, other))]
        same += [(a[0], b[0])]
        assert all(
            np.array_equal(x, y)
            for x, y in zip((*a[1:], info["costs"]), (*b[1:], other["costs"]), strict=True)
        )
    for first, second in same:
        assert first.keys() == second.keys()
        assert all(np.array_equal(first[name], second[name]) for name in first)
    assert ended.min() > 0


class Held(Stand):
    """The targets of the action manager, set before each physics step."""

    calls = 0

    def _apply_action(self):
        self.calls += 1
        super()._apply_action()


def test_apply_action_runs_before_each_physics_step():
    once, each = Stand(StandCfg()), Held(StandCfg())
    once.reset(seed=0), each.reset(seed=0)
    for _ in range(12):
        action = torch.rand(2, 12) * 2 - 1
        ours, theirs = once.step(action), each.step(action)
        assert all(torch.equal(ours[0][name], theirs[0][name]) for name in ours[0])
        assert all(torch.equal(a, b) for a, b in zip(ours[1:4], theirs[1:4], strict=True))
    assert each.calls == 12 * 4


class Recorder(DirectRLEnv):
    """Records which methods run, and the values of the counters."""

    def __init__(self, cfg, render_mode=None, **kwargs):
        super().__init__(cfg, render_mode, **kwargs)
        self.log = []

    def _note(self, name):
        self.log.append((name, self.episode_length_buf.tolist()))

    def _setup_scene(self):
        self._robot = Articulation(self.cfg.robot)
        self.scene.articulations["robot"] = self._robot

    def _pre_physics_step(self, actions):
        self._note("pre")
        self.given = actions.clone()

    def _apply_action(self):
        self._note(f"apply {self._robot.data.joint_pos[0, 0]:.9f}")

    def _get_dones(self):
        self._note("dones")
        return torch.zeros(2, dtype=torch.bool), self.episode_length_buf >= 2

    def _get_rewards(self):
        self._note(f"rewards {self.reset_time_outs.tolist()}")
        return torch.ones(2)

    def _get_observations(self):
        self._note("observations")
        return {"policy": torch.zeros(2, 6)}

    def _reset_idx(self, env_ids):
        self._note(f"reset {env_ids.tolist()}")
        super()._reset_idx(env_ids)
        self.extras["log"] = {"mean": torch.tensor(0.5)}


def recorder(**changes):
    return Recorder(StandCfg(state_space=0, cost_limits={}, **changes))


def test_order_counters_and_log():
    env = recorder()
    env.reset(seed=0)
    assert [name for name, _ in env.log] == ["reset [0, 1]", "observations"]
    env.log.clear()
    env.step(torch.zeros(2, 12))
    names = [name for name, _ in env.log]
    assert names[0] == "pre" and names[5:] == ["dones", "rewards [False, False]", "observations"]
    assert len(set(names[1:5])) == 4 and all(
        name.startswith("apply") for name in names[1:5]
    )  # fresh in each
    assert dict(env.log)["pre"] == [0, 0] and dict(env.log)["dones"] == [1, 1]
    env.log.clear()
    _, reward, terminated, truncated, extras = env.step(torch.zeros(2, 12))
    assert [name for name, _ in env.log][-3:] == ["observations", "reset [0, 1]", "observations"]
    assert truncated.all() and not terminated.any() and reward.tolist() == [1.0, 1.0]
    assert extras["log"]["mean"] == 0.5 and env.common_step_counter == 2
    assert env.episode_length_buf.tolist() == [0, 0] and env.reset_buf.all()
    env.episode_length_buf = torch.tensor([1, 0])
    assert env.step(torch.zeros(2, 12))[3].tolist() == [True, False]
    assert (env.physics_dt, env.step_dt, env.max_episode_length, env.max_episode_length_s) == (
        0.005,
        0.02,
        1000,
        20.0,
    )
    assert env.is_vector_env and env.unwrapped is env and env.has_wrapper_attr("scene")
    assert env.state_space is None
    assert env.render() is None and env.set_debug_vis(True) is False
    env.close()


def test_actions_reach_the_task_within_their_bounds():
    env = recorder()
    env.reset(seed=0)
    env.step(torch.full((2, 12), 3.0))
    assert (env.given == 1.0).all()
    wide = recorder(action_space=Box(-2.0, 2.0, (12,)))
    wide.reset(seed=0)
    wide.step(torch.full((2, 12), 3.0))
    assert (wide.given == 2.0).all()
    taking = type(
        "Taking",
        (Recorder,),
        {"_pre_physics_step": lambda self, actions: setattr(self, "given", actions)},
    )
    mixed = taking(StandCfg(state_space=0, cost_limits={}, action_space={"leg": {4}, "push": 2}))
    mixed.reset(seed=0)
    action = {"leg": torch.tensor([1, 3]), "push": torch.zeros(2, 2)}
    mixed.step(action)
    assert mixed.given["leg"].tolist() == [1, 3] and mixed.given["push"].shape == (2, 2)


def test_torque_driven_robots_take_efforts():
    class Driven(Recorder):
        def _apply_action(self):
            self._robot.set_joint_effort_target(3.0 * self.given, joint_ids=[*range(12)])

    robot = replace(GO2, actuators=("torque",) * 12, kp=(0.0,) * 12, kd=(0.0,) * 12)
    env = Driven(StandCfg(state_space=0, cost_limits={}, robot=robot))
    env.reset(seed=0)
    action = torch.rand(2, 12)
    env.step(action)
    assert torch.allclose(env.sim.joint_torque, 3.0 * action) and torch.equal(
        env.core.actions.current, action
    )


def test_finite_horizon_ends_are_terminations():
    env = recorder(is_finite_horizon=True)
    env.reset(seed=0)
    env.step(torch.zeros(2, 12))
    assert env.step(torch.zeros(2, 12))[2].all()


def test_seed_of_the_configuration_and_static_seed():
    first = [Stand(StandCfg(seed=5)).reset()[0]["policy"] for _ in range(2)]
    assert torch.equal(*first) and torch.equal(
        first[0], Stand(StandCfg()).reset(seed=5)[0]["policy"]
    )
    assert not torch.equal(first[0], Stand(StandCfg(seed=6)).reset()[0]["policy"])
    assert DirectRLEnv.seed(3) == 3
    drawn = torch.rand(1), np.random.rand()
    assert (
        DirectRLEnv.seed(3) == 3
        and (torch.rand(1), np.random.rand()) == drawn
        and DirectRLEnv.seed() >= 0
    )


def test_state_comes_back_with_the_task_and_its_sensors():
    class Feet(Recorder):
        def _setup_scene(self):
            super()._setup_scene()
            self.contact = ContactSensor(
                ContactSensorCfg(prim_path="Robot/.*foot", history_length=2)
            )
            self.scene.sensors["contact"] = self.contact

        def _get_observations(self):
            times = self.contact.data.current_contact_time.sum(1, keepdim=True)
            return {"policy": torch.cat((self.robot.joint_pos[:, :5], times), 1)}

    env = Feet(StandCfg(state_space=0, cost_limits={}))
    env.core.reset(seed=0)
    for _ in range(5):
        env.core.step(torch.rand(2, 12))
    state, counter = env.core.get_state(), env.common_step_counter
    assert (env.contact.data.current_contact_time > 0).any()
    first = env.core.step(torch.ones(2, 12))[0]["policy"]
    env.core.set_state(state)
    assert env.common_step_counter == counter
    assert torch.equal(first, env.core.step(torch.ones(2, 12))[0]["policy"])


@pytest.mark.parametrize(
    ("spec", "space"),
    [
        (7, Box(-1, 1, (7,))),
        ([64, 64, 3], Box(-1, 1, (64, 64, 3))),
        ({2}, Discrete(2)),
        ([{2}, {5}], MultiDiscrete([2, 5])),
        ({"joints": 7, "gripper": {2}}, Dict({"joints": Box(-1, 1, (7,)), "gripper": Discrete(2)})),
        ((7, {2}), Tuple((Box(-1, 1, (7,)), Discrete(2)))),
        (Discrete(3), Discrete(3)),
    ],
)
def test_spaces_of_the_table(spec, space):
    assert space_from(spec, -1.0, 1.0, "x") == space


@pytest.mark.parametrize(
    "spec", [0, -1, None, "12", 1.5, True, {0}, {1, 2}, [], {}, (), [3, {2}], {"a": 0}]
)
def test_bad_spaces_name_the_field(spec):
    with pytest.raises(ValueError, match=r"StandCfg\.observation_space.*got"):
        Stand(StandCfg(observation_space=spec))


def noisy(cfg, envs=64):
    env = Stand(
        StandCfg(scene=InteractiveSceneCfg(num_envs=envs), observation_noise_model=cfg, events={})
    )
    quiet = Stand(StandCfg(scene=InteractiveSceneCfg(num_envs=envs), events={}))
    pairs = [(env.reset(seed=0)[0]["policy"], quiet.reset(seed=0)[0]["policy"])]
    for _ in range(8):
        action = torch.zeros(envs, 12)
        pairs.append((env.step(action)[0]["policy"], quiet.step(action)[0]["policy"]))
    return (
        torch.stack([a - b for a, b in pairs]),
        torch.stack([b for _, b in pairs]),
        torch.stack([a for a, _ in pairs]),
    )


def test_noise_models():
    gauss, _, _ = noisy(NoiseModelCfg(noise_cfg=GaussianNoiseCfg(mean=0.5, std=0.1)))
    assert abs(gauss.mean() - 0.5) < 0.01 and abs(gauss.std() - 0.1) < 0.005
    assert (
        abs(((gauss - 0.5) / 0.1).pow(4).mean() - 3.0) < 0.4
    )  # the fourth moment of a normal distribution
    low, high = torch.tensor([0.0, -1, -1, -1, -1, -1]), torch.ones(6)
    uniform, _, _ = noisy(NoiseModelCfg(noise_cfg=UniformNoiseCfg(n_min=low, n_max=high)))
    assert (
        uniform[..., 0].min() > -1e-6
        and abs(uniform[..., 0].mean() - 0.5) < 0.05
        and uniform[..., 1].min() < -0.9
    )
    _, plain, scaled = noisy(
        NoiseModelCfg(noise_cfg=ConstantNoiseCfg(bias=2.0, operation="scale")), 2
    )
    assert torch.equal(scaled, plain * 2.0)
    _, _, fixed = noisy(NoiseModelCfg(noise_cfg=ConstantNoiseCfg(bias=2.0, operation="abs")), 2)
    assert (fixed == 2.0).all()


def test_bias_holds_for_an_episode_and_for_others_resets():
    uniform = UniformNoiseCfg(n_min=-1.0, n_max=1.0, operation="abs")
    cfg = NoiseModelWithAdditiveBiasCfg(noise_cfg=ConstantNoiseCfg(), bias_noise_cfg=uniform)
    difference, _, _ = noisy(cfg, 4)
    assert torch.allclose(difference, difference[:1], atol=1e-5) and difference[0].std() > 0.3
    alone, both = (Stand(StandCfg(observation_noise_model=cfg)) for _ in range(2))
    for env in (alone, both):
        env.core.reset(seed=0)
    both.core.reset(options={"reset_mask": torch.tensor([False, True])})
    first, second = (env.core.step(torch.zeros(2, 12))[0]["policy"] for env in (alone, both))
    assert torch.equal(first[0], second[0]) and not torch.equal(first[1], second[1])


def test_action_noise():
    env = recorder(action_noise_model=NoiseModelCfg(noise_cfg=ConstantNoiseCfg(bias=0.25)))
    env.reset(seed=0)
    env.step(torch.zeros(2, 12))
    assert (env.given == 0.25).all()


class Remembers(Stand):
    """Shows its last observations, which it keeps itself."""

    def __init__(self, cfg, render_mode=None, **kwargs):
        super().__init__(cfg, render_mode, **kwargs)
        self.past = torch.zeros(self.num_envs, 3, 6)

    def _get_observations(self):
        groups = super()._get_observations()
        self.past = torch.cat((self.past[:, 1:], groups["policy"].unsqueeze(1)), dim=1)
        return {**groups, "policy": self.past.flatten(1)}

    def _reset_idx(self, env_ids):
        super()._reset_idx(env_ids)
        self.past[env_ids] = 0.0


def test_a_reset_of_some_leaves_what_methods_keep_of_others():
    alone, both = (Remembers(StandCfg(observation_space=18)) for _ in range(2))
    first = alone.core.reset(seed=0)[0]["policy"][0]
    both.core.reset(seed=0)
    for t in range(6):
        if t % 2:
            rows = both.core.reset(options={"reset_mask": torch.tensor([False, True])})[0]["policy"]
            assert (
                torch.equal(rows[0], first) and (rows[1, :12] == 0.0).all() and rows[1, 12:].any()
            )
        action = torch.rand(2, 12)
        first, second = (env.core.step(action)[0]["policy"][0] for env in (alone, both))
        assert torch.equal(first, second)


class Smooths(Stand):
    """Shows a low-pass filtered gravity, which it keeps in a dict or a list, and the one before, in a deque."""

    def __init__(self, cfg, render_mode=None, **kwargs):
        super().__init__(cfg, render_mode, **kwargs)
        zeros = torch.zeros(self.num_envs, 3)
        self.kept = cfg.kept(zeros)
        self.past = deque([zeros, zeros.clone()], maxlen=2)

    def _get_observations(self):
        key = "a" if isinstance(self.kept, dict) else 0
        self.kept[key] = 0.5 * self.kept[key] + self.robot.projected_gravity
        self.past.append(self.kept[key].clone())
        return {
            **super()._get_observations(),
            "policy": torch.cat((self.kept[key], self.past[0]), 1),
        }


@pytest.mark.parametrize("kept", [lambda zeros: {"a": zeros}, lambda zeros: [zeros]])
def test_a_reset_of_some_leaves_what_containers_keep_of_others(kept):
    cfg = configclass(type("SmoothsCfg", (StandCfg,), {"__annotations__": {"kept": object}}))(
        kept=kept
    )
    alone, both = (Smooths(cfg) for _ in range(2))
    for env in (alone, both):
        env.core.reset(seed=0)
    for _ in range(4):
        rows = both.core.reset(options={"reset_mask": torch.tensor([False, True])})[0]["policy"]
        assert torch.equal(rows[0], alone.core.last_observation["policy"][0])
        action = torch.rand(2, 12)
        first, second = (env.core.step(action)[0]["policy"][0] for env in (alone, both))
        assert torch.equal(first, second)


def test_the_configuration_of_a_task_says_how_many_environments_there_are():
    class Counts(Stand):
        def __init__(self, cfg, render_mode=None, **kwargs):
            self.before = cfg.scene.num_envs
            super().__init__(cfg, render_mode, **kwargs)

        def _setup_scene(self):
            self.within = self.cfg.scene.num_envs, self.scene.cfg.num_envs

    legged_envs.register("Test/Counts-v0", Counts, StandCfg)
    task = gym.make_vec("Test/Counts-v0", 5).unwrapped.task.user
    assert (task.before, *task.within, task.num_envs) == (
        5,
        5,
        5,
        5,
    ) and StandCfg().scene.num_envs == 2


# What does not fit is an exception that names class and method.


def task(base=Stand, **methods):
    return type(
        "Mine", (base,), {name: lambda self, value=value: value for name, value in methods.items()}
    )


@pytest.mark.parametrize(
    ("method", "value"),
    [
        ("_get_rewards", torch.zeros(2, 1)),
        ("_get_rewards", torch.zeros(2, dtype=torch.float64)),
        ("_get_rewards", None),
        ("_get_rewards", torch.tensor([0.0, np.nan])),
        ("_get_dones", torch.zeros(2, dtype=torch.bool)),
        ("_get_dones", (torch.zeros(2), torch.zeros(2))),
        ("_get_costs", {"tilted": torch.zeros(2)}),
        ("_get_costs", {"tilt": -torch.ones(2)}),
        ("_get_observations", torch.zeros(2, 6)),
        ("_get_observations", {"policy": torch.zeros(2, 5), "critic": torch.zeros(2, 3)}),
        (
            "_get_observations",
            {"policy": torch.zeros(2, 6), "critic": torch.zeros(2, 3), "more": torch.zeros(2)},
        ),
        ("_get_observations", {"policy": torch.full((2, 6), np.inf), "critic": torch.zeros(2, 3)}),
        ("_get_states", torch.zeros(3)),
    ],
)
def test_wrong_results(method, value):
    methods = {method: value}
    if method == "_get_states":
        methods["_get_observations"] = {"policy": torch.zeros(2, 6)}
    names = r"_get_costs" if method == "_get_costs" else rf"Mine\.{method}"
    with pytest.raises(ValueError, match=names):
        task(**methods)(StandCfg()).core.build()


def test_trial_calls_leave_no_trace():
    class Traces(Stand):
        def __init__(self, cfg, render_mode=None, **kwargs):
            super().__init__(cfg, render_mode, **kwargs)
            self.calls, self.names, self.rows = 0, ["none"], {"a": [torch.zeros(2, 3)]}
            self.view = self.rows["a"][0][:, :1]

        def _get_observations(self):
            self.calls, self.made = self.calls + 1, True
            self.names.append(str(torch.rand(1)))
            self.rows["a"][0] += 1.0
            self.rows["b"] = np.random.rand()
            return super()._get_observations()

    torch.manual_seed(0), np.random.seed(0)
    env = Traces(
        StandCfg(
            events={"root": EventTermCfg(events.reset_root, "startup", params={"velocity": 0.3})}
        )
    )
    drawn = torch.rand(1), np.random.rand()
    torch.manual_seed(0), np.random.seed(0)
    assert drawn == (torch.rand(1), np.random.rand())
    assert (env.calls, env.names, list(env.rows), hasattr(env, "made")) == (
        0,
        ["none"],
        ["a"],
        False,
    )
    assert not env.rows["a"][0].any() and env.view.data_ptr() == env.rows["a"][0].data_ptr()
    assert (env.common_step_counter, env.extras) == (0, {}) and not env.core.commands[
        "velocity"
    ].any()
    assert torch.equal(
        env.scene.core.sim.root_pos_w, torch.tensor([[0.0, 0.0, GO2.base_height]] * 2)
    )
    with pytest.raises(RuntimeError, match="before reset"):
        env.core.step(torch.zeros(2, 12))


def test_missing_methods_and_fields():
    with pytest.raises(TypeError, match=r"Mine.*_get_dones"):
        type(
            "Mine",
            (DirectRLEnv,),
            {n: vars(Stand)[n] for n in ("_get_rewards", "_get_observations")},
        )(StandCfg())
    with pytest.raises(TypeError, match=r"Stand\._get_costs.*StandCfg\.cost_limits"):
        Stand(StandCfg(cost_limits={})).core.build()
    with pytest.raises(
        ValueError, match=r"Mine\._get_observations.*\['policy'\] where \['critic', 'policy'\]"
    ):
        task(_get_observations={"policy": torch.zeros(2, 6)})(StandCfg()).reset()
    with pytest.raises(TypeError, match=r"Stand\._apply_action is not written"):
        Stand(StandCfg(action_space=8)).core.build()
    with pytest.raises(
        AttributeError, match="StandCfg has no field 'decimatoin'; did you mean 'decimation'"
    ):
        StandCfg().decimatoin = 2
    for name, meant in {"action_spce": "action_space", "decimaton": "decimation"}.items():
        with pytest.raises(AttributeError, match=f"C.{name} .*'{meant}'"):
            configclass(type("C", (StandCfg,), {name: 3}))
    assert configclass(type("C", (StandCfg,), {"robot_2": GO2, "leg_1": 1}))().leg_1 == 1
    with pytest.raises(ValueError, match=r"ViewerCfg\.asset_name.*no 'robo'; did you mean 'robot'"):
        Stand(
            StandCfg(
                viewer=ViewerCfg(eye=(1.0, 1.0, 1.0), origin_type="asset_root", asset_name="robo")
            )
        )
    with pytest.raises(
        TypeError,
        match=r"Stand needs a legged_envs\..*direct\.DirectRLEnvCfg, got a .*ManagerBasedEnvCfg",
    ):
        (
            legged_envs.register("Test/Mixed-v0", Stand, ManagerBasedEnvCfg),
            gym.make_vec("Test/Mixed-v0", 1),
        )
    with pytest.raises(TypeError, match="num_actions"):
        StandCfg(num_actions=12)
    with pytest.raises(ValueError, match="NoRobotCfg has no robot"):
        Stand(configclass(type("NoRobotCfg", (StandCfg,), {"robot": None}))())
    with pytest.raises(ValueError, match=r"SimulationCfg\.gravity"):
        Stand(StandCfg(sim=SimulationCfg(gravity=(0.0, 0.0, -1.62))))
    with pytest.raises(ValueError, match=r"physics_material.*friction 0\.5 or 1"):
        Stand(
            StandCfg(sim=SimulationCfg(physics_material=RigidBodyMaterialCfg(static_friction=0.2)))
        )
    with pytest.raises(ValueError, match=r"observation_noise_model.*one dimension"):
        noise = NoiseModelCfg(noise_cfg=ConstantNoiseCfg())
        Stand(StandCfg(observation_space=Discrete(3), observation_noise_model=noise))
    with pytest.raises(ValueError, match="operation"):
        Stand(
            StandCfg(
                observation_noise_model=NoiseModelCfg(noise_cfg=ConstantNoiseCfg(operation="plus"))
            )
        ).reset()


# The scene.


@configclass
class WorldCfg(InteractiveSceneCfg):
    num_envs = 3
    robot = GO2
    friend = PlacedRobot(GO2, start=(2.0, 0.0, 1.0))
    box = ObjectCfg(pos=(0.0, 3.0, 0.5))
    feet = ContactSensorCfg(prim_path="{ENV}/Friend/.*foot", history_length=3)
    terrain = TerrainImporterCfg()


@pytest.fixture(scope="module")
def world():
    env = Stand(StandCfg(scene=WorldCfg(), events={}))
    env.core.reset(seed=0)
    env.core.step(torch.rand(3, 12, generator=torch.Generator().manual_seed(0)))
    return env


def test_data_are_the_simulation_in_isaac_labs_words(world):
    data, robot, sim = world.scene["robot"].data, world.robot, world.sim
    assert torch.equal(data.root_lin_vel_b, robot.lin_vel_b)
    assert torch.equal(data.projected_gravity_b, robot.projected_gravity)
    assert torch.equal(data.heading_w, robot.heading()) and torch.equal(
        data.applied_torque, sim.joint_torque
    )
    turned = rotation.rotate(sim.root_quat_w, sim.root_ang_vel_b)
    parts = (sim.root_pos_w, sim.root_quat_w, sim.root_lin_vel_w, turned)
    assert torch.equal(data.root_state_w, torch.cat(parts, 1))
    world.sim.forward(
        torch.arange(3)
    )  # without it bodies are where they were a physics step earlier
    base = data.body_state_w[:, world.scene["robot"].find_bodies("base")[0][0]]
    assert torch.allclose(base, data.root_state_w, atol=1e-5)
    assert data.default_root_state[0].tolist() == [0, 0, torch.tensor(GO2.base_height), 1, *[0] * 9]
    assert data.default_joint_pos.shape == (3, 12) and data.soft_joint_pos_limits.shape == (
        3,
        12,
        2,
    )
    assert torch.equal(
        data.joint_stiffness[0], torch.tensor(GO2.kp)
    ) and data.default_mass.shape == (3, 17)
    kept = data.joint_pos
    world.core.step(torch.ones(3, 12))
    assert not torch.equal(kept, data.joint_pos)  # what was read before is the reader's
    assert world.scene.terrain is world.scene["terrain"]
    assert (world.scene["robot"].num_instances, world.scene["robot"].is_fixed_base) == (3, False)
    world.scene.write_data_to_sim()
    with pytest.raises(AttributeError, match=r"'joint_poss'; did you mean 'joint_pos'"):
        data.joint_poss  # noqa: B018


def test_documented_names_that_are_not_there(world):
    for thing, names in {
        world.scene["robot"]: "write_data_to_sim update set_external_force_and_torque",
        world.scene[
            "robot"
        ].data: "root_link_pos_w root_com_pos_w joint_pos_target soft_joint_vel_limits joint_names",
        world.scene: "keys",
        sys.modules["legged_envs.compat.isaac_lab.scene"]: "CameraCfg ActuatorNetMLPCfg",
    }.items():
        assert not [name for name in names.split() if hasattr(thing, name)]
    assert {"robot", "friend"} == {*world.scene.articulations} and "terrain" in world.scene.terrains


def test_extras_of_a_step_and_of_a_reset():
    class Tells(Stand):
        def _get_rewards(self):
            self.extras["foo"] = 1
            return super()._get_rewards()

        def _reset_idx(self, env_ids):
            super()._reset_idx(env_ids)
            self.extras["log"] = {"bar": 2}

    legged_envs.register("Test/Tells-v0", Tells, StandCfg)
    env, envs = Tells(StandCfg()), gym.make_vec("Test/Tells-v0", 2)
    assert env.reset(seed=0)[1]["log"]["bar"] == 2 == envs.reset(seed=0)[1]["log"]["bar"]
    assert (
        env.step(torch.zeros(2, 12))[-1]["foo"] == 1
        and "foo" not in envs.step(np.zeros((2, 12), np.float32))[-1]
    )


def test_names_and_regular_expressions(world):
    robot = world.scene["robot"]
    assert robot.find_joints(["RL_.*", "FR_hip_joint"], preserve_order=True)[1][0] == "RL_hip_joint"
    assert robot.find_joints(["RL_.*", "FR_hip_joint"])[0] == [0, 9, 10, 11]
    entity = SceneEntityCfg("robot", joint_names=".*_calf_joint", body_names=["base"])
    entity.resolve(world.scene)
    assert entity.joint_ids == [2, 5, 8, 11] and entity.body_ids == [0]
    with pytest.raises(ValueError, match="no joint matches 'knee'; there are: FR_hip_joint"):
        robot.find_joints("knee")
    with pytest.raises(ValueError, match="more than one"):
        match_names("joint", ["a.*", ".*b"], ["ab"])
    with pytest.raises(KeyError, match="no 'robto'; did you mean 'robot'"):
        world.scene["robto"]
    with pytest.raises(RuntimeError, match="_setup_scene"):
        Articulation(GO2)


def test_writes_come_back(world):
    env = Stand(StandCfg(scene=WorldCfg(), events={}))
    env.core.reset(seed=1)
    generator = torch.Generator().manual_seed(0)
    robot, friend, box = (env.scene[name] for name in ("robot", "friend", "box"))
    for thing in (robot, friend, box):
        state = torch.rand(2, 13, generator=generator)
        state[:, 3:7] /= torch.linalg.vector_norm(state[:, 3:7], dim=1, keepdim=True)
        others = [each.data.root_state_w for each in (robot, friend, box) if each is not thing]
        thing.write_root_state_to_sim(state, torch.tensor([0, 2]))
        assert torch.allclose(thing.data.root_state_w[[0, 2]], state, atol=1e-6)
        thing.write_root_velocity_to_sim(state[:1, 7:] * 2.0, [2])
        assert torch.allclose(
            thing.data.root_state_w[2], torch.cat((state[1, :7], state[0, 7:] * 2.0)), atol=1e-6
        )
        thing.write_root_pose_to_sim(state[:1, :7], [2])
        assert torch.allclose(
            thing.data.root_state_w[2], torch.cat((state[0, :7], state[0, 7:] * 2.0)), atol=1e-6
        )
        now = [each.data.root_state_w for each in (robot, friend, box) if each is not thing]
        assert all(torch.equal(a, b) for a, b in zip(others, now, strict=True))
    robot.write_joint_state_to_sim(torch.ones(1, 2), torch.zeros(1, 2), [3, 4], [1])
    assert robot.data.joint_pos[1, 3:5].tolist() == [1.0, 1.0] and robot.data.joint_pos[0, 3] != 1.0
    with pytest.raises(ValueError, match="position actuator"):
        robot.set_joint_effort_target(torch.zeros(3, 12))


def test_targets_of_some_joints_leave_the_others(world):
    env = recorder()
    env.reset(seed=0)
    env._robot.set_joint_position_target(torch.full((1, 1), 0.5), [2], [1])
    env.sim.step(200)
    error = env._robot.data.joint_pos - env._robot.data.default_joint_pos
    assert error[0].abs().max() < 0.2 and error[1, 2] > 0.5


def test_contact_sensor_counts_like_the_robots_feet(world):
    env = Stand(StandCfg(scene=WorldCfg(), events={}))
    env.core.reset(seed=0)
    sensor, friend = env.scene["feet"], env.robots["friend"]
    for action in itertools.repeat(torch.zeros(3, 12), 5):
        env.core.step(action)
    force = env.sim.robots["friend"].contact_force_w[:, friend.feet]
    assert sensor.body_names == list(GO2.foot_names) and torch.equal(
        sensor.data.net_forces_w, force
    )
    assert sensor.data.net_forces_w_history.shape == (3, 3, 4, 3)
    standing = torch.linalg.vector_norm(force, dim=-1) > 1.0
    assert torch.equal(sensor.data.current_contact_time > 0, standing) and standing.any()
    assert torch.equal(
        sensor.compute_first_contact(0.02), standing & (sensor.data.current_contact_time < 0.021)
    )
    lift = torch.zeros(3, 13)
    lift[:, 2], lift[:, 3] = 1.0, 1.0
    env.scene["friend"].write_root_state_to_sim(lift)
    was = sensor.data.current_contact_time.clone()
    for _ in range(2):
        env.core.step(torch.zeros(3, 12))
    assert (sensor.data.current_contact_time == 0).all()
    assert torch.allclose(
        sensor.data.current_air_time, torch.where(was > 0, 0.04, sensor.data.current_air_time)
    )
    sensor.reset([1])
    assert (sensor.data.current_air_time[1] == 0).all() and (
        sensor.data.current_air_time[0] > 0
    ).all()


def test_events_of_the_manager_form_act_in_the_direct_form():
    pushes = []

    def note(env, env_ids, speed):
        pushes.append((type(env).__name__, env_ids.tolist(), speed))

    @configclass
    class EventsCfg:
        push = IsaacEventTermCfg(
            func=note, mode="interval", interval_range_s=(0.04, 0.04), params={"speed": 0.5}
        )

    env = Stand(StandCfg(events=EventsCfg()))
    env.reset(seed=0)
    pushes.clear()
    for _ in range(4):
        env.step(torch.zeros(2, 12))
    assert pushes == [("Stand", [0, 1], 0.5)] * 2


def test_events_in_isaac_labs_words():
    seen = []

    def note(env, env_ids, asset_cfg, height):
        root = env.scene[asset_cfg.name].data.default_root_state[env_ids]
        root[:, 2] += height
        env.scene[asset_cfg.name].write_root_state_to_sim(root, env_ids)
        seen.append((env_ids.tolist(), asset_cfg.body_ids))

    @configclass
    class Term:
        func: object
        mode: str
        params: dict
        interval_range_s: tuple | None = None

    @configclass
    class EventsCfg:
        lift = Term(
            note, "reset", {"asset_cfg": SceneEntityCfg("robot", body_names="base"), "height": 1.0}
        )
        none = None

    class Seen(Stand):
        def _setup_scene(self):
            self.scene.articulations["robot"] = Articulation(self.cfg.robot)

    env = Seen(StandCfg(events=EventsCfg()))
    env.core.build()
    seen.clear()  # calls of the trial, when the environment was built
    env.reset(seed=0)
    assert seen == [([0, 1], [0])] and (env.sim.root_pos_w[:, 2] > 1.2).all()


def test_configclass():
    @configclass
    class Base:
        count: int = 1
        names = ["a"]  # noqa: RUF012
        needed: float

        class Nested:
            value = 3

        def __post_init__(self):
            self.count += 1

    @configclass
    class Derived(Base):
        names = ["b"]  # noqa: RUF012
        extra = 4

        def __post_init__(self):
            super().__post_init__()
            self.extra = self.count

    first, second = Derived(), Derived(count=5)
    first.names.append("c")
    assert (second.names, second.extra, Base().names) == (["b"], 6, ["a"])
    assert first.replace(needed=0.5).needed == 0.5 and first.copy().names == ["b", "c"]
    with pytest.raises(
        AttributeError, match=re.escape("Derived has no field 'name'; did you mean 'names'")
    ):
        first.name = 1
    assert replace(GO2) == GO2 and JointPositionCfg is not None


def test_the_offset_of_an_episode_is_drawn_anew_and_not_added_to_the_last_one():
    cfg = NoiseModelWithAdditiveBiasCfg(bias_noise_cfg=UniformNoiseCfg(n_min=-1.0, n_max=1.0))
    model = NoiseModel(cfg, RandomStreams(64, torch.device("cpu")).stream("noise"), 3)
    for _ in range(50):
        model.reset(torch.arange(64))
    assert model.bias.abs().max() <= 1.0 and model.bias.std() > 0.4


class DictCfg(StandCfg):
    action_space = Dict(legs=Box(-1.0, 1.0, (12,)), pair=Tuple((Box(-0.5, 2.0, (1,)), Discrete(3))))
    observation_space = 12


class ByParts(Stand):
    def _pre_physics_step(self, actions):
        self.actions = actions

    def _apply_action(self):
        self.core.sim.set_joint_targets(
            self.core.robot.default_joint_pos + 0.2 * self.actions["legs"]
        )

    def _get_observations(self):
        return {"policy": self.actions["legs"].clone(), "critic": self.commands["velocity"]}


def test_parts_of_actions_are_clipped_to_their_bounds_and_belong_to_the_environment():
    legged_envs.register("Test/ByParts-v0", ByParts, configclass(DictCfg))
    env = gym.make_vec("Test/ByParts-v0", num_envs=2, array="torch", autoreset_mode="Disabled")
    env.reset(seed=0)
    action = {
        "legs": torch.full((2, 12), 5.0),
        "pair": (torch.full((2, 1), -3.0), torch.tensor([0, 2])),
    }
    env.step(action)
    seen = env.unwrapped.task.user.actions
    assert (
        (seen["legs"] == 1.0).all()
        and (seen["pair"][0] == -0.5).all()
        and seen["pair"][1].tolist() == [0, 2]
    )
    action["legs"].fill_(0.5)
    env.step(action)
    action["legs"].fill_(-77.0)
    assert (env.unwrapped.task.user.actions["legs"] == 0.5).all()
    env.close()
