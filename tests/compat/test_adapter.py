"""Properties of all forms of a task: registration, changes by path, saved state."""

from __future__ import annotations

import dataclasses
from collections import defaultdict

import gymnasium as gym
import numpy as np
import pytest
import torch
from forms import register_form

import legged_envs
from legged_envs.compat.isaac_lab import DirectRLEnv, DirectRLEnvCfg, SimulationCfg, configclass
from legged_envs.compat.isaac_lab.adapted_term import Adapted
from legged_envs.compat.legged_gym import LeggedRobot
from legged_envs.envs import make_core
from legged_envs.envs.cfg import override
from legged_envs.registration import TASKS, make_task_cfg
from legged_envs.robots import GO2


@configclass
class HopCfg(DirectRLEnvCfg):
    robot = GO2
    sim = SimulationCfg(dt=0.005)
    decimation = 4
    observation_space, action_space = 3, 12
    bonus = 1.0
    cost_limits = {"height": 0.5}  # noqa: RUF012


class Hop(DirectRLEnv):
    def __init__(self, cfg, render_mode=None, **kwargs):
        super().__init__(cfg, render_mode, **kwargs)
        self.array, self.pair = np.zeros(self.num_envs), (torch.zeros(self.num_envs), 0)
        self.mixed = {"kind": "hop", "none": None, "count": torch.zeros(self.num_envs)}

    def _get_observations(self):
        return {"policy": self.robot.projected_gravity.clone()}

    def _get_rewards(self):
        self.array = self.array + 1.0
        self.mixed["count"] += 1.0
        self.pair = (self.pair[0] + 1.0, self.pair[1] + 1)
        return self.robot.base_height * self.cfg.bonus

    def _get_dones(self):
        return self.robot.projected_gravity[:, 2] > 0.0, self.episode_length_buf >= 1000

    def _get_costs(self):
        return {"height": self.robot.base_height.clone()}


@pytest.fixture(autouse=True)
def hop():
    legged_envs.register("Mine/Hop-v0", Hop, HopCfg)
    yield "Mine/Hop-v0"
    del TASKS["Mine/Hop-v0"], gym.registry["Mine/Hop-v0"]


def test_a_registered_class_gives_the_stack_and_a_single_environment(hop):
    envs, one = gym.make_vec(hop, num_envs=2), gym.make(hop)
    observation, _ = envs.reset(seed=3)
    np.testing.assert_array_equal(one.reset(seed=3)[0], observation[0])
    for _ in range(5):
        action = envs.action_space.sample()
        _, reward, _, _, info = envs.step(action)
        single = one.step(action[0])
        assert single[1] == reward[0] and single[4]["cost"] == info["cost"][0] > 0.0
    assert envs.unwrapped.cost_limits == (0.5,) and isinstance(envs.unwrapped.task.user, Hop)


def test_changes_by_path_are_in_the_words_of_the_task_or_in_ours(hop):
    envs = gym.make_vec(
        hop, num_envs=2, cfg={"bonus": 2.0, "episode_length_s": 0.1, "sim.num_threads": 1}
    )
    core = envs.unwrapped
    assert (
        core.task.user.cfg.bonus == 2.0
        and core.max_episode_length == 5
        and core.cfg.sim.num_threads == 1
    )
    changed = HopCfg()
    changed.bonus = 3.0
    assert gym.make_vec(hop, num_envs=1, cfg=changed).unwrapped.task.user.cfg.bonus == 3.0
    with pytest.raises(ValueError, match="did you mean 'bonus'"):
        gym.make_vec(hop, num_envs=1, cfg={"bonu": 2.0})
    with pytest.raises(
        TypeError, match="cfg must be a HopCfg, a TaskCfg or a mapping of changes, got int"
    ):
        gym.make_vec(hop, num_envs=1, cfg=3)


def test_changes_in_our_words_outlast_later_changes_in_the_words_of_the_task():
    first = override(Hop.task_cfg(HopCfg()), {"sim.num_threads": 1, "action_limit": 2.0})
    first.is_finite_horizon = True
    cfg = override(first, {"bonus": 2.0, "decimation": 2})
    assert (cfg.own_cfg.bonus, cfg.sim.decimation) == (2.0, 2)
    assert (cfg.sim.num_threads, cfg.action_limit, cfg.is_finite_horizon) == (1, 2.0, True)
    # The later of two changes counts, whatever words it is in.
    assert override(cfg, {"decimation": 8}).sim.decimation == 8
    assert override(override(cfg, {"sim": SimulationCfg(dt=0.002)}), {"bonus": 1.0}).sim.dt == 0.002
    assert first.own_cfg.bonus == 1.0 and first.sim.decimation == 4


@pytest.mark.parametrize("form", ["legged_robot", "manager_based"])
def test_removed_and_changed_terms_outlast_later_changes_of_the_task(form):
    cfg = make_task_cfg(register_form(form))
    name, kept = list(cfg.rewards)[:2]
    del cfg.rewards[name]
    cfg.rewards[kept].weight = 0.125
    cfg.viewer = dataclasses.replace(cfg.viewer, eye=(1.0, 1.0, 1.0))
    own = "env.episode_length_s" if form == "legged_robot" else "episode_length_s"
    later = override(cfg, {own: 3.0})
    assert later.episode_length_s == 3.0 and later.viewer.eye == (1.0, 1.0, 1.0)
    assert name not in later.rewards and later.rewards[kept].weight == 0.125
    make_core(later, 1)


def test_none_removes_a_term_of_a_configuration_class():
    core = gym.make_vec(
        register_form("manager_based"),
        num_envs=1,
        cfg={"rewards.joint_torque": None, "events.push": None},
    ).unwrapped
    assert "joint_torque" not in core.rewards.names and "push" not in core.events.names


@pytest.mark.parametrize("given", [(int, HopCfg), (3, HopCfg), (Hop, 3), (Hop, HopCfg, 1), ()])
def test_what_is_no_class_of_a_workflow_is_refused(given):
    with pytest.raises(TypeError, match=r"class must be|cfg must be|a class of|register takes"):
        legged_envs.register("Mine/Wrong-v0", *given)
    assert "Mine/Wrong-v0" not in TASKS


def test_arrays_tuples_and_numbers_among_the_attributes_are_part_of_the_state(hop):
    envs = gym.make_vec(hop, num_envs=2)
    envs.reset(seed=0)
    state = envs.get_state()
    envs.step(envs.action_space.sample())
    task = envs.unwrapped.task.user
    assert task.array.tolist() == [1.0, 1.0] and task.pair[1] == 1
    envs.set_state(state)
    assert (
        task.array.tolist() == [0.0, 0.0]
        and task.pair[0].tolist() == [0.0, 0.0]
        and task.pair[1] == 0
    )
    assert task.mixed["count"].tolist() == [0.0, 0.0] and task.mixed["kind"] == "hop"


def test_a_state_of_another_class_is_refused(hop):
    other, own = (
        gym.make_vec(register_form("legged_robot"), num_envs=2),
        gym.make_vec(hop, num_envs=2),
    )
    assert isinstance(other.unwrapped.task.user, LeggedRobot)
    other.reset(seed=0), own.reset(seed=0)
    with pytest.raises(ValueError, match="another environment"):
        own.set_state(other.get_state())


def touch(values):
    """Change each of ``values`` as the methods of a task do: in place, by another one, by one of another kind."""
    values["none"] = values["later"] = torch.ones(2)
    values["tensor"], values["flag"] = None, torch.ones(2)
    values["inner"]["none"] = torch.ones(2)
    values["objects"].append(object()), values["table"]["new"].append(1), values["names"].add("new")
    values["array"] += 1.0
    for module in (values["module"], *values["modules"]):
        module(torch.randn(4, 2))


def values_of_users():
    shared = torch.zeros(2, 1)
    values = {
        "none": None,
        "tensor": torch.zeros(2),
        "flag": torch.zeros(2, dtype=torch.bool),
        "inner": {"none": None},
    }
    values |= {
        "objects": [object()],
        "table": defaultdict(list),
        "names": {"old"},
        "array": np.zeros(2),
    }
    values |= {"module": torch.nn.BatchNorm1d(2), "modules": [torch.nn.BatchNorm1d(2)]}
    values |= {
        "weight": torch.nn.Parameter(torch.ones(2)),
        "product": [torch.ones(2, requires_grad=True) * 2.0],
    }
    return values | {"view": shared[:, 0], "of": shared, "expanded": torch.ones(1, 3).expand(2, 3)}


def test_trial_calls_put_back_whatever_users_keep(hop):
    class Keeps(Hop):
        def __init__(self, cfg, render_mode=None, **kwargs):
            super().__init__(cfg, render_mode, **kwargs)
            self.first = values_of_users()
            vars(self).update(self.first)

        def _get_observations(self):
            touch(vars(self))
            self.extras["calls"] = self.extras.get("calls", 0) + 1
            return super()._get_observations()

    cfg = HopCfg()
    cfg.scene.num_envs = 2
    task = Keeps(cfg)
    expected = values_of_users()
    assert all(
        vars(task)[name] is value for name, value in task.first.items() if name != "expanded"
    )
    assert not hasattr(task, "later") and task.extras == {} and task.inner == {"none": None}
    assert (
        len(task.objects) == 1
        and task.names == {"old"}
        and not task.array.any()
        and task.expanded.all()
    )
    assert (type(task.table), dict(task.table)) == (defaultdict, {})
    assert not task.module.num_batches_tracked and not task.modules[0].num_batches_tracked
    assert (
        task.view.data_ptr() == task.of.data_ptr()
        and expected["weight"].requires_grad == task.weight.requires_grad
    )


def test_a_saved_state_has_copies_of_what_users_keep(hop):
    class Keeps(Hop):
        def __init__(self, cfg, render_mode=None, **kwargs):
            super().__init__(cfg, render_mode, **kwargs)
            self.values, self.number = values_of_users(), np.int64(0)
            del self.values["objects"], self.values["names"]

        def _get_rewards(self):
            self.values["module"](torch.randn(4, 2)), self.values["modules"][0](torch.randn(4, 2))
            self.values["table"][f"{self.number}"] = [self.number]
            self.values["inner"]["none"] = (
                None if self.values["inner"]["none"] is not None else torch.ones(2)
            )
            self.number = self.number + 1
            return super()._get_rewards()

    cfg = HopCfg()
    cfg.scene.num_envs = 2
    task = Keeps(cfg)
    task.reset(seed=0)
    task.step(torch.zeros(2, 12))
    state = task.core.get_state()
    task.step(torch.zeros(2, 12))
    task.core.set_state(state)
    values = task.values
    assert (
        task.number == 1
        and values["module"].num_batches_tracked == values["modules"][0].num_batches_tracked == 1
    )
    assert list(values["table"]) == ["0"] and torch.equal(values["inner"]["none"], torch.ones(2))


def test_terms_that_are_classes_take_back_what_they_made_late():
    class Late:
        def __init__(self, cfg, env):
            pass

        def __call__(self, env):
            self.made = torch.ones(2)

    used, fresh = (Adapted(Late, None).make(None) for _ in range(2))
    used(None)
    fresh.load_state_dict(used.state_dict())
    assert torch.equal(fresh.attributes["made"], torch.ones(2))


def test_a_task_that_was_made_has_no_seed(hop):
    env = Hop(HopCfg()).core
    assert (env._np_random, env._np_random_seed) == (None, None)
