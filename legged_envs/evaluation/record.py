"""Minari datasets of what a policy does: recorded from many robots at once, costs included, and read back."""

import copy
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from typing import Any

import gymnasium as gym
import torch
from rich.console import Console

from legged_envs import __version__
from legged_envs.datasets.episodes import (
    INFOS,
    Episode,
    MinariDatasetHandler,
    PresentEpisodes,
    dataset_folder,
)
from legged_envs.envs import LeggedVectorEnv, unwrap
from legged_envs.errors import is_mistake
from legged_envs.evaluation.record_options import RecordCfg
from legged_envs.policy.comparison import comparable_inputs, nearly_equal
from legged_envs.policy.metadata import contract
from legged_envs.policy.policy import Policy, policy_and_task
from legged_envs.runs.progress import LINE_INTERVAL, Show, show_nothing, showing
from legged_envs.runs.run_folder import describe_session
from legged_envs.tables import shorten
from legged_envs.tasks import plain_id
from legged_envs.tasks.kind import kind_of
from legged_envs.tasks.mimic import motion_cfg

LONGEST = 1000
"""Time limit of the episodes of a task that has none, control steps."""


def main(cfg: RecordCfg) -> None:
    """Record, and say what and where."""
    with showing(console := Console(), LINE_INTERVAL) as show:
        spec = record(cfg, show).spec
    text = (
        f"{cfg.name}: {spec.total_episodes} episodes, {spec.total_steps} steps, in {spec.data_path}"
    )
    console.print(text, markup=False, soft_wrap=True)


def record(cfg: RecordCfg, show: Show = show_nothing) -> Any:
    """Record a Minari dataset, and give it back: vectors if the policy takes the group ``policy`` alone, else dicts of
    all groups. Its metadata have ``task_id``, ``policy``, ``noise``, ``seed``, ``made_with``, ``contract``,
    ``cost_names`` and ``cost_limits``. An interruption leaves the episodes that were over."""
    cfg.check()
    policy, task, changes = policy_and_task(cfg.task_id, cfg.policy, cfg.changes)
    if kind_of(task).imitates_motions:
        name, motion = motion_cfg(task)
        changes[f"commands.{name}.clips"] = motion.clips
    own = {
        "task_id": cfg.task_id,
        "policy": str(cfg.policy or "shipped"),
        "noise": cfg.noise,
        "seed": cfg.seed,
    }
    spec, grouped = copy.deepcopy(gym.spec(plain_id(cfg.task_id))), len(policy.inputs) > 1
    spec.kwargs = {
        "task_id": cfg.task_id,
        "cfg": changes,
        "observations": "dict" if grouped else "policy",
    }
    limit, num_envs = task.max_episode_length or LONGEST, min(cfg.num_envs, cfg.episodes)
    options: dict[str, Any] = {"array": "torch", "observations": "dict", "max_episode_steps": limit}
    with closing(gym.make_vec(cfg.task_id, num_envs=num_envs, cfg=task, **options)) as envs:
        core = unwrap(envs)
        policy.check(core)
        about: dict[str, Any] = (
            {"observation_space": core.single_observation_space} if grouped else {}
        )
        about |= {"env": spec, "requirements": [f"legged-envs>={__version__}"]}
        own |= {"made_with": describe_session(), "contract": _meaning(cfg.task_id, core)}
        file = MinariDatasetHandler("", cfg.name, core, own, **about)
        names = (
            {group: f"obs/{group}" for group in core.group_sizes} if grouped else {"policy": "obs"}
        )
        for done, episode in enumerate(_episodes(envs, policy, cfg, names), start=1):
            file.write([(episode, None)])
            show("recording", done / cfg.episodes, f"{done} episodes")
    return file.dataset


def _episodes(
    envs: Any, policy: Policy, cfg: RecordCfg, names: dict[str, str]
) -> Iterator[Episode]:
    """Episodes as soon as they are over, of each environment as many as of any other, or one more."""
    limit, generator = (
        envs.unwrapped.max_episode_length or LONGEST,
        torch.Generator().manual_seed(cfg.seed),
    )
    present, wanted = (
        PresentEpisodes(envs.num_envs, limit),
        torch.full((envs.num_envs,), cfg.episodes // envs.num_envs),
    )
    wanted[: cfg.episodes % envs.num_envs] += 1
    low, high = (
        torch.from_numpy(bound)
        for bound in (envs.single_action_space.low, envs.single_action_space.high)
    )
    observation, _ = envs.reset(seed=cfg.seed)
    while wanted.any():
        action = policy(*(observation[group] for group in policy.inputs))
        action = (action + cfg.noise * torch.randn(action.shape, generator=generator)).clamp(
            low, high
        )
        after, reward, terminated, truncated, info = envs.step(action)
        step = {
            "actions": action,
            "rewards": reward,
            "terminated": terminated,
            "truncated": truncated,
        }
        step |= {name: info[name] for name in INFOS} | {
            name: observation[group] for group, name in names.items()
        }
        for name, value in step.items():
            present.add(name, value)
        present.end_step()
        if len(ended := (terminated | truncated).nonzero().squeeze(1)):
            for group, name in names.items():
                present.add(f"final_{name}", info["final_obs"][group][ended], ended)
            yield from map(present.take, ended[wanted[ended] > 0].tolist())
            wanted[ended] = (wanted[ended] - 1).clamp(min=0)
            present.begin(ended)
        observation = after


def load_dataset(name: str, task_id: str) -> Any:
    """A Minari dataset of a task. FileNotFoundError if there is none of this name; ValueError if Minari cannot read it,
    or if it is of another task, or of a version of the task with other observations, actions or costs: other spaces,
    another meaning of their numbers, other costs or limits."""
    if not (folder := dataset_folder(name)).is_dir():
        raise FileNotFoundError(
            f"there is no dataset {name!r} at {str(folder)!r}: legged-envs record makes one"
        )
    try:
        return _load(name, task_id)
    except Exception as error:  # of any kind, as damaged files may hold anything
        if is_mistake(error) and not isinstance(error, OSError):
            raise
        reason = shorten(f"{type(error).__name__}: {error}", 300)
        raise ValueError(
            f"the dataset {name!r} is not what legged-envs record writes: {reason}"
        ) from error


def _load(name: str, task_id: str) -> Any:
    dataset = import_module("minari").load_dataset(
        name
    )  # which refuses other versions of its own format
    dataset[-1]  # an error if its file is not whole
    about = {"cost_names": [], "task_id": "another package's task", **dataset.storage.metadata}
    if about["task_id"].rpartition(":")[2] != plain_id(task_id):
        raise ValueError(f"the dataset {name!r} is of {about['task_id']}, not of {task_id!r}")
    with closing(dataset.recover_environment()) as env:
        core = env.unwrapped
        ours = {
            "observations": env.observation_space,
            "actions": env.action_space,
            "cost_names": [*core.cost_names],
        }
        ours |= {"cost_limits": [*core.cost_limits], **_meaning(about["task_id"], core.core)}
    theirs = {"observations": dataset.observation_space, "actions": dataset.action_space, **about}
    theirs |= about.get("contract", {})  # which datasets of older versions have not
    older = "action_size" not in theirs
    for each in (ours, theirs):
        each |= {"inputs": comparable_inputs(each["inputs"], older)} if "inputs" in each else {}
    for part in (ours.keys() & theirs.keys()) - {"observation", *(["action"] if older else [])}:
        if not nearly_equal(ours[part], theirs[part]):
            differing = (
                f"{part} {shorten(str(theirs[part]), 200)}, now {shorten(str(ours[part]), 200)}"
            )
            wrong = f"the dataset {name!r} is of another version of {task_id!r}"
            raise ValueError(f"{wrong}, with {differing}; record it anew")
    return dataset


def _meaning(task_id: str, core: LeggedVectorEnv) -> dict[str, Any]:
    """What the numbers of observations and actions mean, as JSON has it."""
    apart = ("task_id", "changes", "clips")
    return {name: value for name, value in contract(task_id, core).items() if name not in apart}
