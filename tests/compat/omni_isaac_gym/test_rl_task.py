"""Tasks in the words of OmniIsaacGymEnvs: the order of a step, resets in the next step, views, threads."""

import pickle
import queue
import runpy
import threading
import time
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch

import legged_envs
from legged_envs import rotation
from legged_envs.compat.omni_isaac_gym import vec_env
from legged_envs.compat.omni_isaac_gym.articulation_view import ArticulationView, RigidPrimView
from legged_envs.compat.omni_isaac_gym.rl_task import RLTask, SimConfig
from legged_envs.compat.omni_isaac_gym.vec_env import (
    TaskStopException,
    TrainerMT,
    VecEnvBase,
    VecEnvMT,
    VecEnvRLGames,
)
from legged_envs.robots import GO2

EXAMPLE = Path(__file__).parents[3] / "examples" / "workflows" / "go2_flat_rl_task.py"
EPISODE = 12
GO2_TORQUE = replace(GO2, actuators=("torque",) * 12, kp=(0.0,) * 12, kd=(0.0,) * 12)


def config(num_envs=4, **env):
    settings = {
        "numEnvs": num_envs,
        "episodeLength": EPISODE,
        "controlFrequencyInv": 4,
        "clipObservations": 5.0,
    }
    settings |= {
        "clipActions": 1.0,
        "costLimits": {"speed": 1.0, "height": 0.5},
        "goal": 0.3,
        **env,
    }
    return {
        "task": {"env": settings, "sim": {"dt": 0.005, "num_threads": 1}, "robot": GO2},
        "seed": 7,
    }


class Stand(RLTask):
    """Stands at a height; who is below 0.2 m has fallen."""

    def __init__(self, name, sim_config, env, offset=None):
        self._num_observations, self._num_actions, self._num_states = 27, 12, 28
        self._sim_config, self.goal = sim_config, sim_config.task_config["env"]["goal"]
        self.order = []
        RLTask.__init__(self, name, env)

    def set_up_scene(self, scene):
        super().set_up_scene(scene)
        self._robots = scene.add(
            ArticulationView("/World/envs/.*/go2", "robots", reset_xform_properties=False)
        )
        self._knees = scene.add(
            RigidPrimView("/World/envs/.*/go2/.*_calf", "knees", track_contact_forces=True)
        )
        self._base = scene.add(RigidPrimView("/World/envs/.*/go2/base", "base"))

    def post_reset(self):
        self.default = self._robots.get_joint_positions()
        self.seen = torch.zeros(self.num_envs)

    def pre_physics_step(self, actions):
        self.order.append("pre_physics_step")
        env_ids = self.reset_buf.nonzero(as_tuple=False).squeeze(-1)
        assert len(env_ids) == 0
        self.actions = actions.clone()
        self._robots.set_joint_position_targets(self.default + 0.5 * actions)

    def reset_idx(self, env_ids):
        self.order.append(("reset_idx", env_ids.tolist()))
        noise = self.random.stream("joints").uniform(-0.2, 0.2, 12, env_ids)
        self._robots.set_joint_positions(self.default[env_ids] + noise, env_ids)
        self.seen[env_ids] = 0.0
        self.progress_buf[env_ids] = 0
        self.reset_buf[env_ids] = 0

    def get_observations(self):
        self.order.append("get_observations")
        self.seen += 1.0  # of the whole batch, whoever begins
        self.obs_buf[:, :3] = self._robots.get_linear_velocities(clone=False)
        self.obs_buf[:, 3:15] = self._robots.get_joint_positions(clone=False)
        self.obs_buf[:, 15:] = self._robots.get_joint_velocities(clone=False)
        return {"robots": {"obs_buf": self.obs_buf}}

    def get_states(self):
        self.order.append("get_states")
        return torch.cat((self.obs_buf, self.seen[:, None]), dim=1)

    def calculate_metrics(self):
        self.order.append("calculate_metrics")
        self.height = self._robots.get_world_poses()[0][:, 2]
        self.rew_buf[:] = -(self.height - self.goal).abs()

    def calculate_costs(self):
        self.cost_buf[:] = torch.stack(
            (self._robots.get_linear_velocities().norm(dim=1), self.height), dim=1
        )

    def is_done(self):
        self.order.append("is_done")
        self.reset_buf[:] = (self.height < 0.2) | (self.progress_buf >= EPISODE - 1)

    def get_extras(self):
        self.order.append("get_extras")


legged_envs.register("Test/Stand-RLTask-v0", Stand, config)


class Asks(Stand):
    """Begins its steps as the tasks of OmniIsaacGymEnvs do."""

    def pre_physics_step(self, actions):
        if not self._env._world.is_playing():
            return
        super().pre_physics_step(actions)


legged_envs.register("Test/Asks-RLTask-v0", Asks, config)


def test_a_task_may_ask_its_environment_whether_the_world_is_playing():
    assert stepped(Asks).step(torch.zeros(4, 12))[0].shape == (4, 27)
    envs = gym.make_vec("Test/Asks-RLTask-v0", 4)
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())


def stepped(task=Stand, kind=VecEnvBase, backend="torch", **env_settings):
    env = kind(headless=True)
    env.set_task(task("stand", SimConfig(config(**env_settings)), env), backend=backend)
    return env


def actions(step, num_envs=4):
    random = np.random.default_rng(step)
    return torch.from_numpy(random.uniform(-1.5, 1.5, (num_envs, 12)).astype(np.float32))


def test_the_example_is_the_registered_task_with_callbacks_first():
    runpy.run_path(str(EXAMPLE))
    short = {
        "events.push.interval_s": (0.4, 0.8),
        "commands.velocity.resampling_time_s": (0.5, 1.0),
    }
    short |= {"episode_length_s": 2.0}
    oracle = gym.make_vec(
        "Legged/Go2-Flat-v0", 24, cfg={**short, "advance_first": True}, observations="dict"
    )
    example = gym.make_vec("Example/Go2-Flat-RLTask-v0", 24, cfg=short, observations="dict")
    assert oracle.single_observation_space == example.single_observation_space
    assert oracle.single_action_space == example.single_action_space
    assert oracle.unwrapped.cost_limits == example.unwrapped.cost_limits
    (expected, _), (given, _) = oracle.reset(seed=1), example.reset(seed=1)
    ends = np.zeros(2, int)
    for step in range(300):
        for name in expected:
            np.testing.assert_array_equal(expected[name], given[name])
        action = actions(step, 24).numpy()
        expected, *flags, info = oracle.step(action)
        given, *own_flags, own_info = example.step(action)
        flags += [info["cost"], info["costs"]]
        for one, other in zip(
            flags, (*own_flags, own_info["cost"], own_info["costs"]), strict=True
        ):
            np.testing.assert_array_equal(one, other)
        assert info.keys() == own_info.keys()
        for name in expected if "final_obs" in info else ():
            np.testing.assert_array_equal(info["final_obs"][name], own_info["final_obs"][name])
        ends += [flags[1].sum(), flags[2].sum()]
    assert ends.min() > 3, ends  # both kinds of ends were compared


def test_buffers_spaces_and_attributes_are_the_documented_ones():
    env = VecEnvBase()
    task = Stand("stand", SimConfig(config()), env)
    assert task.reset_buf.tolist() == [1] * 4 and task.reset_buf.dtype == torch.int64
    assert task.progress_buf.tolist() == [0] * 4 and task.extras == {}
    shapes = {"obs_buf": (4, 27), "states_buf": (4, 28), "rew_buf": (4,), "cost_buf": (4, 2)}
    assert {name: tuple(getattr(task, name).shape) for name in shapes} == shapes
    assert (task.num_observations, task.num_actions, task.num_states) == (27, 12, 28)
    assert (task.clip_obs, task.clip_actions, task.control_frequency_inv) == (5.0, 1.0, 4)
    assert task.action_space == gym.spaces.Box(-1.0, 1.0, (12,)) and task.state_space.shape == (28,)
    assert str(task.device) == "cpu" and task.rl_device == "cpu" and task.num_envs == 4
    assert task.step_dt == pytest.approx(0.02) and task.max_episode_length == EPISODE
    env.set_task(task, backend="torch")
    assert (env.num_envs, env.num_states) == (
        4,
        28,
    ) and env.observation_space == task.observation_space
    assert env.action_space == task.action_space and env.state_space == task.state_space
    assert (
        task.world is env.world
        and task.world.is_playing()
        and task.core.cost_names == ("speed", "height")
    )
    unlimited = Stand("stand", SimConfig(config(clipObservations=np.inf)), VecEnvBase())
    assert unlimited.observation_space == gym.spaces.Box(-np.inf, np.inf, (27,))


def test_what_documented_arguments_without_effect_leave_as_it_is():
    class Cloned(Stand):
        def set_up_scene(self, scene):
            RLTask.set_up_scene(self, scene, replicate_physics=False, filter_collisions=False)
            super().set_up_scene(scene)

        def initialize_views(self, scene):
            raise AssertionError("there is no scene before the task's")

    env, plain = VecEnvBase(), stepped()
    env.set_task(
        Cloned("cloned", SimConfig(config()), env),
        backend="torch",
        sim_params={"dt": 0.1},
        init_sim=False,
    )
    assert env.task.step_dt == plain.task.step_dt and not env.task._env_pos.any()
    assert torch.equal(env.step(actions(0))[0], plain.step(actions(0))[0])
    assert not hasattr(env.world.scene, "get_object") and not hasattr(env.task, "is_extension")


def test_options_of_another_engine_leave_the_physics_as_it_is():
    other = {
        "gravity": [0.0, 0.0, -1.6],
        "use_gpu_pipeline": True,
        "physx": {"solver_type": 1, "num_threads": 4},
    }
    settings = config()
    settings["task"]["sim"] |= {**other, "default_physics_material": {"static_friction": 0.1}}
    env, plain = VecEnvBase(), stepped()
    env.set_task(Stand("stand", SimConfig(settings), env), backend="torch")
    for step in range(3):
        assert torch.equal(env.step(actions(step))[0], plain.step(actions(step))[0])


def test_the_methods_of_a_step_come_in_the_documented_order():
    env = stepped()
    env.task.order.clear()
    env.step(actions(0))
    evaluation = ["get_observations", "get_states", "calculate_metrics", "is_done", "get_extras"]
    assert env.task.order[0] == ("reset_idx", [0, 1, 2, 3])
    assert (
        env.task.order[-6:] == ["pre_physics_step", *evaluation]
        and env.task.progress_buf.tolist() == [1] * 4
    )
    env.task.order.clear()
    env.step(actions(1))
    assert env.task.order == ["pre_physics_step", *evaluation]


def test_whoever_is_flagged_is_reset_in_the_next_step_and_shows_its_true_last_observation():
    """The oracle: the same task under Gymnasium's DISABLED, reset by hand before a step."""
    env = stepped(num_envs=6)
    core = gym.make_vec(
        "Test/Stand-RLTask-v0", 6, autoreset_mode="Disabled", array="torch", observations="dict"
    )
    core.reset(seed=7)
    done, resets = torch.zeros(6, dtype=torch.bool), 0
    for step in range(40):
        if done.any():
            core.reset(options={"reset_mask": done})
        expected, reward, terminated, truncated, info = core.step(actions(step, 6))
        given = env.step(actions(step, 6))
        torch.testing.assert_close(given[0], expected["policy"], rtol=0, atol=0)
        for one, other in zip(given[1:4], (reward, terminated, truncated), strict=True):
            assert torch.equal(one, other)
        assert torch.equal(given[4]["costs"], info["costs"]) and torch.equal(
            given[4]["time_outs"], truncated
        )
        done = terminated | truncated
        assert torch.equal(env.task.reset_buf > 0, done)
        resets += int(done.sum())
    assert resets > 6


def test_autoreset_in_gymnasium_gives_the_same_final_observations():
    env = stepped(num_envs=4)
    same = gym.make_vec("Test/Stand-RLTask-v0", 4, array="torch")
    same.reset(seed=7)
    for step in range(EPISODE - 1):
        given, expected = env.step(actions(step)), same.step(actions(step))
        assert not expected[2].any(), (
            "the next episode of a robot that falls begins one step earlier here"
        )
    assert expected[3].all() and given[3].all()
    torch.testing.assert_close(given[0], expected[4]["final_obs"], rtol=0, atol=0)


def test_the_end_of_time_is_a_truncation_and_a_fall_is_none():
    class Falls(Stand):
        def is_done(self):
            self.reset_buf[:] = (torch.arange(4) == 1) & (self.progress_buf == 3) | (
                self.progress_buf >= EPISODE - 1
            )

    env = stepped(Falls)
    for step in range(EPISODE - 1):
        _, _, terminated, truncated, extras = env.step(torch.zeros(4, 12))
        assert terminated.tolist() == [False, step % 3 == 2, False, False]
        assert (
            truncated.tolist()
            == extras["time_outs"].tolist()
            == [step == EPISODE - 2, False, *[step == EPISODE - 2] * 2]
        )

    class Judges(Falls):
        def is_timeout(self):
            return torch.arange(4) == 1

    env = stepped(Judges)
    flags = torch.stack(
        [torch.stack(env.step(torch.zeros(4, 12))[2:4]) for _ in range(EPISODE - 1)]
    )
    assert flags[2, 1].tolist() == [False, True, False, False] and not flags[2, 0].any()
    assert flags[-1, 0].tolist() == [True, False, True, True]

    class Endless(Stand):
        def is_done(self):
            self.reset_buf[:] = 0

    env = stepped(Endless)
    cut = [env.step(torch.zeros(4, 12))[3].all().item() for _ in range(2 * EPISODE)]
    assert cut == [False, *[False] * (EPISODE - 2), True] * 2


def test_a_time_limit_of_the_task_itself_is_that_of_its_environments():
    class Own(Stand):
        def __init__(self, name, sim_config, env, offset=None):
            self._max_episode_length = 9
            super().__init__(name, sim_config, env)

        def is_done(self):
            self.reset_buf[:] = self.progress_buf >= self._max_episode_length - 1

    settings = config()
    del settings["task"]["env"]["episodeLength"]
    legged_envs.register("Test/Own-RLTask-v0", Own, lambda: settings)
    envs = gym.make_vec("Test/Own-RLTask-v0", 2, array="torch")
    assert envs.unwrapped.max_episode_length == 9
    envs.reset(seed=0)
    assert [envs.step(torch.zeros(2, 12))[3].all().item() for _ in range(16)] == (
        [False] * 7 + [True]
    ) * 2
    short = gym.make_vec("Test/Own-RLTask-v0", 2, cfg={"episode_length_s": 0.1}, array="torch")
    assert short.unwrapped.max_episode_length == 5


def test_a_reset_of_some_leaves_the_others_as_they_are():
    one = gym.make_vec(
        "Test/Stand-RLTask-v0", 4, autoreset_mode="Disabled", array="torch", observations="dict"
    )
    other = gym.make_vec(
        "Test/Stand-RLTask-v0", 4, autoreset_mode="Disabled", array="torch", observations="dict"
    )
    others = torch.tensor([True, False, True, True])
    for envs in (one, other):
        envs.reset(seed=3)
    for step in range(9):
        before, after = one.step(actions(step)), other.step(actions(step))
        if step == 4:
            reset, _ = other.reset(options={"reset_mask": ~others})
            assert reset["critic"][1, -1] == 1.0 and torch.equal(
                reset["critic"][others], after[0]["critic"][others]
            )
        for name in ("policy", "critic"):
            assert torch.equal(before[0][name][others], after[0][name][others])
        assert torch.equal(before[1][others], after[1][others])
    assert not torch.equal(before[0]["policy"][1], after[0]["policy"][1])


def test_an_environment_does_the_same_whatever_their_number_and_after_a_saved_state():
    few, many = (
        gym.make_vec("Test/Stand-RLTask-v0", n, array="torch", observations="dict") for n in (2, 5)
    )
    first, second = few.reset(seed=5)[0], many.reset(seed=5)[0]
    for step in range(25):
        assert torch.equal(first["critic"], second["critic"][:2])
        if step == 15:
            state, copy = few.get_state(), pickle.loads(pickle.dumps(few.unwrapped))
        first, second = few.step(actions(step, 5)[:2])[0], many.step(actions(step, 5))[0]
    few.set_state(state)
    for step in range(15, 25):
        again = few.step(actions(step, 5)[:2])[0]
        if step < 18:  # the copy has no autoreset
            assert torch.equal(
                copy.step(actions(step, 5)[:2])[0]["critic"],
                few.unwrapped.last_observation["critic"],
            )
    assert torch.equal(again["critic"], first["critic"])


def test_a_task_that_resets_after_the_evaluation_shows_true_final_observations():
    class Late(Stand):
        def post_physics_step(self):
            self.progress_buf += 1
            self.calculate_metrics()
            self.calculate_costs()
            self.is_done()
            if len(env_ids := self.reset_buf.nonzero().squeeze(-1)):
                self.reset_idx(env_ids)
            self.get_observations()
            self.states_buf = self.get_states()
            return self.obs_buf, self.rew_buf, self.reset_buf, self.extras

    late, usual = stepped(Late), stepped()
    for step in range(EPISODE + 3):
        one, other = late.step(actions(step)), usual.step(actions(step))
        assert (
            torch.equal(one[0], other[0])
            and torch.equal(one[2], other[2])
            and torch.equal(one[3], other[3])
        )


def test_an_observation_before_the_first_step_may_use_what_a_step_makes():
    class Late(Stand):
        def pre_physics_step(self, actions):
            super().pre_physics_step(actions)
            self.effort = actions.norm(dim=1)

        def post_physics_step(self):
            self.base_velocity = self._robots.get_linear_velocities()
            return super().post_physics_step()

        def get_observations(self):
            super().get_observations()
            self.obs_buf[:, :3] = self.base_velocity + self.effort[:, None]

    legged_envs.register("Test/Late-RLTask-v0", Late, config)
    envs = gym.make_vec("Test/Late-RLTask-v0", 3)
    task = envs.unwrapped.task.user
    assert (
        task.progress_buf.tolist() == [0] * 3 and task.reset_buf.tolist() == [1] * 3
    )  # as before the trial step
    assert not task.sim.root_lin_vel_w.any() and not task.world.robots.data.joint_vel.any()
    assert envs.reset(seed=0)[0].shape == (3, 27) and task.progress_buf.tolist() == [0] * 3


def test_a_task_that_resets_only_in_pre_physics_step_is_told_whom():
    class Before(Stand):
        def reset_flagged(self):
            return [i for i, flag in enumerate(self.reset_buf.tolist()) if flag]

        def pre_physics_step(self, actions):
            self.order.append(("flagged", self.reset_flagged()))
            self._robots.set_joint_position_targets(self.default + 0.5 * actions)

        reset_idx = RLTask.reset_idx  # there is none

    env = stepped(Before)
    env.task.order.clear()
    for _ in range(EPISODE):
        env.step(torch.zeros(4, 12))
    flagged = [entry[1] for entry in env.task.order if entry[0] == "flagged"]
    assert flagged == [[0, 1, 2, 3], *[[]] * (EPISODE - 2), [0, 1, 2, 3]]


def test_views_read_the_robots_in_the_documented_frames():
    task = stepped().task
    task.core.reset(seed=0)
    for step in range(5):
        task.core.step(actions(step))
    view, sim = task._robots, task.core.sim
    pos, quat = view.get_world_poses()
    assert torch.equal(pos, sim.root_pos_w) and torch.equal(quat, sim.root_quat_w)
    velocities = view.get_velocities()
    assert torch.equal(velocities[:, :3], sim.root_lin_vel_w) and torch.equal(
        velocities[:, :3], view.get_linear_velocities()
    )
    back = rotation.rotate_inverse(quat, velocities[:, None, 3:])[:, 0]
    torch.testing.assert_close(back, sim.root_ang_vel_b, rtol=0, atol=1e-5)
    assert view.dof_names == list(GO2.joint_names) and view.num_dof == 12 and view.count == 4
    assert view.get_dof_index("FL_hip_joint") == 3 and "FR_calf" in view.body_names
    assert torch.equal(view.get_joint_velocities(indices=[2]), sim.joint_vel[2:3])
    assert torch.equal(view.get_applied_joint_efforts(), sim.joint_torque)
    assert torch.equal(view.get_dof_limits()[3], sim.joint_pos_limits)
    copy = view.get_joint_positions(clone=False)
    copy.zero_()
    assert sim.joint_pos.any()
    knees = sim.body_ids(tuple(f"{leg}_calf" for leg in ("FR", "FL", "RR", "RL")))
    assert task._knees.count == 16
    assert torch.equal(task._knees.get_world_poses()[0].view(4, 4, 3), sim.body_pos_w[:, knees])
    assert torch.equal(
        task._knees.get_net_contact_forces().view(4, 4, 3), sim.contact_force_w[:, knees]
    )
    assert task._base.get_net_contact_forces(clone=False).shape == (4, 3)
    feet = task.world.scene.add(RigidPrimView("/World/envs/.*/.*_foot", "feet"))
    assert feet.get_net_contact_forces()[:, 2].max() > 1.0


def test_views_set_what_they_then_read():
    task = stepped().task
    view, random = task._robots, torch.Generator().manual_seed(0)
    rows = torch.tensor([3, 1], dtype=torch.int32)
    sizes = {"velocities": 6, "joint_positions": 12, "joint_velocities": 12}
    values = {name: torch.randn(2, size, generator=random) for name, size in sizes.items()}
    before = {name: getattr(view, f"get_{name}")() for name in values}
    pos, quat = torch.randn(2, 3, generator=random), torch.randn(2, 4, generator=random)
    quat /= quat.norm(dim=1, keepdim=True)
    for name, value in values.items():
        getattr(view, f"set_{name}")(value, indices=rows)
    view.set_world_poses(
        positions=pos, orientations=quat, indices=rows
    )  # keeps the velocities in the world frame
    for name, value in values.items():
        given = getattr(view, f"get_{name}")()
        torch.testing.assert_close(given[[3, 1]], value, rtol=0, atol=1e-5)
        torch.testing.assert_close(given[[0, 2]], before[name][[0, 2]], rtol=0, atol=1e-6)
    torch.testing.assert_close(view.get_velocities(rows)[:, 3:], view.get_angular_velocities(rows))
    torch.testing.assert_close(view.get_world_poses(rows), (pos, quat), rtol=0, atol=1e-6)
    view.set_velocities(np.ones((4, 6), np.float32))
    torch.testing.assert_close(view.get_velocities(), torch.ones(4, 6), rtol=0, atol=1e-5)


def test_targets_and_efforts_reach_the_actuators_that_take_them():
    class Pushes(Stand):
        def pre_physics_step(self, actions):
            self._robots.set_joint_efforts(5.0 * actions)

    env = VecEnvBase()
    settings = config()
    settings["task"]["robot"] = GO2_TORQUE
    env.set_task(Pushes("pushes", SimConfig(settings), env), backend="torch")
    env.step(actions(0))
    torch.testing.assert_close(
        env.task._robots.get_applied_joint_efforts(), 5.0 * actions(0).clamp(-1.0, 1.0)
    )
    with pytest.raises(ValueError, match=r"'FR_hip_joint'.*torque"):
        env.task._robots.set_joint_position_targets(torch.zeros(4, 12))
    view = stepped().task._robots
    with pytest.raises(ValueError, match=r"'FR_hip_joint'.*position"):
        view.set_joint_efforts(torch.zeros(4, 12))
    view.set_joint_position_targets(torch.full((1, 12), 0.3), indices=[2])
    assert view.robot._targets[2].tolist() == pytest.approx([0.3] * 12)
    assert view.robot._targets[1].tolist() == pytest.approx(GO2.default_joint_pos)
    half = replace(GO2, actuators=("torque", "position") * 6, kp=(0.0, 20.0) * 6, kd=(0.0, 0.5) * 6)
    settings["task"]["robot"] = half
    env.set_task(Pushes("pushes", SimConfig(settings), env), backend="torch")
    env.task._robots.set_joint_efforts(torch.full((4, 12), 2.0))
    env.task._robots.set_joint_position_targets(torch.full((4, 12), 0.3))
    assert env.world.robots._targets[0].tolist() == pytest.approx(
        [2.0, 0.3] * 6
    )  # each joint takes what is for it


def test_seeds_backends_and_pictures():
    env = stepped(backend="numpy")
    assert env.seed(5) == 5
    first, _ = env.reset()
    env.seed(5)
    assert isinstance(first, np.ndarray) and np.array_equal(env.reset()[0], first)
    drawn = env.seed(-1)
    assert drawn >= 0 and not np.array_equal(env.reset()[0], first) and env.seed(-1) != drawn
    observation, reward, terminated, _, extras = env.step(actions(0).numpy())
    assert (
        isinstance(reward, np.ndarray)
        and isinstance(extras["costs"], np.ndarray)
        and terminated.dtype == bool
    )
    assert env.render() is None and env.render("rgb_array").shape == (480, 640, 3)
    assert np.abs(observation).max() <= 5.0
    env.close()
    with pytest.raises(RuntimeError, match="close"):
        env.step(actions(0))


def test_what_rl_games_gets_is_clamped_and_on_its_device():
    class Far(Stand):
        def get_observations(self):
            self.obs_buf[:] = 9.0

    env = stepped(Far, VecEnvRLGames)
    observation = env.reset()
    assert env.task.progress_buf.tolist() == [1] * 4  # a reset makes a step with zero actions
    assert observation.keys() == {"obs", "states"} and observation["states"].shape == (4, 28)
    observation, reward, resets, extras = env.step(torch.full((4, 12), 3.0))
    assert (observation["obs"] == 5.0).all() and (observation["states"][:, :27] == 5.0).all()
    assert (env.task.actions == 1.0).all() and (env.task.obs_buf == 9.0).all()
    assert (
        resets.dtype == torch.int64
        and {"cost", "costs", "time_outs"} <= extras.keys()
        and reward.shape == (4,)
    )


def test_episodes_of_the_task_join_the_log():
    class Logs(Stand):
        def reset_idx(self, env_ids):
            super().reset_idx(env_ids)
            self.extras["episode"] = {"rew_goal": torch.tensor(2.5)}

    env = stepped(Logs)
    reports = [env.step(torch.zeros(4, 12))[4].get("episode") for _ in range(EPISODE + 1)]
    assert all("rew_goal" in report for report in (reports[0], reports[EPISODE - 1]))
    assert reports[EPISODE - 1]["episodes"] == 4 and reports[EPISODE] is None


def without_sizes(self, name, sim_config, env):
    self._sim_config = sim_config
    RLTask.__init__(self, name, env)


def broken(**methods):
    return type("Broken", (Stand,), methods)


@pytest.mark.parametrize(
    ("task", "error", "message"),
    [
        (
            broken(get_observations=lambda self: setattr(self, "obs_buf", torch.zeros(4, 3))),
            ValueError,
            r"Broken.get_observations .*obs_buf.*\(4, 27\).*\(4, 3\)",
        ),
        (
            broken(get_states=lambda self: torch.zeros(4)),
            ValueError,
            r"Broken.get_states .*\(4, 28\)",
        ),
        (
            broken(get_extras=lambda self: setattr(self, "rew_buf", torch.zeros(4).double())),
            ValueError,
            "Broken.calculate_metrics .*rew_buf .*float32.*float64",
        ),
        (
            broken(
                calculate_metrics=lambda self: (
                    Stand.calculate_metrics(self) or self.rew_buf.fill_(np.nan)
                )
            ),
            ValueError,
            r"Broken.calculate_metrics .*rew_buf.*\[0, 1, 2, 3\]",
        ),
        (
            broken(calculate_costs=lambda self: self.cost_buf.fill_(-1.0)),
            ValueError,
            "Broken.calculate_costs .*cost_buf.*0.0",
        ),
        (
            broken(is_done=lambda self: setattr(self, "reset_buf", torch.ones(2))),
            ValueError,
            "Broken.is_done .*reset_buf",
        ),
        (
            broken(observation_space=gym.spaces.Box(-1.0, 1.0, (5,))),
            ValueError,
            r"Broken.get_observations .*obs_buf.*\(4, 5\).*\(4, 27\)",
        ),
        (
            broken(is_done=RLTask.is_done),
            NotImplementedError,
            "Broken.*is_done",
        ),
        (
            type("Sizes", (Stand,), {"__init__": without_sizes}),
            ValueError,
            "Sizes.*_num_observations",
        ),
        (
            type("Forgets", (Stand,), {"__init__": lambda self, name, sim_config, env: None}),
            AttributeError,
            "Forgets.*__init__",
        ),
    ],
)
def test_what_is_wrong_with_a_task_is_said_when_it_is_made(task, error, message):  # fmt: skip
    with pytest.raises(error, match=message):
        stepped(task)


def test_what_is_wrong_with_a_configuration_is_said_when_it_is_made():
    for changes, message in (
        ({"numEnvs": 0}, "num_envs"),
        ({"episodeLength": 0}, "env.episodeLength.*0"),
        (
            {"episodeLength": "50"},
            "env.episodeLength.*'50'",
        ),
        (
            {"controlFrequencyInv": "4"},
            "env.controlFrequencyInv.*'4'",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            stepped(**changes)
    with pytest.raises(ValueError, match=r"task.*'robt'.*'robot'"):
        SimConfig({"task": {"robt": "go2"}})
    with pytest.raises(TypeError, match=r"config\['task'\]\['robot'\].*'go2'"):
        Stand("stand", SimConfig({"task": {"env": {"goal": 0.0}, "robot": "go2"}}), VecEnvBase())
    env = VecEnvBase()
    task = Stand("stand", SimConfig(config()), env)
    with pytest.raises(ValueError, match=r"backend.*'jax'"):
        env.set_task(task, backend="jax")
    env.set_task(task)
    with pytest.raises(ValueError, match="seed"):
        env.seed(-2)
    scene = env.world.scene
    with pytest.raises(ValueError, match=r"body.*'x\.\*'.*base"):
        scene.add(RigidPrimView("/World/envs/.*/x.*", "none"))
    with pytest.raises(ValueError, match=r"'robots': joint_pos.*\(4, 12\).*\(3,\)"):
        task._robots.set_joint_positions(torch.zeros(3))
    with pytest.raises(AttributeError, match="'robot'"):
        ArticulationView("/World/envs/.*", "loose").get_joint_positions()
    with pytest.raises(TypeError, match="joint_indices"):
        task._robots.get_joint_positions(joint_indices=[3])


class Document(RLTask):
    """A task as OmniIsaacGymEnvs' documentation shows it, with a minimal constructor: flagged robots are reset in ``pre_physics_step``, and methods replace the buffers by new tensors."""

    def __init__(self, name, sim_config, env, offset=None):
        self._num_observations, self._num_actions = 12, 12
        RLTask.__init__(self, name, env)

    def set_up_scene(self, scene):
        super().set_up_scene(scene)
        self._robots = scene.add(ArticulationView("/World/envs/.*/go2", "robots"))

    def post_reset(self):
        self.default = self._robots.get_joint_positions()
        self.poses = self._robots.get_world_poses()

    def pre_physics_step(self, actions):
        if len(env_ids := self.reset_buf.nonzero().squeeze(-1)):
            self.reset_idx(env_ids)
        self._robots.set_joint_position_targets(self.default + 0.5 * actions)

    def reset_idx(self, env_ids):
        self._robots.set_world_poses(*(values[env_ids] for values in self.poses), indices=env_ids)
        self._robots.set_velocities(torch.zeros(len(env_ids), 6), env_ids)
        self._robots.set_joint_positions(self.default[env_ids], env_ids)
        self._robots.set_joint_velocities(torch.zeros(len(env_ids), 12), env_ids)
        self.progress_buf[env_ids] = 0
        self.reset_buf[env_ids] = 0

    def get_observations(self):
        self.obs_buf = self._robots.get_joint_positions()

    def calculate_metrics(self):
        self.rew_buf = self._robots.get_linear_velocities()[:, 0]

    def is_done(self):
        fallen = self._robots.get_world_poses()[0][:, 2] < 0.2
        self.reset_buf = fallen | (self.progress_buf >= 8)


class DocumentVecEnv(VecEnvBase):
    """An environment for another library whose ``step`` calls the task and the world itself."""

    def set_task(self, task, backend="numpy", sim_params=None, init_sim=True):
        super().set_task(task, backend, sim_params, init_sim)
        self.num_states = self._task.num_states
        self.state_space = self._task.state_space

    def step(self, actions):
        actions = (
            torch.clamp(actions, -self._task.clip_actions, self._task.clip_actions)
            .to(self._task.device)
            .clone()
        )
        self._task.pre_physics_step(actions)
        for _ in range(self._task.control_frequency_inv):
            self._world.step(render=self._render)
            self.sim_frame_count += 1
        self._obs, self._rew, self._resets, self._extras = self._task.post_physics_step()
        self._states = self._task.get_states()
        return {"obs": self._obs, "states": self._states}, self._rew, self._resets, self._extras


class Assigning(Document):
    """Keeps its configuration as most tasks of OmniIsaacGymEnvs do."""

    def __init__(self, name, sim_config, env, offset=None):
        self._sim_config = sim_config
        self._cfg = sim_config.config
        self._task_cfg = sim_config.task_config
        self.goal = self._task_cfg["env"]["goal"]
        super().__init__(name, sim_config, env, offset)


def test_a_constructor_may_assign_its_configuration():
    task = Assigning("assigning", SimConfig(config(3)), VecEnvBase())
    assert task.goal == 0.3 and task._cfg is task._sim_config.config


def test_a_constructor_of_four_arguments_needs_no_more_than_the_sizes():
    settings = config(3)
    for given in (SimConfig(settings), settings):
        task = Document("document", sim_config=given, env=VecEnvBase())
        assert (task.num_envs, task.control_frequency_inv) == (3, 4) and not hasattr(
            task, "num_agents"
        )
        assert (
            task._cfg is task._sim_config.config and task._task_cfg is task._sim_config.task_config
        )
        assert task._task_cfg["env"]["goal"] == 0.3
    env = VecEnvBase()
    env.set_task(Document("document", None, env, None))
    assert (
        env.num_envs == 1
        and env.task.core.robots["robot"]
        and env.step(np.zeros((1, 12)))[0].shape == (1, 12)
    )


def test_an_environment_whose_step_calls_task_and_world_does_what_that_of_rl_games_does():
    own, plain = DocumentVecEnv(), VecEnvRLGames()
    for env in (own, plain):
        env.set_task(Document("document", SimConfig(config()), env), backend="torch")
    ends = 0
    for step in range(30):
        one, other = own.step(actions(step)), plain.step(actions(step))
        torch.testing.assert_close(one[0]["obs"], other[0]["obs"], rtol=0, atol=1e-4)
        torch.testing.assert_close(one[1], other[1], rtol=0, atol=1e-3)
        assert torch.equal(one[2] > 0, other[2] > 0)
        ends += int(other[2].sum())
    assert ends >= 12 and own.sim_frame_count == plain.sim_frame_count == 30 * 4
    assert own.reset()[0]["obs"].shape == (4, 12) and own.task.progress_buf.tolist() == [1] * 4


def test_a_subclass_parses_what_a_step_gave_as_documented():
    class Parses(VecEnvRLGames):
        def _parse_data(self, data):
            self._obs = torch.clamp(data["obs"], -1.0, 1.0).to(self._task.rl_device).clone()
            self._rew = data["rew"].to(self._task.rl_device).clone()
            self._states = torch.clamp(data["states"], -1.0, 1.0).to(self._task.rl_device).clone()
            self._resets = data["reset"].to(self._task.rl_device).clone()
            self._extras = data["extras"].copy()

    one, other = stepped(kind=Parses).step(actions(0)), stepped(kind=VecEnvRLGames).step(actions(0))
    assert torch.equal(one[0]["states"], other[0]["states"].clamp(-1.0, 1.0)) and torch.equal(
        one[1], other[1]
    )


def test_names_spelt_nearly_like_known_ones_are_refused():
    for name, meant in (
        ("episodeLenght", "episodeLength"),
        ("num_envs", "numEnvs"),
        ("controlFrequency", "controlFrequencyInv"),
        ("clipObservation", "clipObservations"),
        ("clipActoins", "clipActions"),
        ("costLimit", "costLimits"),
    ):
        with pytest.raises(ValueError, match=f"env.*'{name}'.*'{meant}'"):
            SimConfig({"task": {"env": {name: 1}}})
    with pytest.raises(ValueError, match=r"sim.*'num_thread'.*'num_threads'"):
        SimConfig({"task": {"sim": {"num_thread": 1}}})
    SimConfig(
        {
            "task": {
                "env": {"envSpacing": 4.0, "learn": {}, "softLimits": 0.9},
                "sim": {"gravity": [0, 0, -9.81]},
            }
        }
    )
    with pytest.raises(ValueError, match=r"config\['robot'\].*config\['task'\]"):
        SimConfig({"robot": GO2})


def test_a_task_knows_the_simulation_that_changes_of_its_configuration_made():
    changes = {"sim.decimation": 2, "sim.dt": 0.004}
    task = gym.make_vec("Test/Stand-RLTask-v0", 2, cfg=changes).unwrapped.task.user
    assert (task.control_frequency_inv, task.core.cfg.sim.decimation) == (2, 2)
    assert (
        task._task_cfg["env"]["controlFrequencyInv"] == 2 and task._task_cfg["env"]["numEnvs"] == 2
    )
    assert task._task_cfg["sim"]["dt"] == 0.004 and task.step_dt == pytest.approx(0.008)
    changes = {"task_config.env.controlFrequencyInv": 3}
    assert (
        gym.make_vec(
            "Test/Stand-RLTask-v0", 2, cfg=changes
        ).unwrapped.task.user.control_frequency_inv
        == 3
    )


def test_actions_at_random_step_a_registered_task():
    envs = gym.make_vec("Test/Stand-RLTask-v0", num_envs=3)
    envs.reset(seed=0)
    for _ in range(EPISODE + 2):
        observations, rewards, *_ = envs.step(envs.action_space.sample())
    assert observations.shape == (3, 27) and np.isfinite(rewards).all()


def test_flags_keep_their_type_whatever_the_task_makes_of_them():
    task = stepped(Document, num_envs=2).task
    types = {name: getattr(task, name).dtype for name in ("reset_buf", "progress_buf")}
    assert types == {"reset_buf": torch.int64, "progress_buf": torch.int64}

    class Late(Document):
        def is_timeout(self):
            return torch.zeros_like(self.reset_buf, dtype=torch.int64)

    env = stepped(Late, num_envs=2)
    env.step(actions(0, 2))
    assert types == {name: getattr(env.task, name).dtype for name in types}


def test_a_step_without_a_task_says_so():
    for kind in (VecEnvBase, VecEnvRLGames, VecEnvMT):
        for call in (
            lambda env: env.step(actions(0)),
            lambda env: env.reset(),
            lambda env: env.render("rgb_array"),
        ):
            with pytest.raises(
                AttributeError,
                match=rf"{kind.__name__}.*'_task'.*set_task",
            ):
                call(kind())
        assert not hasattr(kind(), "num_envs")
    with pytest.raises(AttributeError, match=r"VecEnvMT.*'_task'"):
        (env := VecEnvMT()).run(Loop(env))


def test_the_last_of_several_initialize_before_a_run_counts(mt):
    for timeout in (90.0, 0.3):
        mt.initialize(queue.Queue(1), queue.Queue(1), timeout=timeout)
    error, _ = run_mt(mt, Loop(mt, 2, lambda: time.sleep(0.6) or mt.step(actions(0))))
    assert isinstance(error, TimeoutError) and "0.3 s" in str(error)


class Loop(TrainerMT):
    """Steps until ``stop_at`` in the thread that ``VecEnvMT.run`` starts, then calls ``end``."""

    def __init__(self, env, stop_at=5, end=lambda: None):
        self.env, self.stop_at, self.end, self.stops = env, stop_at, end, 0
        self.steps, self.error, self.thread = 0, None, None

    def run(self):
        self.thread = threading.current_thread()
        try:
            while self.steps < self.stop_at:
                self.last = self.env.step(actions(self.steps))
                self.steps += 1
            self.end()
        except BaseException as error:
            self.error = error
            raise

    def stop(self):
        self.stops += 1


def run_mt(env, trainer, seconds=10.0):
    """Run with a limit; what ``run`` raised, and how long it took."""
    raised, begin = [], time.monotonic()

    def simulate():
        try:
            env.run(trainer)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=simulate, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive()
    assert trainer.thread is None or not trainer.thread.is_alive()
    assert trainer.stops == 1
    return (raised or [None])[0], time.monotonic() - begin


@pytest.fixture
def mt():
    before = set(threading.enumerate())
    env = stepped(kind=VecEnvMT)
    yield env
    assert {
        thread for thread in set(threading.enumerate()) - before if "trainer" in thread.name
    } == set()


def test_a_policy_in_a_thread_of_its_own_sees_what_a_plain_one_does(mt):
    plain, trainer = stepped(), Loop(mt, 30)
    expected = [plain.step(actions(step)) for step in range(30)][-1]
    assert run_mt(mt, trainer)[0] is None and trainer.steps == 30
    for one, other in zip(trainer.last[:4], expected[:4], strict=True):
        assert torch.equal(one, other)
    assert (
        run_mt(mt, again := Loop(mt, 3))[0] is None and again.steps == 3
    )  # a second trainer after the first


def test_what_the_trainer_raises_reaches_the_caller_within_a_second(mt):
    def fail():
        raise ZeroDivisionError("policy")

    error, seconds = run_mt(mt, Loop(mt, 5, fail))
    assert isinstance(error, ZeroDivisionError) and seconds < 1.5


def test_what_the_simulation_raises_stops_the_trainer_within_a_second():
    class Explodes(Stand):
        def calculate_metrics(self):
            super().calculate_metrics()
            if self.progress_buf[0] == 4:
                raise ZeroDivisionError("simulation")

    env = stepped(Explodes, VecEnvMT)
    trainer = Loop(env, 100)
    error, seconds = run_mt(env, trainer)
    assert isinstance(error, ZeroDivisionError) and seconds < 1.5 and trainer.steps == 3
    assert trainer.error is error


def test_a_timeout_raises_in_both_threads(mt):
    mt.initialize(queue.Queue(1), queue.Queue(1), timeout=0.3)
    trainer = Loop(mt, 2, lambda: time.sleep(0.5) or mt.step(actions(0)))
    error, seconds = run_mt(mt, trainer)
    assert (
        isinstance(error, TimeoutError)
        and "actions" in str(error)
        and "0.3 s" in str(error)
        and seconds < 2.0
    )
    assert trainer.error is error


def test_a_slow_simulation_times_out_in_the_trainer_and_the_caller():
    class Slow(Stand):
        def get_extras(self):
            time.sleep(0.7 if self.progress_buf[0] == 3 else 0.0)

    env = stepped(Slow, VecEnvMT)
    env.timeout = 0.3
    trainer = Loop(env, 100)
    error, _ = run_mt(env, trainer)
    assert (
        isinstance(error, TimeoutError)
        and trainer.error is error
        and "data" in str(error)
        and "0.3 s" in str(error)
    )


def test_a_trainer_that_hangs_ends_with_its_next_step(mt):
    mt.timeout, awake = 0.2, threading.Event()
    trainer = Loop(mt, 2, lambda: awake.wait(10.0) and mt.step(actions(0)))
    with pytest.raises(TimeoutError):
        mt.run(trainer)
    assert trainer.stops == 1 and trainer.thread.is_alive()
    mt.timeout = 90.0
    assert (
        run_mt(mt, other := Loop(mt, 3, lambda: awake.set() or trainer.thread.join(1.0)))[0] is None
    )
    assert other.steps == 3 and trainer.steps == 2  # it cannot step what is another trainer's
    assert isinstance(trainer.error, TaskStopException) and not trainer.thread.is_alive()


def test_a_trainer_that_just_ends_ends_the_run(mt):
    error, seconds = run_mt(mt, Loop(mt, 4))
    assert error is None and seconds < 1.5
    error, seconds = run_mt(mt, Loop(mt, 0))
    assert error is None and seconds < 1.5


def test_start_pause_and_stop_from_outside(mt):
    mt.timeout = 0.5
    trainer = Loop(mt, 10**6)
    raised = []
    thread = threading.Thread(target=lambda: raised.append(mt.run(trainer)), daemon=True)
    mt.world.pause()
    thread.start()
    time.sleep(0.2)
    assert trainer.steps == 0
    mt.world.play()
    time.sleep(0.4)
    assert trainer.steps > 0
    mt.world.pause()
    time.sleep(0.1)
    paused = trainer.steps
    time.sleep(0.8)  # longer than the timeout
    assert trainer.steps == paused and thread.is_alive()
    mt.world.play()
    time.sleep(0.3)
    assert trainer.steps > paused
    mt.world.stop()
    thread.join(2.0)
    assert (
        not thread.is_alive() and raised == [None] and isinstance(trainer.error, TaskStopException)
    )


def test_bad_use_of_a_threaded_environment(mt):
    for timeout in (0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=r"VecEnvMT.initialize: timeout"):
            mt.initialize(queue.Queue(1), queue.Queue(1), timeout=timeout)
    seconds = []

    def second():
        for call in (
            lambda: mt.run(Loop(mt)),
            lambda: mt.initialize(queue.Queue(1), queue.Queue(1)),
        ):
            try:
                call()
            except RuntimeError as error:
                seconds.append(str(error))

    with pytest.raises(TaskStopException, match="VecEnvMT"):
        mt.step(actions(0))
    assert run_mt(mt, Loop(mt, 3, second))[0] is None
    assert len(seconds) == 2 and all("VecEnvMT" in text for text in seconds)


def rl_games_config(epochs):
    network = {
        "name": "actor_critic",
        "separate": False,
        "mlp": {"units": [16], "activation": "elu"},
    }
    network["mlp"]["initializer"] = {"name": "default"}
    space = {
        "mu_activation": "None",
        "sigma_activation": "None",
        "mu_init": {"name": "default"},
        "fixed_sigma": True,
    }
    network["space"] = {
        "continuous": {**space, "sigma_init": {"name": "const_initializer", "val": 0}}
    }
    config = {
        "name": "stand",
        "env_name": "rlgpu",
        "ppo": True,
        "mixed_precision": False,
        "normalize_input": True,
    }
    config |= {
        "normalize_value": True,
        "value_bootstrap": True,
        "num_actors": 4,
        "reward_shaper": {"scale_value": 1.0},
    }
    config |= {
        "normalize_advantage": True,
        "gamma": 0.99,
        "tau": 0.95,
        "learning_rate": 1e-3,
        "lr_schedule": None,
    }
    config |= {
        "score_to_win": 1e9,
        "max_epochs": epochs,
        "save_best_after": 10**6,
        "save_frequency": 0,
    }
    config |= {
        "grad_norm": 1.0,
        "entropy_coef": 0.0,
        "truncate_grads": True,
        "e_clip": 0.2,
        "horizon_length": 8,
    }
    config |= {
        "minibatch_size": 16,
        "mini_epochs": 1,
        "critic_coef": 1.0,
        "clip_value": True,
        "seq_length": 4,
    }
    config |= {"bounds_loss_coef": 0.0, "device": "cpu", "print_stats": False}
    params = {
        "seed": 1,
        "algo": {"name": "a2c_continuous"},
        "model": {"name": "continuous_a2c_logstd"},
    }
    return {"params": {**params, "network": network, "config": config}}


@pytest.mark.parametrize("kind", [VecEnvRLGames, vec_env.VecEnvRLGamesMT])
def test_rl_games_trains(kind, tmp_path):
    torch_runner = pytest.importorskip("rl_games.torch_runner")
    from rl_games.common import env_configurations, vecenv

    class RLGPUEnv(vecenv.IVecEnv):
        def __init__(self, config_name, num_actors, **kwargs):
            self.env = env_configurations.configurations[config_name]["env_creator"](**kwargs)

        def step(self, action):
            return self.env.step(action)

        def reset(self):
            return self.env.reset()

        def get_env_info(self):
            names = ("action_space", "observation_space", "state_space")
            return {name: getattr(self.env, name) for name in names}

    env = stepped(kind=kind)
    steps = []
    env.task.get_extras = lambda: steps.append(1)
    vecenv.register("RLGPU", RLGPUEnv)
    env_configurations.register(
        "rlgpu", {"vecenv_type": "RLGPU", "env_creator": lambda **kwargs: env}
    )

    def train():
        settings = rl_games_config(2)
        settings["params"]["config"]["train_dir"] = str(tmp_path)
        runner = torch_runner.Runner()
        runner.load(settings)
        runner.run({"train": True, "play": False, "checkpoint": None, "sigma": None})

    if kind is VecEnvRLGames:
        train()
    else:
        trainer = Loop(env, 0, train)
        assert run_mt(env, trainer, 60.0)[0] is None and trainer.error is None
    assert len(steps) == 1 + 2 * 8  # the reset's and those of two epochs
