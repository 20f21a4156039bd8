"""Recording of Minari datasets from many robots under a policy, and loading of them."""

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from importlib import import_module
from typing import Any

import gymnasium as gym
import torch
from gymnasium.vector import VectorEnv
from rich.console import Console

from legged_envs import __version__
from legged_envs.datasets.episodes import (
    INFOS,
    Episode,
    MinariDatasetHandler,
    PresentEpisodes,
    dataset_folder,
)
from legged_envs.envs import CoreVectorEnv, unwrap
from legged_envs.errors import is_mistake
from legged_envs.evaluation.record_options import RecordCfg
from legged_envs.motions import MotionFiles
from legged_envs.policy.comparison import comparable_inputs, nearly_equal
from legged_envs.policy.lookup import policy_and_task
from legged_envs.policy.metadata import Contract, contract, is_earlier_version
from legged_envs.policy.policy import Policy
from legged_envs.runs.interruption import holding_interrupts
from legged_envs.runs.progress import LINE_INTERVAL, Show, show_nothing, showing
from legged_envs.runs.run_folder import describe_session
from legged_envs.tables import shorten
from legged_envs.tasks import plain_id
from legged_envs.tasks.kind import kind_of
from legged_envs.tasks.mimic import motion_cfg

DEFAULT_EPISODE_STEPS = 1000
"""Time limit of recorded episodes if the task has no time limit, control steps."""

UNRECORDED_ENTRIES = ("task_id", "changes", "clips")
"""Entries of a contract that a dataset keeps elsewhere, or that do not change what numbers mean."""

ENV_ARGUMENTS = ("cfg", "observations")
"""Keyword arguments of the environment that a dataset holds and that its reader takes from it."""


# --- recording ------------------------------------------------------------------------------------


def main(cfg: RecordCfg) -> None:
    """Record a dataset, and print its size and folder.

    Args:
        cfg: Options of `legged-envs record`.
    """
    console = Console()
    with showing(console, LINE_INTERVAL) as show:
        spec = record(cfg, show).spec
    console.print(
        f"{cfg.name}: {spec.total_episodes} episodes, {spec.total_steps} steps, "
        f"in {spec.data_path}",
        markup=False,
        soft_wrap=True,
    )


def record(cfg: RecordCfg, show: Show = show_nothing) -> Any:
    """Record a Minari dataset of episodes under a policy.

    If the recording is interrupted, the dataset contains the episodes that were finished.

    Args:
        cfg: Options of `legged-envs record`.
        show: Reports the progress. An error that it raises aborts the recording.

    Returns:
        The dataset. Its observations are vectors if the policy takes only the group `policy`, and
        otherwise dicts of all groups. Its metadata are `task_id`, `policy`, `noise`, `seed`,
        `made_with`, `contract`, `cost_names` and `cost_limits`.

    Raises:
        FileExistsError: If there is a dataset of this name.
        ValueError: If an option makes no sense.
    """
    cfg.check()
    policy, task, changes = policy_and_task(
        cfg.task_id, cfg.policy, cfg.changes, cfg.clips, cfg.motions, reading=cfg.motion
    )
    if "foreign" in policy.contract:
        raise ValueError(
            f"--policy {str(cfg.policy)!r} comes from another framework, but a dataset needs a "
            "registered task: record a policy of this package"
        )
    if kind_of(task).imitates_motions:
        name, motion = motion_cfg(task)
        # The policy may name the clips, and the environment of the dataset needs them too.
        changes[f"commands.{name}.clips"] = motion.clips
        if isinstance(motion.motions, MotionFiles):
            changes[f"commands.{name}.motions"] = motion.motions.as_json()
    episode_limit = task.max_episode_length or DEFAULT_EPISODE_STEPS
    envs = gym.make_vec(
        cfg.task_id,
        num_envs=min(cfg.num_envs, cfg.episodes),
        cfg=task,
        array="torch",
        observations="dict",
        max_episode_steps=episode_limit,
    )
    with closing(envs):
        core = unwrap(envs)
        policy.check(core)
        has_groups = len(policy.inputs) > 1
        file = _dataset_file(cfg, core, changes, has_groups)
        if has_groups:
            names = {group: f"obs/{group}" for group in core.group_sizes}
        else:
            names = {"policy": "obs"}
        # An interruption in the middle of a write would leave a dataset that nobody can read.
        with holding_interrupts() as raise_if_interrupted:
            episodes = _episodes(envs, policy, cfg, names, episode_limit, raise_if_interrupted)
            for done, episode in enumerate(episodes, start=1):
                # Written at once: an interruption loses no finished episode.
                file.write([(episode, None)])
                raise_if_interrupted()
                show("recording", done / cfg.episodes, f"{done} episodes")
    return file.dataset


def _dataset_file(
    cfg: RecordCfg, core: CoreVectorEnv, changes: dict[str, Any], has_groups: bool
) -> MinariDatasetHandler:
    metadata = {
        "task_id": cfg.task_id,
        "policy": str(cfg.policy or "shipped"),
        "noise": cfg.noise,
        "seed": cfg.seed,
        "made_with": describe_session(),
        "contract": _dataset_contract(cfg.task_id, core),
    }
    # Minari makes the environment of a dataset again from this specification.
    spec = copy.deepcopy(gym.spec(plain_id(cfg.task_id)))
    spec.kwargs = {
        "task_id": cfg.task_id,
        "cfg": changes,
        "observations": "dict" if has_groups else "policy",
    }
    about: dict[str, Any] = {"env": spec, "requirements": [f"legged-envs>={__version__}"]}
    if has_groups:
        about["observation_space"] = core.single_observation_space
    return MinariDatasetHandler("", cfg.name, core, metadata, **about)


def _dataset_contract(task_id: str, core: CoreVectorEnv) -> Contract:
    """Return the meaning of each number of observations and actions, as JSON values."""
    entries = contract(task_id, core)
    return {name: value for name, value in entries.items() if name not in UNRECORDED_ENTRIES}


def _episodes(
    envs: VectorEnv,
    policy: Policy,
    cfg: RecordCfg,
    names: Mapping[str, str],
    episode_limit: int,
    raise_if_interrupted: Callable[[], None],
) -> Iterator[Episode]:
    """Yield episodes as soon as they are over.

    Every environment gives the same number of them, or one more than others. If the first episodes
    to end were taken, short ones would be preferred.

    Args:
        envs: Environments to record.
        policy: Policy that acts.
        cfg: Options of the command.
        names: Observation group → its name in an episode.
        episode_limit: Time limit of the episodes, control steps.
        raise_if_interrupted: Raises a KeyboardInterrupt if the recording is interrupted.
    """
    present = PresentEpisodes(envs.num_envs, episode_limit)
    wanted = torch.full((envs.num_envs,), cfg.episodes // envs.num_envs)
    # The first environments give what is left over.
    wanted[: cfg.episodes % envs.num_envs] += 1
    space: Any = envs.single_action_space
    low = torch.from_numpy(space.low)
    high = torch.from_numpy(space.high)
    generator = torch.Generator().manual_seed(cfg.seed)
    observation, _ = envs.reset(seed=cfg.seed)
    policy.reset()
    while wanted.any():
        raise_if_interrupted()
        action = policy(*(observation[group] for group in policy.inputs))
        noise = cfg.noise * torch.randn(action.shape, generator=generator)
        action = (action + noise).clamp(low, high)
        after, reward, terminated, truncated, info = envs.step(action)
        present.add("actions", action)
        present.add("rewards", reward)
        present.add("terminated", terminated)
        present.add("truncated", truncated)
        for name in INFOS:
            present.add(name, info[name])
        for group, name in names.items():
            present.add(name, observation[group])
        present.end_step()
        ended = (terminated | truncated).nonzero().squeeze(1)
        if len(ended):
            for group, name in names.items():
                present.add(f"final_{name}", info["final_obs"][group][ended], ended)
            # Environments that have given their share continue without being recorded.
            for env_id in ended[wanted[ended] > 0].tolist():
                yield present.take(env_id)
            wanted[ended] = (wanted[ended] - 1).clamp(min=0)
            present.begin(ended)
            policy.reset(terminated | truncated)
        observation = after


# --- reading --------------------------------------------------------------------------------------


def load_dataset(name: str, task_id: str) -> Any:
    """Read a Minari dataset of a task.

    Args:
        name: Name of the dataset.
        task_id: Registered id of the task.

    Raises:
        FileNotFoundError: If there is no dataset of this name.
        ValueError: If Minari cannot read it; or if it is of another task, or of a version of the
            task with other observations, actions or costs.
    """
    folder = dataset_folder(name)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"there is no dataset {name!r} at {str(folder)!r}: legged-envs record makes one"
        )
    # Damaged files may hold anything, and raise errors of any kind.
    try:
        return _load(name, task_id)
    except Exception as error:
        if is_mistake(error) and not isinstance(error, OSError):
            raise
        reason = shorten(f"{type(error).__name__}: {error}", 300)
        raise ValueError(
            f"the dataset {name!r} was not written by legged-envs record: {reason}"
        ) from error


def _load(name: str, task_id: str) -> Any:
    # Minari refuses datasets of other versions of its format.
    dataset = import_module("minari").load_dataset(name)
    # The last episode cannot be read if the file is not whole.
    dataset[-1]
    metadata = {
        "cost_names": [],
        "task_id": "another package's task",
        **dataset.storage.metadata,
    }
    # An id may have the module of another package before a colon.
    recorded_id = metadata["task_id"]
    registered = plain_id(task_id)
    if recorded_id.rpartition(":")[2] != registered:
        raise ValueError(f"the dataset {name!r} is of {recorded_id}, not of {task_id!r}")
    recorded = {
        "observations": dataset.observation_space,
        "actions": dataset.action_space,
        **metadata,
    }
    # Datasets of earlier versions have no contract.
    recorded.update(metadata.get("contract", {}))
    with closing(_make_recorded_env(dataset, registered)) as env:
        core = env.unwrapped
        present = {
            "observations": env.observation_space,
            "actions": env.action_space,
            "cost_names": list(core.cost_names),
            "cost_limits": list(core.cost_limits),
            **_dataset_contract(recorded_id, core.core),
        }
    differing = _differing_entry(recorded, present)
    if differing is not None:
        raise ValueError(
            f"the dataset {name!r} is of another version of {task_id!r}, "
            f"with {differing} {shorten(str(recorded[differing]), 200)}, "
            f"now {shorten(str(present[differing]), 200)}; record it again"
        )
    return dataset


def _make_recorded_env(dataset: Any, task_id: str) -> Any:
    """Make the environment of a dataset, of a registered task with the changes in the dataset."""
    # Minari's own recover_environment calls any function that the dataset names.
    kwargs = dataset.env_spec.kwargs
    return gym.make(task_id, **{name: kwargs[name] for name in ENV_ARGUMENTS if name in kwargs})


def _differing_entry(recorded: Mapping[str, Any], present: Mapping[str, Any]) -> str | None:
    """Return the first entry that differs from a dataset's entry, None if all agree."""
    earlier = is_earlier_version(dict(recorded))
    # `inputs` holds everything that `observation` does.
    skipped = ["observation"]
    if earlier:
        # The wording of the formula changed between versions.
        skipped.append("action")
    for name, value in present.items():
        if name not in recorded or name in skipped:
            continue
        other = recorded[name]
        if name == "inputs":
            agrees = nearly_equal(
                comparable_inputs(value, earlier), comparable_inputs(other, earlier)
            )
        else:
            agrees = nearly_equal(value, other)
        if not agrees:
            return name
    return None
