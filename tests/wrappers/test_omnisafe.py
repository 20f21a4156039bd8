"""Our environments as OmniSafe's, and our wrappers against the wrappers of OmniSafe that they are named after."""

from __future__ import annotations

import csv
import importlib
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space
from toy_envs import make_toy_env

pytest.importorskip(
    "legged_envs.wrappers.adapters.omnisafe",
    reason="OmniSafe is not installed",
    exc_type=ImportError,
)

import omnisafe
from omnisafe.common.logger import Logger
from omnisafe.common.normalizer import Normalizer as UpstreamNormalizer
from omnisafe.envs import wrapper as upstream
from omnisafe.envs.core import CMDP, support_envs
from omnisafe.envs.core import make as make_cmdp

from legged_envs import make_task_cfg
from legged_envs.wrappers.action_repeat import ActionRepeat
from legged_envs.wrappers.action_scale import ActionScale
from legged_envs.wrappers.adapters import omnisafe as adapter
from legged_envs.wrappers.auto_reset import AutoReset
from legged_envs.wrappers.cost_normalize import CostNormalize
from legged_envs.wrappers.cost_reduce import CostReduce
from legged_envs.wrappers.obs_normalize import ObsNormalize
from legged_envs.wrappers.plumbing.cmdp import VectorCMDP
from legged_envs.wrappers.plumbing.normalizer import Normalizer
from legged_envs.wrappers.reward_normalize import RewardNormalize
from legged_envs.wrappers.time_limit import TimeLimit
from legged_envs.wrappers.to_torch import ToTorch
from legged_envs.wrappers.unsqueeze import Unsqueeze

GO2 = "Legged/Go2-Flat-v0"
NUM_ENVS = pytest.mark.parametrize("num_envs", [1, 3])
EASY_TO_FALL = {"terminations.fallen.params": {"max_projected_gravity": -0.97}}
make_short = partial(gym.make_vec, GO2, array="torch", max_episode_steps=12)
SHORT = adapter.register("Test/Short", partial(make_short, cfg=EASY_TO_FALL))


# --- our environments in OmniSafe ------------------------------------------------------------------------------------


def batched(value: Any, num_envs: int) -> Any:
    return value[None] if num_envs == 1 else value


@NUM_ENVS
def test_the_cmdp_gives_what_the_environment_gives(make_vec, random_actions, num_envs: int) -> None:
    cmdp = make_cmdp(SHORT, num_envs=num_envs, device=torch.device("cpu"))
    env = make_vec(num_envs, array="torch", max_episode_steps=12, cfg=EASY_TO_FALL)
    cmdp.set_seed(5)
    observation, info = cmdp.reset()
    env.reset(seed=5)
    assert torch.equal(batched(observation, num_envs), env.reset()[0]) and info == {}

    fell = timed_out = False
    for action in torch.from_numpy(random_actions(26, num_envs)):
        *values, info = cmdp.step(action[0] if num_envs == 1 else action)
        observation, reward, terminated, truncated, expected = env.step(action)
        values = [batched(value, num_envs) for value in values]
        for value, right in zip(
            values, (observation, reward, expected["cost"], terminated, truncated), strict=True
        ):
            assert value.dtype == right.dtype and torch.equal(value, right)
        assert torch.equal(batched(info["costs"], num_envs), expected["costs"])
        ended = terminated | truncated
        assert ("final_observation" in info) == ("_final_observation" in info) == bool(ended.any())
        if ended.any():
            assert torch.equal(batched(info["_final_observation"], num_envs), ended)
            assert torch.equal(
                batched(info["final_observation"], num_envs)[ended], expected["final_obs"][ended]
            )
        fell, timed_out = fell or terminated.any(), timed_out or truncated.any()
    assert timed_out and (fell or num_envs == 1)
    cmdp.close()


def test_one_environment_has_no_batch_dimension() -> None:
    cmdp = make_cmdp(SHORT, num_envs=1)
    observation, _ = cmdp.reset(seed=0)
    assert observation.shape == cmdp.observation_space.shape == (45,)
    for _ in range(12):
        *values, info = cmdp.step(torch.zeros(12))
        assert [tuple(value.shape) for value in values] == [(45,), (), (), (), ()]
    assert info["final_observation"].shape == (45,) and info["_final_observation"].shape == ()
    cmdp.close()


class OneMemory(gym.vector.VectorWrapper):
    """Returns what it has always in the same memory."""

    def reset(self, **kwargs: Any) -> Any:
        self.memory, info = self.env.reset(**kwargs)
        return self.memory, info

    def step(self, actions: Any) -> Any:
        observation, *values, info = self.env.step(actions)
        if "final_obs" in info:
            info["final_obs"] = self.memory
        return self.memory.copy_(observation), *values, info


def test_what_is_returned_belongs_to_the_caller(random_actions) -> None:
    """OmniSafe writes into observations, and keeps them until after the next step."""
    adapter.register("Test/OneMemory", lambda **kwargs: OneMemory(make_short(**kwargs)))
    kept, spoilt = make_cmdp("Test/OneMemory", num_envs=2), make_cmdp("Test/OneMemory", num_envs=2)
    kept.reset(seed=1)
    observation, _ = spoilt.reset(seed=1)
    for action in torch.from_numpy(random_actions(14, 2)):
        observation.fill_(7.0)
        *values, info = spoilt.step(action)
        assert (observation == 7.0).all()
        expected = kept.step(action)
        assert torch.equal(values[0], expected[0])
        for tensor in (*values[1:], *info.values()):
            tensor.zero_()
        assert torch.equal(values[0], expected[0])
        observation = values[0]
    for cmdp in (kept, spoilt):
        cmdp.close()


def test_one_random_action_is_for_all_environments(random_actions) -> None:
    one, repeated = make_cmdp(SHORT, num_envs=3), make_cmdp(SHORT, num_envs=3)
    for cmdp in (one, repeated):
        cmdp.reset(seed=2)
    action = torch.from_numpy(random_actions(1, 1)[0])
    assert torch.equal(one.step(action)[0], repeated.step(action.repeat(3, 1))[0])
    for cmdp in (one, repeated):
        cmdp.close()


class BothFlags(gym.vector.VectorWrapper):
    """Terminates every episode in the step that also truncates it."""

    def step(self, actions: Any) -> Any:
        observation, reward, _, truncated, info = self.env.step(actions)
        return observation, reward, truncated, truncated, info


def test_a_fall_on_the_last_step_is_no_time_out() -> None:
    adapter.register(
        "BothFlags",
        lambda **kwargs: BothFlags(gym.make_vec(GO2, array="torch", max_episode_steps=2, **kwargs)),
    )
    cmdp = make_cmdp("BothFlags", num_envs=2)
    cmdp.reset(seed=0)
    flags = [cmdp.step(torch.zeros(2, 12))[3:5] for _ in range(2)]
    assert [[flag.tolist() for flag in pair] for pair in flags] == [
        [[False] * 2] * 2,
        [[True] * 2, [False] * 2],
    ]
    cmdp.close()


def test_the_log_has_the_means_over_the_episodes_that_ended(random_actions, tmp_path: Path) -> None:
    cmdp = make_cmdp(SHORT, num_envs=5)
    logger = Logger(str(tmp_path), "log", use_tensorboard=False)
    for key in cmdp.env_spec_log:
        logger.register_key(key)
    cmdp.set_seed(5)
    cmdp.reset()
    sums, steps, episodes = torch.zeros(5, 6), torch.zeros(5, 1), []
    for action in torch.from_numpy(random_actions(30, 5)):
        *_, terminated, truncated, info = cmdp.step(action)
        sums, steps = sums + info["costs"], steps + 1
        for i in (terminated | truncated).nonzero()[:, 0].tolist():
            cmdp.spec_log(logger)  # as OmniSafe's adapters do
            episodes.append([float(terminated[i]), *(sums[i] / steps[i]).tolist()])
            sums[i], steps[i] = 0.0, 0.0
    fallen, *costs = np.mean(episodes, axis=0)
    assert 0 < fallen < 1 and max(costs) > 0
    assert logger.get_stats("Termination/fallen")[0] == pytest.approx(fallen, rel=1e-5)
    logged = [logger.get_stats(f"Cost/{name}")[0] for name in cmdp.cost_names]
    assert logged == pytest.approx(costs, rel=1e-4, abs=1e-7)
    cmdp.close()


def test_an_environment_that_is_never_given_a_seed_follows_the_seed_of_torch() -> None:
    def first(torch_seed: int) -> torch.Tensor:
        torch.manual_seed(torch_seed)
        cmdp = make_cmdp(SHORT)
        observation, _ = cmdp.reset()
        cmdp.close()
        return observation

    assert torch.equal(first(1), first(1)) and not torch.equal(first(1), first(2))


def test_every_registered_id_is_known_and_has_one_limit_for_an_episode() -> None:
    ids = [name for name in gym.registry if name.startswith("Legged/")]
    assert set(ids) <= set(support_envs())
    for name in ids:
        cmdp = make_cmdp(name)
        steps = make_task_cfg(name).max_episode_length
        bipeds = ("G1", "H1", "K1", "T1", "Tron1-PF", "Tron1-SF", "Tron1-WF")
        shorter = {f"Legged/{biped}-Flat-v0": 250 for biped in bipeds}
        shorter |= {"Legged/Go2-Pair-v0": 500, "Legged/Go2-Nav-v0": 400}
        assert cmdp.max_episode_steps == steps == shorter.get(name, 1000)
        assert adapter.episode_cost_limit(name) == pytest.approx(steps * sum(cmdp.cost_limits))
        assert not (cmdp.need_time_limit_wrapper or cmdp.need_auto_reset_wrapper)
        cmdp.close()
    assert adapter.episode_cost_limit(GO2, max_episode_steps=10) == pytest.approx(10 * 0.175)


def test_the_limit_of_an_episode_follows_the_reduction_of_the_costs() -> None:
    def reduced(how: str) -> str:
        def make(num_envs: int = 1, **kwargs: Any) -> Any:
            made = gym.make_vec(GO2, num_envs=num_envs, array="torch", max_episode_steps=20)
            return CostReduce(made, how)

        return adapter.register(f"Reduced-{how}-v0", make)

    assert adapter.episode_cost_limit(reduced("sum")) == pytest.approx(20 * 0.175)
    assert adapter.episode_cost_limit(reduced("weighted")) == 20 * 6
    for how in ("max", "any"):
        with pytest.raises(ValueError, match=rf"CostReduce\('{how}'\)"):
            adapter.episode_cost_limit(reduced(how))


@pytest.mark.render
def test_the_evaluator_can_ask_for_pictures() -> None:
    cmdp = make_cmdp(
        GO2,
        num_envs=1,
        render_mode="rgb_array",
        camera_id=None,
        camera_name="track",
        width=256,
        height=256,
    )
    cmdp.reset(seed=0)
    assert cmdp.render().shape == (480, 640, 3)
    cmdp.close()


def test_importing_and_registering_again_does_no_harm() -> None:
    make = adapter.LeggedCMDP.makers[SHORT]
    importlib.reload(adapter)
    for _ in range(2):
        assert adapter.register(SHORT, make) == SHORT
    assert {SHORT, GO2} <= set(support_envs())
    make_cmdp(SHORT).close()


def make_costly() -> str:
    return adapter.register("Test/SixValues", lambda **kwargs: VectorCMDP(make_short(**kwargs)))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: make_cmdp(GO2, camera_name="front"), ValueError, "camera_name"),
        (lambda: make_cmdp(GO2, speed=3), TypeError, "'speed'"),
        (lambda: make_cmdp(GO2, autoreset_mode="Disabled"), ValueError, "SAME_STEP"),
        (lambda: make_cmdp(GO2, observations="dict"), ValueError, "Box"),
        (lambda: make_cmdp(GO2, array="numpy").reset(), TypeError, "ToTorch"),
        (lambda: make_cmdp(make_costly()), ValueError, "VectorCMDP"),
        (
            lambda: adapter.register("Nothing", None),
            TypeError,
            "make .*None",
        ),
        (
            lambda: adapter.register("Simple-v0", gym.make_vec),
            ValueError,
            "Simple-v0",
        ),
    ],
    ids=["camera", "keyword", "autoreset", "dict", "numpy", "VectorCMDP", "maker", "taken"],
)
def test_what_omnisafe_cannot_use_is_refused(
    make: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()


TINY = {
    "PPOLag": {"update_iters": 2, "batch_size": 64},
    "CPO": {"update_iters": 2, "batch_size": 64},
    "SACLag": {"start_learning_steps": 24, "batch_size": 32, "size": 2000, "update_cycle": 8},
}


def train(
    algorithm: str, env_id: str, num_envs: int, directory: Path
) -> tuple[Any, list[dict[str, float]]]:
    """Two epochs of 24 steps of each environment; the agent, and what OmniSafe logged of each epoch."""
    steps = 24 * num_envs
    cfgs = {
        "algo_cfgs": {**TINY[algorithm], "steps_per_epoch": steps},
        "train_cfgs": {"torch_threads": 1, "vector_env_nums": num_envs, "total_steps": 2 * steps},
        "logger_cfgs": {"use_wandb": False, "use_tensorboard": False, "log_dir": str(directory)},
    }
    agent = omnisafe.Agent(algorithm, env_id, custom_cfgs=cfgs)
    agent.learn()
    agent.agent._env._eval_env.close()  # OmniSafe leaves it open
    with open(next(directory.rglob("progress.csv"))) as log:
        return agent, [
            {key: float(value) for key, value in row.items()} for row in csv.DictReader(log)
        ]


@pytest.mark.parametrize("num_envs", [1, 16])
@pytest.mark.parametrize("algorithm", TINY)
def test_omnisafe_trains(algorithm: str, num_envs: int, tmp_path: Path) -> None:
    adapter.register("Test/Twelve", make_short)  # nobody falls within twelve steps
    _, epochs = train(algorithm, "Test/Twelve", num_envs, tmp_path)
    assert len(epochs) == 2
    for epoch in epochs:
        assert epoch["Metrics/EpLen"] == 12 and epoch["Termination/fallen"] == 0
        assert np.isfinite([epoch[f"Metrics/Ep{name}"] for name in ("Ret", "Cost")]).all()
    # OmniSafe averages over its last 50 episodes: in the first epoch over all, as our terms are.
    terms = sum(value for key, value in epochs[0].items() if key.startswith("Cost/"))
    assert terms * 12 == pytest.approx(epochs[0]["Metrics/EpCost"], rel=1e-4)
    assert epochs[0]["Metrics/EpCost"] > 0


class Effort(gym.vector.VectorWrapper):
    """Reports the mean size of the actions as a cost."""

    def step(self, actions: Any) -> Any:
        *values, info = self.env.step(actions)
        return *values, {**info, "cost": np.abs(actions).mean(1)}


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
@NUM_ENVS
def test_omnisafe_trains_on_environments_of_gymnasium(
    num_envs: int, mode: str, tmp_path: Path
) -> None:
    def make(**kwargs: Any) -> VectorEnv:
        arguments = {
            "vectorization_mode": "sync",
            "vector_kwargs": {"autoreset_mode": mode},
            "max_episode_steps": 12,
        }
        env = gym.make_vec("HalfCheetah-v5", **arguments, **kwargs)
        return ToTorch(Effort(env if mode == "SameStep" else AutoReset(env)))

    adapter.register("Test/Gymnasium", make)
    _, epochs = train("PPOLag", "Test/Gymnasium", num_envs, tmp_path)
    assert [epoch["Metrics/EpLen"] for epoch in epochs] == [12, 12]
    assert epochs[-1]["Metrics/EpCost"] > 0 and np.isfinite(epochs[-1]["Metrics/EpRet"])
    cmdp = make_cmdp("Test/Gymnasium", num_envs=num_envs)
    observation, _ = cmdp.reset(seed=0)
    for _ in range(12):
        observation, *_, truncated, info = cmdp.step(torch.zeros(num_envs, 6))
    assert truncated.all() and info["_final_observation"].all()
    final = info["final_observation"]
    assert final.shape == observation.shape and final.dtype == observation.dtype == torch.float32
    assert not torch.equal(final, observation)
    cmdp.close()


@NUM_ENVS
def test_costs_that_gymnasiums_environments_hide_in_final_info_are_passed_on(num_envs: int) -> None:
    def make(mode: str) -> VectorEnv:
        return SyncVectorEnv([make_toy_env] * num_envs, autoreset_mode=mode)

    adapter.register("Test/Hidden", lambda **kwargs: ToTorch(make("SameStep")))
    cmdp, plain = make_cmdp("Test/Hidden", num_envs=num_envs), AutoReset(make("Disabled"))
    cmdp.reset(seed=0), plain.reset(seed=0)
    ended = 0
    for action in np.random.default_rng(0).uniform(-1, 1, (20, num_envs, 2)).astype(np.float32):
        _, _, cost, terminated, truncated, info = cmdp.step(torch.from_numpy(action))
        expected = plain.step(action)[4]
        np.testing.assert_array_equal(batched(cost, num_envs), expected["cost"])
        np.testing.assert_array_equal(batched(info["costs"], num_envs), expected["costs"])
        ended += int((terminated | truncated).sum())
    assert ended > 2
    cmdp.close()


def test_omnisafe_evaluates_what_it_has_trained_where_episodes_end_early(
    tmp_path: Path, capsys
) -> None:
    agent, epochs = train("PPOLag", SHORT, 4, tmp_path)
    assert epochs[-1]["Metrics/EpLen"] < 12 and epochs[-1]["Termination/fallen"] > 0
    agent.evaluate(num_episodes=1)
    assert "Average episode cost" in capsys.readouterr().out


def test_the_example_runs_with_a_tiny_budget(tmp_path: Path, monkeypatch, capsys) -> None:
    budget = [
        "--num-envs",
        "8",
        "--epochs",
        "2",
        "--episode-steps",
        "12",
        "--log-dir",
        str(tmp_path),
    ]
    example = Path(__file__).parents[2] / "examples" / "omnisafe_ppo_lag.py"
    monkeypatch.setattr(sys, "argv", [str(example), *budget])
    runpy.run_path(str(example), run_name="__main__")
    last = capsys.readouterr().out.splitlines()[-2:]
    assert [line.split()[0] for line in last] == ["before", "after"]


def test_omnisafe_can_be_imported_also_after_an_import_that_failed() -> None:
    """And Safety-Gymnasium is still missing for other libraries, which look for it."""
    program = (
        "import importlib.util\n"
        "try:\n"
        "    import omnisafe\n"
        "    raise SystemExit('OmniSafe needs no help')\n"
        "except ModuleNotFoundError as error:\n"
        "    assert error.name == 'safety_gymnasium', error\n"
        "import legged_envs.wrappers.adapters.omnisafe, omnisafe\n"
        "assert importlib.util.find_spec('safety_gymnasium') is None\n"
        "print(omnisafe.__version__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "0.5.0"), done.stderr


@pytest.mark.parametrize(
    ("source", "is_real"),
    [("make = 1", True), ("raise ValueError('too old')", False), (None, False)],
    ids=["works", "broken", "missing"],
)
def test_safety_gymnasium_is_replaced_only_if_it_cannot_be_imported(
    source, is_real, tmp_path, monkeypatch
) -> None:
    if source is not None:
        (tmp_path / "safety_gymnasium.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    try:
        with adapter.missing_safety_gymnasium():
            import safety_gymnasium

            if is_real:
                assert safety_gymnasium.make == 1
            else:
                with pytest.raises(AttributeError, match="Safety-Gymnasium"):
                    _ = safety_gymnasium.make
        assert ("safety_gymnasium" in sys.modules) == is_real
    finally:
        sys.modules.pop("safety_gymnasium", None)


# --- our wrappers against OmniSafe's ---------------------------------------------------------------------------------

CPU = torch.device("cpu")
LIMIT = 6
LENGTHS = (4, 9, 3, 6, 2, 8)
ACTION_SPACE = Box(np.array([-2.0, 0.0], np.float32), np.array([4.0, 1.0], np.float32))


class Toy:
    """A state that follows the actions, and episodes of given lengths. Everything is float64."""

    def __init__(self, lengths: tuple[int, ...] = LENGTHS, truncates: bool = False):
        self.lengths, self.truncates, self.episode = lengths, truncates, -1

    def reset(self) -> torch.Tensor:
        self.episode, self.time = self.episode + 1, 0
        self.state = torch.tensor([1.0, -0.5, 0.1 * self.episode], dtype=torch.float64)
        return self.state.clone()

    def step(self, action: torch.Tensor) -> tuple[torch.Tensor, float, float, bool, bool]:
        self.time += 1
        drift = torch.tensor(
            [action[0], -2.0 * action[1], action[0] * action[1]], dtype=torch.float64
        )
        self.state = 0.8 * self.state + drift
        over = self.time >= self.lengths[self.episode % len(self.lengths)]
        reward, cost = float(self.state[0]) - 1.0, max(float(self.state[2]), 0.0)
        return (
            self.state.clone(),
            reward,
            cost,
            over and not self.truncates,
            over and self.truncates,
        )


class ToyCMDP(CMDP):
    """Toys as OmniSafe's ``CMDP``; ``info`` comes from a function of the toys' observations."""

    _observation_space = Box(-100.0, 100.0, (3,))
    _action_space = ACTION_SPACE

    def __init__(
        self, *toys: Toy, info: Callable[[torch.Tensor], dict[str, Any]] = lambda observation: {}
    ):
        self.toys, self._num_envs, self.info = toys or (Toy(),), max(len(toys), 1), info

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return self._row(torch.stack([toy.reset() for toy in self.toys])), {}

    def step(self, action: torch.Tensor) -> Any:
        rows = [
            toy.step(a) for toy, a in zip(self.toys, action.reshape(len(self.toys), 2), strict=True)
        ]
        observation, *numbers = zip(*rows, strict=True)
        reward, cost, terminated, truncated = (
            self._row(torch.tensor(values)) for values in numbers
        )
        observation = self._row(torch.stack(observation))
        return (
            observation,
            reward.double(),
            cost.double(),
            terminated,
            truncated,
            self.info(observation),
        )

    def _row(self, batch: torch.Tensor) -> torch.Tensor:
        return batch[0] if self._num_envs == 1 else batch

    def set_seed(self, seed: int) -> None: ...

    def render(self) -> None: ...

    def close(self) -> None: ...


class ToyVector(VectorEnv):
    """The same toys as a vector environment that does not reset by itself."""

    def __init__(
        self, *toys: Toy, info: Callable[[torch.Tensor], dict[str, Any]] = lambda observation: {}
    ):
        self.toys, self.info = toys or (Toy(),), info
        self.num_envs = len(self.toys)
        self.metadata = {"autoreset_mode": AutoresetMode.DISABLED}
        self.single_observation_space, self.single_action_space = (
            ToyCMDP._observation_space,
            ACTION_SPACE,
        )
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(ACTION_SPACE, self.num_envs)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        mask = [True] * self.num_envs if not options else options["reset_mask"]
        observations = [
            toy.reset() if new else toy.state.clone()
            for toy, new in zip(self.toys, mask, strict=True)
        ]
        return torch.stack(observations), {}

    def step(self, actions: torch.Tensor) -> Any:
        rows = [toy.step(action) for toy, action in zip(self.toys, actions, strict=True)]
        observation, *numbers = zip(*rows, strict=True)
        reward, cost, terminated, truncated = map(torch.tensor, numbers)
        observation = torch.stack(observation)
        info = {"cost": cost.double(), **self.info(observation)}
        return observation, reward.double(), terminated, truncated, info


class ToyEnv(gym.Env):
    """The same toy as a plain environment of Gymnasium, with NumPy arrays."""

    observation_space, action_space = ToyCMDP._observation_space, ACTION_SPACE

    def __init__(self) -> None:
        self.toy = Toy()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return self.toy.reset().numpy(), {}

    def step(self, action: np.ndarray) -> Any:
        observation, reward, cost, terminated, truncated = self.toy.step(torch.as_tensor(action))
        nested = {"final_info": {"speed": np.array([reward, cost])}}
        return observation.numpy(), reward, terminated, truncated, {"cost": cost, **nested}


def double(shape: tuple[int, ...]) -> UpstreamNormalizer:
    """Upstream's normalizer with the precision of ours."""
    return UpstreamNormalizer(shape, clip=5).double()


THEIRS: dict[str, Callable[[CMDP], CMDP]] = {
    "TimeLimit": lambda env: upstream.TimeLimit(env, time_limit=LIMIT, device=CPU),
    "AutoReset": lambda env: upstream.AutoReset(env, device=CPU),
    "ObsNormalize": lambda env: upstream.ObsNormalize(env, device=CPU, norm=double((3,))),
    "RewardNormalize": lambda env: upstream.RewardNormalize(env, device=CPU, norm=double(())),
    "CostNormalize": lambda env: upstream.CostNormalize(env, device=CPU, norm=double(())),
    "ActionScale": lambda env: upstream.ActionScale(env, low=-1.0, high=1.0, device=CPU),
    "ActionRepeat": lambda env: upstream.ActionRepeat(env, times=3, device=CPU),
}
OURS: dict[str, Callable[[VectorEnv], VectorEnv]] = {
    "TimeLimit": lambda env: TimeLimit(env, LIMIT),
    "AutoReset": lambda env: AutoReset(env, "SameStep"),
    "ObsNormalize": ObsNormalize,
    "RewardNormalize": lambda env: RewardNormalize(env, scale="step"),
    "CostNormalize": lambda env: CostNormalize(env, scale="step"),
    "ActionScale": lambda env: ActionScale(env, -1.0, 1.0),
    "ActionRepeat": lambda env: ActionRepeat(env, 3),
}
NAMES = {"final_obs": "final_observation", "num_steps": "num_step"}
"""Keys of ``info`` that have another name upstream."""
ORDER = (
    "TimeLimit",
    "AutoReset",
    "ObsNormalize",
    "RewardNormalize",
    "CostNormalize",
    "ActionScale",
)
"""In which OmniSafe's adapters stack its wrappers."""


def stack(env: Any, layers: dict[str, Callable[[Any], Any]], names: tuple[str, ...]) -> Any:
    for name in names:
        env = layers[name](env)
    return env


def random_toy_actions(steps: int, num_envs: int = 1) -> torch.Tensor:
    """Uniform in [−1, 1]. Shape: (steps, num_envs, 2), float64."""
    return (
        torch.rand(
            (steps, num_envs, 2), generator=torch.Generator().manual_seed(3), dtype=torch.float64
        )
        * 2
        - 1
    )


def assert_alike(theirs: Any, ours: Any, steps: int = 60) -> set[str]:
    """The same stream through both, upstream's in a batch of one; returns the keys of ``info`` that were compared."""

    def close(one: Any, other: Any, what: str) -> None:
        one, other = (torch.as_tensor(value, dtype=torch.float64) for value in (one, other))
        assert one.shape == other.shape, what
        assert torch.allclose(one, other, rtol=0.0, atol=1e-6), (
            f"{what}: {one} upstream, {other} ours"
        )

    theirs = upstream.Unsqueeze(theirs, device=CPU)
    resets = "_env" in vars(theirs) and any(
        isinstance(layer, upstream.AutoReset) for layer in layers_of(theirs)
    )
    compared: set[str] = set()
    close(theirs.reset()[0], ours.reset()[0], "first observation")
    for step, action in enumerate(random_toy_actions(steps)):
        *values, info = theirs.step(action)
        observation, reward, terminated, truncated, own = ours.step(action)
        pairs = zip(values, (observation, reward, own["cost"], terminated, truncated), strict=True)
        for name, pair in zip(
            ("observation", "reward", "cost", "terminated", "truncated"), pairs, strict=True
        ):
            close(*pair, f"{name} of step {step}")
        for key in ("final_obs", "num_steps", "original_obs", "original_reward", "original_cost"):
            if NAMES.get(key, key) in info:
                value = torch.as_tensor(info[NAMES.get(key, key)])
                close(value if value.ndim else value[None], own[key], f"{key} of step {step}")
                compared.add(key)
        if (terminated | truncated).any() and not resets:
            close(theirs.reset()[0], ours.reset()[0], f"reset after step {step}")
    return compared


def layers_of(env: Any) -> list[Any]:
    layers = [env]
    while "_env" in vars(layers[-1]):
        layers.append(layers[-1]._env)
    return layers


@pytest.mark.parametrize("name", THEIRS)
def test_each_wrapper_alone_does_what_omnisafes_does(name: str) -> None:
    assert_alike(stack(ToyCMDP(), THEIRS, (name,)), stack(ToyVector(), OURS, (name,)))


@pytest.mark.parametrize("names", [ORDER[:n] for n in range(2, 7)], ids=lambda names: names[-1])
def test_the_stack_of_omnisafes_adapters_does_what_theirs_does(names: tuple[str, ...]) -> None:
    compared = assert_alike(stack(ToyCMDP(), THEIRS, names), stack(ToyVector(), OURS, names))
    assert "final_obs" in compared and ("original_cost" in compared) == ("CostNormalize" in names)


def test_repeated_actions_with_resets_are_omnisafes_in_the_order_that_works() -> None:
    theirs = stack(ToyCMDP(), THEIRS, ("TimeLimit", "AutoReset", "ActionRepeat"))
    ours = stack(ToyVector(), OURS, ("TimeLimit", "ActionRepeat", "AutoReset"))
    assert assert_alike(theirs, ours) == {"final_obs", "num_steps"}
    with pytest.raises(ValueError, match="ActionRepeat"):
        ActionRepeat(AutoReset(ToyVector(), "SameStep"), 3)


def test_a_batch_of_one_is_omnisafes() -> None:
    theirs, ours = upstream.Unsqueeze(ToyCMDP(), device=CPU), Unsqueeze(ToyEnv())
    assert np.allclose(theirs.reset()[0], ours.reset()[0])
    for action in random_toy_actions(12):
        *values, _ = theirs.step(action)
        observation, reward, terminated, truncated, info = ours.step(action.numpy())
        for value, own in zip(
            values, (observation, reward, info["cost"], terminated, truncated), strict=True
        ):
            assert value.shape == own.shape and np.allclose(value, own, rtol=0, atol=1e-6)
        if terminated.any():
            assert np.allclose(theirs.reset()[0], ours.reset()[0])


def test_what_is_saved_has_the_names_and_the_statistics_of_omnisafes() -> None:
    theirs = upstream.Unsqueeze(stack(ToyCMDP(), THEIRS, ORDER), device=CPU)
    ours = stack(ToyVector(), OURS, ORDER)
    theirs.reset()
    ours.reset()
    for action in random_toy_actions(40):
        theirs.step(action)
        ours.step(action)
    saved, own = theirs.save(), ours.env.save()  # ours.env: ActionScale is above what normalizes
    assert set(saved) == set(own) == {"obs_normalizer", "reward_normalizer", "cost_normalizer"}
    for name, normalizer in saved.items():
        assert int(normalizer._count) == own[name].count
        assert torch.allclose(normalizer.mean, own[name].mean, rtol=0, atol=1e-9)
        assert torch.allclose(normalizer.std, own[name].std, rtol=0, atol=1e-9)


# --- deviations: docs/coming-from/omnisafe.md has them in one table ---------------------------------------------------


def test_time_limit_keeps_the_environments_own_truncation() -> None:
    theirs = stack(ToyCMDP(Toy((2,), truncates=True)), THEIRS, ("TimeLimit",))
    ours = stack(ToyVector(Toy((2,), truncates=True)), OURS, ("TimeLimit",))
    theirs.reset(), ours.reset()
    action = torch.zeros(1, 2, dtype=torch.float64)
    assert [bool(theirs.step(action[0])[4]) for _ in range(LIMIT)] == [False] * (LIMIT - 1) + [True]
    assert [bool(ours.step(action)[3]) for _ in range(3)] == [False, True, True]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("TimeLimit", "only supports single environment"),
        ("AutoReset", "only supports single environment"),
        ("ActionRepeat", "doesn't match the broadcast shape"),
    ],
)
def test_batches_work_where_omnisafe_takes_one_environment(name: str, error: str) -> None:
    def toys() -> list[Toy]:
        return [Toy((2, 9)), Toy((7, 3))]

    actions = random_toy_actions(9, 2)
    with pytest.raises((AssertionError, RuntimeError), match=error):
        theirs = THEIRS[name](ToyCMDP(*toys()))
        theirs.reset()
        theirs.step(actions[0])

    names = ("ActionRepeat", "AutoReset") if name == "ActionRepeat" else ("TimeLimit", "AutoReset")
    batch = stack(ToyVector(*toys()), OURS, names)
    alone = [stack(ToyVector(toy), OURS, names) for toy in toys()]
    assert torch.equal(batch.reset()[0], torch.cat([env.reset()[0] for env in alone]))
    for action in actions:
        *values, _ = batch.step(action)
        rows = [env.step(action[i : i + 1])[:4] for i, env in enumerate(alone)]
        for value, parts in zip(values, zip(*rows, strict=True), strict=True):
            assert torch.equal(value, torch.cat(parts))


def test_auto_reset_leaves_what_the_last_step_reported_at_the_top() -> None:
    report = {"info": lambda observation: {"speed": observation[..., 0]}}
    theirs, ours = (
        upstream.AutoReset(ToyCMDP(Toy((2,)), **report), device=CPU),
        AutoReset(ToyVector(Toy((2,)), **report)),
    )
    theirs.reset(), ours.reset()
    action = torch.ones(1, 2, dtype=torch.float64)
    for _ in range(2):
        info, own = theirs.step(action[0])[-1], ours.step(action)[-1]
    assert "speed" not in info and "speed" in info["final_info"]
    assert torch.equal(own["speed"][0], info["final_info"]["speed"])
    assert torch.equal(own["cost"], own["final_info"]["cost"]) and own["_final_obs"].tolist() == [
        True
    ]


def test_the_raw_last_observation_stays_raw() -> None:
    names = ("TimeLimit", "AutoReset", "ObsNormalize")
    theirs, ours = stack(ToyCMDP(), THEIRS, names), stack(ToyVector(), OURS, names)
    theirs.reset(), ours.reset()
    for action in random_toy_actions(4):
        info, own = theirs.step(action[0])[-1], ours.step(action)[-1]
    assert torch.equal(info["original_final_observation"], info["final_observation"])
    raw = Toy()
    raw.reset()
    for action in random_toy_actions(4):
        last = raw.step(action[0])[0]
    assert torch.equal(own["original_final_obs"][0], last) and not torch.equal(
        own["final_obs"][0], last
    )


def test_last_observations_need_no_mask() -> None:
    theirs = THEIRS["ObsNormalize"](
        ToyCMDP(
            Toy((1,)),
            Toy((9,)),
            info=lambda observation: {"final_observation": observation.clone()},
        )
    )
    ours = ObsNormalize(
        ToyVector(Toy((1,)), Toy((9,)), info=lambda observation: {"final_obs": observation.clone()})
    )
    theirs.reset(), ours.reset()
    action = torch.zeros(2, 2, dtype=torch.float64)
    with pytest.raises(KeyError, match="_final_observation"):
        theirs.step(action)
    assert torch.isfinite(ours.step(action)[-1]["final_obs"]).all()


def test_a_mask_without_any_last_observation_leaves_the_statistics_alone() -> None:
    def info(observation: torch.Tensor) -> dict[str, Any]:
        none = torch.zeros(2, dtype=torch.bool)
        return {
            "final_observation": observation.clone(),
            "_final_observation": none,
            "final_obs": observation.clone(),
            "_final_obs": none,
        }

    theirs, ours = (
        THEIRS["ObsNormalize"](ToyCMDP(Toy(), Toy(), info=info)),
        ObsNormalize(ToyVector(Toy(), Toy(), info=info)),
    )
    plain = ObsNormalize(ToyVector(Toy(), Toy()))
    for env in (theirs, ours, plain):
        env.reset()
    for action in random_toy_actions(3, 2):
        broken, observation, expected = (
            theirs.step(action)[0],
            ours.step(action)[0],
            plain.step(action)[0],
        )
        assert broken.isnan().all()
        assert torch.equal(observation, expected)


def test_a_last_observation_that_is_the_observation_itself_is_not_written_to() -> None:
    """OmniSafe's template of an environment returns it so on every step."""
    given: list[torch.Tensor] = []

    def info(observation: torch.Tensor) -> dict[str, Any]:
        given.append(observation)
        return {
            "final_observation": observation,
            "final_obs": observation,
            "_final_obs": torch.zeros(1, dtype=torch.bool),
        }

    theirs, ours = THEIRS["ObsNormalize"](ToyCMDP(info=info)), ObsNormalize(ToyVector(info=info))
    plain, raw = ObsNormalize(ToyVector()), Toy()
    for env in (theirs, ours, plain, raw):
        env.reset()
    for action in random_toy_actions(3):
        spoilt, observation, expected = (
            theirs.step(action[0])[0],
            ours.step(action)[0],
            plain.step(action)[0],
        )
        untouched = raw.step(action[0])[0]
        assert not torch.equal(given[-2], untouched) and torch.equal(given[-1][0], untouched)
        assert torch.equal(observation, expected) and not torch.allclose(spoilt, expected[0])
    assert int(theirs.save()["obs_normalizer"]._count) == 7 and ours.normalizer.count == 4


def test_statistics_can_be_frozen() -> None:
    theirs, ours = (
        stack(env, layers, ("ObsNormalize",))
        for env, layers in ((ToyCMDP(), THEIRS), (ToyVector(), OURS))
    )
    theirs.reset(), ours.reset()
    ours.freeze()
    for action in random_toy_actions(3):
        theirs.step(action[0]), ours.step(action)
    assert not hasattr(theirs, "freeze") and int(theirs.save()["obs_normalizer"]._count) == 4
    assert ours.normalizer.count == 1


def test_the_statistics_of_one_sample_are_numbers() -> None:
    theirs, ours = UpstreamNormalizer((2,), clip=5), Normalizer((2,))
    sample = torch.tensor([[20.0, 3.0]])
    first = theirs.normalize(sample)
    ours.push(sample)
    assert theirs.state_dict()["_std"].isnan().all() and ours.std.tolist() == [1.0, 1.0]
    assert np.isfinite(ours.state_dict()["m2"]).all()
    assert first.tolist() == [[20.0, 3.0]] and ours.normalize(sample).tolist() == [
        [5.0, 3.0]
    ]  # theirs is not clipped


def test_statistics_do_not_stall() -> None:
    theirs, ours = UpstreamNormalizer(()), Normalizer(())
    many = 2**26
    theirs.load_state_dict(
        {
            "_mean": torch.tensor(0.0),
            "_sumsq": torch.tensor(float(many)),
            "_var": torch.tensor(1.0),
            "_std": torch.tensor(1.0),
            "_count": torch.tensor(many),
            "_clip": torch.tensor(5.0),
        }
    )
    ours.load_state_dict({"count": many, "mean": 0.0, "m2": float(many), "clip": 5.0})
    for sample in (1.5, -1.5) * 100:
        theirs.normalize(torch.tensor([sample]))
        ours.push(torch.tensor([sample]))
    assert float(theirs._sumsq) == many
    assert float(ours.m2) == pytest.approx(many + 200 * 1.5**2, rel=1e-12)


def test_rewards_and_costs_keep_their_signs_unless_asked() -> None:
    names = ("TimeLimit", "AutoReset", "RewardNormalize", "CostNormalize")
    theirs = stack(ToyCMDP(), THEIRS, names)
    ours = CostNormalize(RewardNormalize(stack(ToyVector(), OURS, names[:2])))
    theirs.reset(), ours.reset()
    turned = False
    for action in random_toy_actions(40):
        _, reward, cost, _, _, info = theirs.step(action[0])
        turned = turned or bool(
            reward * info["original_reward"] < 0 and cost < 0 <= info["original_cost"]
        )
        _, reward, _, _, own = ours.step(action)
        assert (
            torch.equal(reward.sign(), own["original_reward"].sign()) and (own["cost"] >= 0).all()
        )
    assert turned


def test_costs_may_be_several() -> None:
    theirs = UpstreamNormalizer(())
    with pytest.raises(AssertionError, match="data shape"):
        theirs.normalize(torch.rand(4, 2))
    toys = [Toy() for _ in range(4)]
    ours = CostNormalize(
        ToyVector(*toys, info=lambda observation: {"costs": observation[:, :2].abs()}), scale="step"
    )
    ours.reset()
    columns = [UpstreamNormalizer((), clip=5).double() for _ in range(2)]
    for action in random_toy_actions(3, 4):
        info = ours.step(action)[-1]
        expected = torch.stack(
            [n.normalize(info["original_costs"][:, k]) for k, n in enumerate(columns)], 1
        )
        assert torch.allclose(info["costs"], expected, rtol=0, atol=1e-9)


def test_scaled_actions_are_clipped_to_the_range() -> None:
    theirs, ours = (
        stack(env, layers, ("ActionScale",))
        for env, layers in ((ToyCMDP(), THEIRS), (ToyVector(), OURS))
    )
    theirs.reset(), ours.reset()
    action = torch.tensor([[2.0, 0.0]], dtype=torch.float64)
    assert float(theirs.step(action[0])[0][0]) == pytest.approx(
        0.8 + 7.0
    )  # [−1, 1] → [−2, 4], 2 → 7
    assert float(ours.step(action)[0][0, 0]) == pytest.approx(0.8 + 4.0)


def test_infinite_ranges_of_actions_are_refused() -> None:
    cmdp, vector = ToyCMDP(), ToyVector()
    cmdp._action_space = vector.single_action_space = Box(-np.inf, np.inf, (2,))
    theirs = THEIRS["ActionScale"](cmdp)
    theirs.reset()
    assert theirs.step(torch.zeros(2, dtype=torch.float64))[0].isnan().any()
    with pytest.raises(ValueError, match="finite"):
        ActionScale(vector, -1.0, 1.0)


def test_repeats_end_only_with_the_episode_and_sum_the_raw_reward_too() -> None:
    report = {"info": lambda observation: {"goal_met": torch.tensor(True)}}
    theirs = THEIRS["ActionRepeat"](ToyCMDP(Toy((9,)), **report))
    ours = ActionRepeat(ToyVector(Toy((9,)), **report), 3)
    theirs.reset(), ours.reset()
    action = torch.ones(1, 2, dtype=torch.float64)
    assert theirs.step(action[0])[-1]["num_step"] == 1
    assert ours.step(action)[-1]["num_steps"].tolist() == [3]

    theirs, ours = (
        stack(env, layers, ("RewardNormalize", "ActionRepeat"))
        for env, layers in ((ToyCMDP(), THEIRS), (ToyVector(), OURS))
    )
    raw = Toy()
    for env in (theirs, ours, raw):
        env.reset()
    rewards = [raw.step(action[0])[1] for _ in range(3)]
    assert float(theirs.step(action[0])[-1]["original_reward"]) == pytest.approx(rewards[-1])
    assert float(ours.step(action)[-1]["original_reward"]) == pytest.approx(sum(rewards))


def test_a_batch_of_one_has_batches_within_dicts_of_info_too() -> None:
    nested = {"info": lambda observation: {"final_info": {"speed": torch.zeros(2)}}}
    theirs, ours = upstream.Unsqueeze(ToyCMDP(**nested), device=CPU), Unsqueeze(ToyEnv())
    theirs.reset(), ours.reset()
    assert theirs.step(torch.zeros(1, 2))[-1]["final_info"]["speed"].shape == (2,)
    assert ours.step(np.zeros((1, 2), np.float32))[-1]["final_info"]["speed"].shape == (1, 2)


def test_the_table_names_tests_that_exist() -> None:
    table = (Path(__file__).parents[2] / "docs" / "coming-from" / "omnisafe.md").read_text()
    named = set(re.findall(r"`(test_\w+)`", table))
    tests = "".join(path.read_text() for path in Path(__file__).parents[1].rglob("test_*.py"))
    assert len(named) > 10 and all(f"def {name}(" in tests for name in named)
