"""Isaac Lab's manager-based workflow: the same task as with our managers, and what its words promise."""

import json
import math
import pickle
import runpy
import sys
from dataclasses import MISSING
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch

import legged_envs
from legged_envs import cli, managers
from legged_envs.compat.isaac_lab import mdp as mdp
from legged_envs.compat.isaac_lab.cfg import InteractiveSceneCfg
from legged_envs.compat.isaac_lab.contact_sensor import ContactSensorCfg
from legged_envs.compat.isaac_lab.manager_based import (
    EventTermCfg,
    ManagerBasedEnv,
    ManagerBasedEnvCfg,
    ManagerBasedRLEnv,
    ManagerBasedRLEnvCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
)
from legged_envs.compat.isaac_lab.noise import GaussianNoiseCfg, UniformNoiseCfg
from legged_envs.compat.isaac_lab.recorder import ActionStateRecorderManagerCfg
from legged_envs.compat.isaac_lab.scene_entity import SceneEntityCfg
from legged_envs.configuration import configclass
from legged_envs.datasets.episodes import MinariDatasetHandler
from legged_envs.envs import make_core
from legged_envs.managers import CurriculumTermCfg, RewardTermCfg, TerminationTermCfg
from legged_envs.mdp import rewards
from legged_envs.robots import GO2
from legged_envs.sim import ObjectCfg, PlacedRobot

EXAMPLE = Path(__file__).parents[3] / "examples" / "workflows" / "go2_flat_manager_based.py"
COMPARED = ("cost", "costs", "final_obs", "_final_obs")


def leaves(tree, path=""):
    """Paths of the leaves of nested dicts → the leaves."""
    if isinstance(tree, dict):
        return {
            name: leaf
            for key, value in tree.items()
            for name, leaf in leaves(value, f"{path}/{key}").items()
        }
    return {path: tree}


@pytest.mark.usefixtures("short_evaluations")
def test_the_example_is_trained(tmp_path):
    runpy.run_path(str(EXAMPLE))
    words = f"train Example/Go2-Flat-ManagerBased-v0 --run-dir {tmp_path}/run --iterations 1 --num-envs 8 --episodes 2"
    cli.main([*words.split(), "--no-video", "--changes", "episode_length_s", "0.1"])
    assert (
        "joint_pos" in (tmp_path / "run" / "task.txt").read_text()
        and (tmp_path / "run" / "eval.json").is_file()
    )


def test_the_example_is_bit_identical_to_the_registered_task():
    runpy.run_path(str(EXAMPLE))
    shorter = {
        "events.push.interval_s": (0.5, 1.0),
        "commands.velocity.resampling_time_s": (1.0, 2.0),
    }
    in_its_words = {"events.push.interval_range_s": (0.5, 1.0)}
    in_its_words["commands.base_velocity.resampling_time_range"] = (1.0, 2.0)
    made = {"observations": "dict", "max_episode_steps": 150}
    ours = gym.make_vec("Legged/Go2-Flat-v0", 24, cfg=shorter, **made)
    theirs = gym.make_vec("Example/Go2-Flat-ManagerBased-v0", 24, cfg=in_its_words, **made)
    assert theirs.unwrapped.task.user.cfg.events.push.interval_range_s == (0.5, 1.0)
    rng, ended = np.random.default_rng(3), 0
    action = np.zeros((24, 12), np.float32)
    pairs = [(ours.reset(seed=5)[0], theirs.reset(seed=5)[0])]
    for _ in range(160):
        action = np.clip(0.9 * action + 0.3 * rng.standard_normal(action.shape), -1, 1).astype(
            np.float32
        )
        a, b = (envs.step(action) for envs in (ours, theirs))
        ended += int((a[2] | a[3]).sum())
        pairs += zip(a[:4], b[:4], strict=True)
        pairs += [
            (
                {k: a[4][k] for k in COMPARED if k in a[4]},
                {k: b[4][k] for k in COMPARED if k in b[4]},
            )
        ]
    assert ended > 24
    for own, other in pairs:
        own, other = leaves(own), leaves(other)
        assert own.keys() == other.keys() and all(
            np.array_equal(own[key], other[key]) for key in own
        )


@configclass
class SceneCfg(InteractiveSceneCfg):
    robot = GO2
    contact_forces = ContactSensorCfg(
        prim_path="{ENV_REGEX_NS}/Robot/.*", history_length=3, track_air_time=True
    )


class SmoothedSpeed:
    """A term that is a class with a state."""

    def __init__(self, cfg, env):
        self._env, self.rate, self.value = env, cfg.params["rate"], torch.zeros(env.num_envs)

    def __call__(self, env, rate, asset_cfg=SceneEntityCfg("robot")):  # noqa: B008
        self.value = self.value + rate * (
            env.scene[asset_cfg.name].data.joint_vel.abs().mean(1) - self.value
        )
        return self.value

    def reset(self, env_ids):
        self.value[env_ids] = 0.0


def bent_knees(env, asset_cfg, bend):
    return (env.scene[asset_cfg.name].data.joint_pos[:, asset_cfg.joint_ids] < bend).sum(dim=1)


def bored(env, steps):
    return env.episode_length_buf >= steps


def kick(env, env_ids, speed):
    velocity = torch.zeros(len(env_ids), 6)
    velocity[:, 2] = speed
    env.scene["robot"].write_root_velocity_to_sim(velocity, env_ids)


KNEES = SceneEntityCfg("robot", joint_names=[".*_calf_joint"])
VELOCITY = mdp.UniformVelocityCommandCfg(
    asset_name="robot",
    resampling_time_range=(1.0, 1.0),
    heading_command=True,
    rel_heading_envs=0.5,
    ranges=mdp.UniformVelocityCommandCfg.Ranges((-1.0, 1.0), (-1.0, 1.0), (-1.0, 1.0), (-0.1, 0.1)),
)


@configclass
class ObservationsCfg:
    @configclass
    class PolicyCfg(ObservationGroupCfg):
        joint_pos = ObservationTermCfg(func=mdp.joint_pos_rel)
        command = ObservationTermCfg(
            func=mdp.generated_commands, params={"command_name": "base_velocity"}
        )

    policy: PolicyCfg = PolicyCfg()


@configclass
class ActionsCfg:
    legs = mdp.JointPositionActionCfg(
        joint_names=[".*"], scale={".*_hip_joint": 0.2, ".*_(thigh|calf)_joint": 0.5}
    )


@configclass
class CommandsCfg:
    base_velocity = VELOCITY


@configclass
class RewardsCfg:
    track = RewardTermCfg(
        mdp.track_lin_vel_xy_exp, 1.0, {"command_name": "base_velocity", "std": math.sqrt(0.25)}
    )
    knees = RewardTermCfg(bent_knees, 0.5, {"asset_cfg": KNEES, "bend": -1.5})
    speed = RewardTermCfg(SmoothedSpeed, -0.1, {"rate": 0.5})
    unused = None


@configclass
class EventsCfg:
    joints = EventTermCfg(
        func=mdp.reset_joints_by_scale,
        mode="reset",
        params={"position_range": (0.8, 1.2), "velocity_range": (0.0, 0.0)},
    )
    kick = EventTermCfg(func=kick, mode="reset", params={"speed": 0.3})


@configclass
class TerminationsCfg:
    time_out = TerminationTermCfg(mdp.time_out, time_out=True)
    contact = TerminationTermCfg(
        mdp.illegal_contact,
        params={
            "sensor_cfg": SceneEntityCfg("contact_forces", body_names="base"),
            "threshold": 1.0,
        },
    )


@configclass
class Cfg(ManagerBasedRLEnvCfg):
    scene: SceneCfg = SceneCfg(num_envs=4)
    observations: ObservationsCfg = ObservationsCfg()
    actions: ActionsCfg = ActionsCfg()
    commands: CommandsCfg = CommandsCfg()
    rewards: RewardsCfg = RewardsCfg()
    events: EventsCfg = EventsCfg()
    terminations: TerminationsCfg = TerminationsCfg()

    def __post_init__(self):
        self.decimation, self.sim.dt, self.episode_length_s = 4, 0.005, 0.2


class Env(ManagerBasedRLEnv):
    """A subclass of a user, which sets attributes after the constructor of the base class."""

    def __init__(self, cfg, **kwargs):
        super().__init__(cfg, **kwargs)
        self.resets = torch.zeros(self.num_envs)

    def load_managers(self):
        super().load_managers()
        self.sizes = self.observation_manager.group_obs_dim

    def _reset_idx(self, env_ids):
        super()._reset_idx(env_ids)
        self.resets[env_ids] += 1.0
        self.extras["log"]["resets"] = self.resets.mean()


ACTION = torch.linspace(-1.0, 1.0, 48).view(4, 12)


def test_terms_of_users_see_the_environment_by_its_documented_names():
    generator = torch.get_rng_state()
    env = Env(Cfg(seed=3))
    observation, _ = env.reset()
    assert torch.equal(torch.get_rng_state(), generator), "cfg.seed is of the environments alone"
    assert torch.equal(observation["policy"], env.reset(seed=3)[0]["policy"]), (
        "cfg.seed seeds the first reset"
    )
    knees = env.core.rewards.cfg["knees"].params["asset_cfg"].joint_ids
    assert [env.robot.sim.robot.joint_names[i] for i in knees] == [
        n for n in GO2.joint_names if "calf" in n
    ]
    assert env.sizes == {"policy": (15,)} and env.action_manager.total_action_dim == 12
    assert env.action_manager.scale.tolist() == pytest.approx([0.2, 0.5, 0.5] * 4)
    assert (
        env.step_dt == 0.02
        and env.physics_dt == 0.005
        and (env.max_episode_length, env.max_episode_length_s) == (10, 0.2)
    )
    robot = env.scene["robot"].data
    for step in range(1, 11):
        observation, reward, terminated, truncated, extras = env.step(ACTION)
        assert env.common_step_counter == step and reward.shape == (4,)
        if step < 10:
            bend = (robot.joint_pos[:, knees] < -1.5).sum(1)
            assert torch.equal(env.core.rewards.columns[:, 1], bend.float())
            assert (
                torch.equal(env.action_manager.action, ACTION)
                and not env.termination_manager.get_term("contact").any()
            )
            command = env.command_manager.get_command("base_velocity")
            assert (
                torch.equal(observation["policy"][:, 12:], command)
                and command is env.commands["velocity"]
            )
    assert (
        truncated.all()
        and not terminated.any()
        and torch.equal(env.episode_length_buf, torch.zeros(4).int())
    )
    log = extras["log"]
    assert log["resets"] == 3.0 and log["episodes"] == 4.0 and log["termination/contact"] == 0.0
    assert 0.0 < log["reward/track"] <= 1.0


def test_a_saved_state_holds_terms_that_are_classes_and_weights_that_a_curriculum_changed():
    cfg = Cfg()
    params = {"term_name": "knees", "weight": 2.0, "num_steps": 5}
    cfg.curriculum = {"knees": CurriculumTermCfg(mdp.modify_reward_weight, params)}
    env = ManagerBasedRLEnv(cfg)
    env.reset(seed=0)
    for _ in range(15):
        extras = env.step(ACTION)[-1]
    assert env.reward_manager.weights[1] == 2.0 == env.reward_manager.get_term_cfg("knees").weight
    state = env.core.get_state()
    expected = [env.step(ACTION)[1] for _ in range(4)]
    other = ManagerBasedRLEnv(cfg)
    other.core.set_state(state)
    assert [torch.equal(env_step, other.core.step(ACTION)[1]) for env_step in expected] == [
        True
    ] * 4
    again = pickle.loads(pickle.dumps(other.core))
    assert torch.equal(again.step(ACTION)[1], other.core.step(ACTION)[1])
    del extras


class SmoothedGravity:
    """An observation term with state: a tensor, a tensor in a dict, and a tensor that is replaced."""

    def __init__(self, cfg, env):
        self.n, self.kept = torch.zeros(env.num_envs, 3), {"a": torch.zeros(env.num_envs, 3)}

    def __call__(self, env):
        gravity = env.scene["robot"].data.projected_gravity_b
        self.n = 0.5 * self.n + gravity
        self.kept["a"] += gravity
        return torch.cat((self.n, self.kept["a"]), 1)


def test_a_reset_of_some_leaves_what_terms_keep_of_others():
    cfg = Cfg()
    cfg.observations.policy.joint_pos = ObservationTermCfg(func=SmoothedGravity)
    alone, both = (ManagerBasedRLEnv(cfg) for _ in range(2))
    first, _ = alone.reset(seed=0)
    both.reset(seed=0)
    for _ in range(4):
        assert torch.equal(
            both.reset(env_ids=[1])[0]["policy"][[0, 2, 3]], first["policy"][[0, 2, 3]]
        )
        first, second = (env.step(ACTION)[0] for env in (alone, both))
        assert torch.equal(first["policy"][[0, 2, 3]], second["policy"][[0, 2, 3]])


def test_what_can_change_of_a_term_and_what_can_not():
    env = ManagerBasedRLEnv(Cfg())
    env.reset(seed=0)
    rewards, events, ended = env.reward_manager, env.event_manager, env.termination_manager
    term = rewards.get_term_cfg("knees")
    term.weight = 5.0
    assert rewards.weights[1] != 5.0, "what is given is a copy"
    rewards.set_term_cfg("knees", term)
    assert rewards.weights[1] == 5.0 == rewards.get_term_cfg("knees").weight
    with pytest.raises(
        ValueError,
        match=r"set_term_cfg\('knees', …\) sets the weight of what get_term_cfg returned",
    ):
        rewards.set_term_cfg("knees", RewardTermCfg(bent_knees, 4.0))
    for manager, name in ((rewards, "knees"), (events, "kick"), (ended, "contact")):
        term = manager.get_term_cfg(name)
        term.params["sigma"] = 99
        with pytest.raises(ValueError, match=rf"set_term_cfg\('{name}', …\) sets the weight"):
            manager.set_term_cfg(name, term)
        with pytest.raises(ValueError, match=r"has no term.* 'knee'"):
            manager.get_term_cfg("knee")
    assert env.action_manager.get_term("legs") is env.core.actions.terms["legs"]
    assert env.command_manager.get_term("base_velocity") is env.core.commands.terms["velocity"]
    with pytest.raises(ValueError, match=r"ActionManager has no term.*'front'"):
        env.action_manager.get_term("front")


def test_the_configuration_of_a_task_says_how_many_environments_there_are():
    class Counts(Env):
        def load_managers(self):
            super().load_managers()
            self.within = self.cfg.scene.num_envs, self.scene.cfg.num_envs

    core = make_core(Counts.task_cfg(Cfg()), 2)
    assert core.task.user.within == (2, 2) and core.num_envs == 2 and Cfg().scene.num_envs == 4


def test_a_history_stands_term_by_term():
    cfg = Cfg()
    cfg.observations.policy.joint_pos.history_length = 3
    cfg.episode_length_s = 10.0
    env = ManagerBasedRLEnv(cfg)
    past = [env.reset(seed=0)[0]["policy"]]
    assert past[0].shape == (4, 39) and torch.equal(past[0][:, :12], past[0][:, 24:36])
    for _ in range(3):
        past.append(env.step(ACTION)[0]["policy"])
    assert torch.equal(past[3][:, :36], torch.cat([each[:, 24:36] for each in past[1:]], dim=1))
    assert torch.equal(past[3][:, 36:], env.command_manager.get_command("base_velocity"))


def test_groups_that_are_not_concatenated_are_dicts_of_terms():
    cfg = Cfg()
    cfg.observations.policy.concatenate_terms = False
    envs = [ManagerBasedRLEnv(each) for each in (cfg, Cfg())]
    apart, together = (env.reset(seed=0)[0]["policy"] for env in envs)
    assert torch.equal(torch.cat([apart["joint_pos"], apart["command"]], dim=1), together)
    apart, together = (env.step(ACTION)[0]["policy"] for env in envs)
    assert torch.equal(torch.cat(list(apart.values()), dim=1), together)
    assert envs[0].single_observation_space["policy"]["command"].shape == (3,)


def test_time_out_terms_truncate_and_the_limit_is_that_of_the_task():
    cfg = Cfg()
    cfg.terminations = {"bored": TerminationTermCfg(bored, params={"steps": 3}, time_out=True)}
    env = ManagerBasedRLEnv(cfg)
    env.reset(seed=0)
    for step in range(1, 4):
        _, _, terminated, truncated, _ = env.step(ACTION)
        assert not terminated.any() and bool(truncated.all()) == (step == 3)
    assert env.core.max_episode_length is None, "without mdp.time_out there is no time limit"
    cfg.terminations = {"time_out": TerminationTermCfg(mdp.time_out)}
    env = ManagerBasedRLEnv(cfg)
    env.reset(seed=0)
    ends = [env.step(ACTION)[2:4] for _ in range(10)]
    assert ends[-1][0].all() and not ends[-1][1].any(), "time_out=False is a finite horizon"


def test_an_environment_without_rewards_gives_observations_and_extras():
    cfg = ManagerBasedEnvCfg(
        scene=SceneCfg(num_envs=4),
        observations=ObservationsCfg(),
        actions=ActionsCfg(),
        decimation=4,
    )
    cfg.observations.policy.command = None
    env = ManagerBasedEnv(cfg)
    env.reset(seed=0)
    results = [env.step(ACTION) for _ in range(3)]
    assert all(len(result) == 2 for result in results) and results[-1][0]["policy"].shape == (4, 12)
    assert env.episode_length_buf.tolist() == [3] * 4
    assert env.recorder_manager is None and not (env.reset_terminated | env.reset_time_outs).any()
    with pytest.raises(
        TypeError,
        match=r"ManagerBasedRLEnv needs a .*ManagerBasedRLEnvCfg, got a .*ManagerBasedEnvCfg",
    ):
        ManagerBasedRLEnv(cfg)
    env.reset(env_ids=torch.tensor([1]))
    assert env.episode_length_buf.tolist() == [3, 0, 3, 3]
    assert ManagerBasedEnv.seed(7) == 7 and 0 <= ManagerBasedEnv.seed() < 10_000


def recorded(folder, name, **fields):
    cfg = Cfg()
    cfg.recorders = ActionStateRecorderManagerCfg(
        dataset_export_dir_path=str(folder), dataset_filename=name, **fields
    )
    env = ManagerBasedRLEnv(cfg)
    env.reset(seed=0)
    steps = [env.step(ACTION * math.sin(i)) for i in range(25)]
    env.close()
    return steps


def test_episodes_are_recorded_in_isaac_labs_layout(tmp_path):
    h5py = pytest.importorskip("h5py")
    steps = recorded(tmp_path, "walk", episodes_at_once=3)
    with h5py.File(tmp_path / "walk.hdf5") as file:
        data = file["data"]
        assert (
            len(data) == 8
            and data.attrs["total"] == 80
            and json.loads(data.attrs["env_args"])["type"] == 2
        )
        demo = data["demo_5"]  # the second episode of environment 1
        assert demo.attrs["num_samples"] == 10 and not demo.attrs["success"]
        actions = np.stack([(ACTION * math.sin(i))[1].numpy() for i in range(10, 20)])
        assert np.array_equal(demo["actions"], actions)
        assert np.array_equal(demo["rewards"], [float(step[1][1]) for step in steps[10:20]])
        assert np.array_equal(
            demo["obs"], torch.stack([step[0]["policy"][1] for step in steps[9:19]])
        )
        assert np.array_equal(demo["final_obs"][0], steps[19][4]["final_obs"]["policy"][1])
        assert (
            demo["truncated"][()].tolist() == [False] * 9 + [True]
            and not demo["terminated"][()].any()
        )
        assert demo["initial_state/articulation/robot/root_pose"].shape == (1, 7)
    with pytest.raises(FileExistsError):
        recorded(tmp_path, "walk")


def test_episodes_are_recorded_as_a_minari_dataset(tmp_path, monkeypatch):
    minari = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    fields = {"dataset_file_handler_class_type": MinariDatasetHandler, "episodes_at_once": 3}
    steps = recorded(tmp_path, "go2/walk-v0", **fields)
    dataset = minari.load_dataset("go2/walk-v0")
    assert dataset.total_episodes == 8 and dataset.total_steps == 80
    episode = dataset[5]
    assert (
        episode.observations.shape == (11, 15)
        and episode.truncations[-1]
        and not episode.terminations.any()
    )
    assert np.array_equal(episode.rewards, [float(step[1][1]) for step in steps[10:20]])


def test_a_missing_package_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"legged-envs\[record\]"):
        recorded(tmp_path, "walk")


NOISE = "Cfg.observations.policy.joint_pos.noise.*UniformNoiseCfg"


def changed(path, value):
    def change(cfg):
        *way, last = path.split(".")
        for name in way:
            cfg = getattr(cfg, name)
        setattr(cfg, last, value)

    return change


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (
            changed("rewards.track", 3.0),
            TypeError,
            r"Cfg.rewards.track must be a .*\.RewardTermCfg or None, got a .*float",
        ),
        (
            changed("events.kick", managers.EventTermCfg(kick, "reset")),
            TypeError,
            r"must be a .*manager_based\.EventTermCfg.*got a .*managers\.event\.EventTermCfg",
        ),
        (changed("decimation", MISSING), ValueError, "Cfg.decimation is missing"),
        (changed("scene.robot", None), ValueError, "no robot"),
        (changed("stiffness", 3.0), AttributeError, "has no field 'stiffness'"),
        (changed("actions.legs.joint_names", ["knee"]), ValueError, "no joint matches"),
        (
            changed("events.kick.is_global_time", True),
            AttributeError,
            "has no field 'is_global_time'",
        ),
        (changed("observations.policy.joint_pos.noise", GaussianNoiseCfg()), ValueError, NOISE),
        (
            changed("observations.policy.joint_pos.noise", UniformNoiseCfg(n_min=0.0)),
            ValueError,
            NOISE,
        ),
        (changed("actions.legs.use_default_offset", False), ValueError, "use_default_offset"),
        (
            changed("rewards.knees", RewardTermCfg(bent_knees, 1.0, {"bend": 1.0})),
            TypeError,
            "asset_cfg",
        ),
        (changed("terminations.contact.params", {"threshold": 1.0}), TypeError, "sensor_cfg"),
        (changed("events.kick.params", {"sped": 1.0}), TypeError, "sped"),
        (
            changed("rewards.knees", RewardTermCfg(lambda env: None, 1.0)),
            ValueError,
            "'knees'.*a tensor, got NoneType",
        ),
        (
            changed("terminations.contact", TerminationTermCfg(lambda env: torch.zeros(4))),
            ValueError,
            "'contact'.*torch.bool, got torch.float32",
        ),
        (
            changed("rewards.knees.params", {"asset_cfg": SceneEntityCfg("dog"), "bend": 1.0}),
            KeyError,
            "dog",
        ),
    ],
)
def test_bad_input(change, error, words):
    cfg = Cfg()
    cfg.observations.policy.enable_corruption = True
    with pytest.raises(error, match=words):
        change(cfg)
        ManagerBasedRLEnv(cfg).reset()


def test_extras_of_a_step_and_of_a_reset():
    def tell(env):
        env.extras["foo"] = 1
        return torch.ones(env.num_envs)

    cfg = Cfg()
    cfg.rewards.speed = RewardTermCfg(tell, 1.0)
    env = Env(cfg)
    assert "resets" in env.reset(seed=0)[1]["log"]
    assert env.step(ACTION)[-1]["foo"] == 1 and "foo" not in env.core.step(ACTION)[-1]


def test_what_differs_from_isaac_lab():
    cfg = Cfg(rerender_on_reset=True)
    assert not hasattr(cfg, "ui_window_class_type")
    env = ManagerBasedRLEnv(cfg)
    env.reset(seed=0)
    env.step(ACTION)
    assert (env.single_observation_space["policy"].high == 100.0).all()
    assert not [name for name in ("obs_buf", "reset_buf", "reward_buf") if hasattr(env, name)]
    history = env.scene.sensors["contact_forces"].data.net_forces_w_history
    assert history[:, 0].any() and not history[:, 1:].any(), "one entry for each control step"
    data = env.scene["robot"].data
    assert torch.equal(data.joint_acc, env.sim.joint_acc)
    assert torch.equal(data.soft_joint_pos_limits, data.joint_pos_limits)
    absent = "feet_air_time is_terminated_term reset_scene_to_default randomize_actuator_gains randomize_joint_parameters"
    absent += " RelativeJointPositionActionCfg NullCommandCfg joint_vel_out_of_limit applied_torque_limits"
    assert not [name for name in absent.split() if hasattr(mdp, name)]
    cfg.curriculum = {"levels": CurriculumTermCfg(lambda env, env_ids: {"easy": 1.0})}
    with pytest.raises((TypeError, ValueError), match="must be real number, not dict"):
        other = ManagerBasedRLEnv(cfg)
        other.reset(seed=0)
        other.step(ACTION)
        other.reset(env_ids=[0])


def test_mdp_names_have_the_values_of_our_terms():
    env = ManagerBasedRLEnv(Cfg())
    env.reset(seed=0)
    env.step(ACTION)
    for name, ours in {
        "joint_torques_l2": "joint_torque",
        "lin_vel_z_l2": "lin_vel_z",
        "action_rate_l2": "action_rate",
    }.items():
        assert torch.equal(getattr(mdp, name)(env), getattr(rewards, ours)(env))
    assert torch.allclose(
        mdp.track_lin_vel_xy_exp(env, 0.5, "base_velocity"), rewards.tracking_lin_vel(env, 0.25)
    )
    with pytest.raises(AttributeError, match="did you mean 'joint_pos_rel'"):
        mdp.joint_pos_real  # noqa: B018
    assert legged_envs.__file__


def test_a_weight_of_zero_leaves_a_term_out():
    cfg = Cfg()
    cfg.rewards.knees.weight = 0.0
    env = ManagerBasedRLEnv(cfg)
    assert env.reward_manager.active_terms == ["track", "speed"]
    with pytest.raises(
        ValueError, match=r"RewardManager has no term, or none with a weight, 'knees'"
    ):
        env.reward_manager.set_term_cfg("knees", RewardTermCfg(bent_knees, 1.0))


def test_configurations_are_inherited_and_play_variants_remove_terms():
    class PlayCfg(Cfg):
        def __post_init__(self):
            super().__post_init__()
            self.scene.num_envs, self.events.kick, self.rewards.speed = 2, None, None

    env = ManagerBasedRLEnv(PlayCfg())
    assert (
        env.num_envs == 2
        and env.event_manager.active_terms == ["joints"]
        and env.common_step_counter == 0
    )
    assert Cfg().events.kick is not None and Cfg().scene.num_envs == 4, (
        "a variant leaves its base as it was"
    )


def test_events_of_mdp_change_the_parameters_and_states_that_they_name():
    env = ManagerBasedRLEnv(Cfg())
    env.reset(seed=0)
    ids, base, data = (
        torch.tensor([1, 2]),
        SceneEntityCfg("robot", body_names="base"),
        env.scene["robot"].data,
    )
    base.resolve(env.scene)
    mdp.randomize_rigid_body_mass(
        env, ids, base, mass_distribution_params=(2.0, 2.0), operation="scale"
    )
    mdp.randomize_rigid_body_com(env, ids, {"x": (0.01, 0.01)}, base)
    mdp.randomize_rigid_body_material(env, ids, static_friction_range=(0.3, 0.3))
    body = base.body_ids[0]
    mass, default = (
        get("body_mass")[:, body] for get in (env.sim.get_parameter, env.sim.default_parameter)
    )
    assert torch.allclose(mass / default, torch.tensor([1.0, 2.0, 2.0, 1.0]))
    moved = (env.sim.get_parameter("com") - env.sim.default_parameter("com"))[ids, body]
    assert torch.allclose(moved, torch.tensor([0.01, 0.0, 0.0]), atol=1e-6)
    assert torch.allclose(env.sim.get_parameter("friction")[ids], torch.tensor(0.3))
    mdp.reset_joints_by_offset(env, ids, (0.1, 0.1), (0.2, 0.2))
    assert torch.allclose(data.joint_pos[ids], data.default_joint_pos[ids] + 0.1, atol=1e-5)
    mdp.reset_root_state_uniform(env, ids, {"x": (0.5, 0.5), "yaw": (1.0, 1.0)}, {"y": (0.3, 0.3)})
    mdp.push_by_setting_velocity(env, ids, {"x": (0.4, 0.4), "yaw": (0.6, 0.6)})
    assert torch.allclose(data.root_pos_w[ids, 0], torch.tensor(0.5)) and torch.allclose(
        data.heading_w[ids], torch.tensor(1.0), atol=1e-5
    )
    assert torch.allclose(
        data.root_vel_w[ids], torch.tensor([0.4, 0.3, 0.0, 0.0, 0.0, 0.6]), atol=1e-5
    )
    with pytest.raises(ValueError, match="force_range"):
        mdp.apply_external_force_torque(env, ids, (0.0, 1.0), (0.0, 0.0), base)


def test_events_of_bodies_keep_what_other_events_did_to_other_bodies():
    env = ManagerBasedRLEnv(Cfg())
    env.reset(seed=0)
    ids = torch.arange(env.num_envs)
    base = SceneEntityCfg("robot", body_names="base")
    calves = SceneEntityCfg("robot", body_names=".*_calf")
    for bodies in (base, calves):
        bodies.resolve(env.scene)
    for _ in range(2):  # repeated draws do not add up
        for bodies, mass, shift in ((base, 1.0, 0.01), (calves, 0.1, 0.02)):
            mdp.randomize_rigid_body_mass(env, ids, bodies, (mass, mass), "add")
            mdp.randomize_rigid_body_com(env, ids, {"x": (shift, shift)}, bodies)
    added = env.sim.get_parameter("body_mass") - env.sim.default_parameter("body_mass")
    moved = env.sim.get_parameter("com") - env.sim.default_parameter("com")
    for bodies, mass, shift in ((base, 1.0, 0.01), (calves, 0.1, 0.02)):
        assert torch.allclose(added[:, bodies.body_ids], torch.tensor(mass), atol=1e-6)
        assert torch.allclose(moved[:, bodies.body_ids, 0], torch.tensor(shift), atol=1e-6)


def test_the_heading_of_a_velocity_command_may_have_no_range():
    ranges = mdp.UniformVelocityCommandCfg.Ranges((-1.0, 1.0), (-1.0, 1.0), (-1.0, 1.0), None)
    cfg = mdp.UniformVelocityCommandCfg(resampling_time_range=(1.0, 1.0), ranges=ranges)
    assert not cfg.translated().heading
    cfg.heading_command = True
    with pytest.raises(ValueError, match=r"heading_command=True needs ranges.heading"):
        cfg.translated()


def test_events_of_mdp_change_the_robot_and_the_joints_that_are_chosen():
    @configclass
    class PairCfg(SceneCfg):
        mate = PlacedRobot(GO2, start=(2.0, 0.0, 0.0))
        box = ObjectCfg("box", (0.1, 0.1, 0.1), 1.0, 1.0, (4.0, 0.0, 0.1))

    env = ManagerBasedRLEnv(Cfg(scene=PairCfg(num_envs=4)))
    env.reset(seed=0)
    ids = torch.arange(env.num_envs)
    base, hips = (
        SceneEntityCfg("mate", body_names="base"),
        SceneEntityCfg("robot", joint_names=[".*hip.*"]),
    )
    for chosen in (base, hips):
        chosen.resolve(env.scene)
    mdp.randomize_rigid_body_mass(env, ids, base, (5.0, 5.0), "add")
    mdp.randomize_rigid_body_material(env, ids, (0.3, 0.3), asset_cfg=base)
    sims = env.core.sim.robots
    more = {}
    for name, sim in sims.items():
        more[name] = (sim.get_parameter("body_mass") - sim.default_parameter("body_mass")).sum(1)
    assert torch.allclose(more["mate"], torch.tensor(5.0)) and not more["robot"].any()
    assert torch.allclose(sims["mate"].get_parameter("friction"), torch.tensor(0.3))
    assert not torch.allclose(sims["robot"].get_parameter("friction"), torch.tensor(0.3))
    with pytest.raises(ValueError, match=r"an event that changes bodies.*'box'"):
        mdp.randomize_rigid_body_mass(env, ids, SceneEntityCfg("box"), (5.0, 5.0), "add")
    before = env.scene["robot"].data.joint_pos.clone()
    mdp.reset_joints_by_offset(env, ids, (0.1, 0.1), (0.0, 0.0), hips)
    moved = (env.scene["robot"].data.joint_pos - before).abs() > 1e-6
    assert moved.any(0).nonzero().squeeze(1).tolist() == list(hips.joint_ids)


def test_episodes_of_terms_that_are_not_joined_are_refused(tmp_path):
    cfg = Cfg()
    cfg.observations.policy.concatenate_terms = False
    cfg.recorders = ActionStateRecorderManagerCfg(dataset_export_dir_path=str(tmp_path))
    with pytest.raises(ValueError, match="concatenate_terms = True"):
        ManagerBasedRLEnv(cfg)
