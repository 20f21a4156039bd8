"""Find the policy of a task: a pretrained policy, the policy of a run, or a policy of another
framework."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.envs.changes import Changes
from legged_envs.motion_reading import MotionReading
from legged_envs.policy.foreign import FOREIGN_ENDINGS
from legged_envs.policy.foreign.reading import foreign_policy_and_task
from legged_envs.policy.policy import Policy, load_policy, load_shipped_policy
from legged_envs.tasks import make_task_cfg, plain_id
from legged_envs.tasks.kind import kind_of
from legged_envs.tasks.mimic import with_clips


def policy_and_task(
    task_id: str,
    path: Path | None = None,
    changes: Changes | None = None,
    clips: Sequence[str] = (),
    motions: Sequence[Path] = (),
    description: Path | None = None,
    reading: MotionReading | None = None,
) -> tuple[Policy, TaskCfg, dict[str, Any]]:
    """Read a policy, and make the task configuration that it was trained with.

    Args:
        task_id: Registered id of the task.
        path: Policy file or run folder; None for the pretrained policy of the package.
        changes: Changes to the task, in addition to the changes of the policy's training.
        clips: Names of the clips that a mimic task imitates; empty for the policy's clips.
        motions: Motion files to take clips from; empty for the motions of the task.
        description: File that describes a policy of another framework. None: `path` is a policy of
            this package, or its file also holds the description.
        reading: Information that the files of `motions` lack, such as their frame rate. None: these
            files are complete.

    Returns:
        The policy, the configuration of the task, and all changes that were made to it.

    Raises:
        FileNotFoundError: If there is no such policy file.
        ValueError: If the file is not a policy of such a task, or there is no such clip.
    """
    cfg = make_task_cfg(task_id)
    task_id = plain_id(task_id)
    has_foreign_ending = path is not None and path.suffix in FOREIGN_ENDINGS
    if has_foreign_ending or description is not None:
        if clips:
            raise ValueError(
                "--clips names clips of this package, and a policy of another framework imitates "
                "its own motions: remove --clips"
            )
        return foreign_policy_and_task(task_id, path, description, changes, motions, reading)
    if (clips or motions) and not kind_of(cfg).imitates_motions:
        raise ValueError(
            f"{task_id!r} follows velocity commands: it has no --clips and no --motions"
        )
    policy = load_shipped_policy(task_id) if path is None else load_policy(path)
    policy.check_task(task_id, cfg)
    # The caller's changes win over the training's changes.
    changed = {**policy.changes, **(changes or {})}
    cfg = override(cfg, changed)
    if kind_of(cfg).imitates_motions:
        cfg = with_clips(cfg, clips or policy.clips, motions, reading)
    return policy, cfg, changed
