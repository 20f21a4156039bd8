"""Evaluation of what a training scheme learnt besides the policy: its estimate, or its teacher.

The networks come from the run's checkpoint, because a policy file has only the student.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Column, Table

from legged_envs.envs.cfg import TaskCfg
from legged_envs.evaluation.evaluator import EVALUATION_SEED, Evaluator
from legged_envs.evaluation.metrics.costs import until_the_end
from legged_envs.runs.progress import Show, show_nothing
from legged_envs.tasks import make_training_defaults
from legged_envs.tasks.kind import kind_of
from legged_envs.training.checkpoint import read_checkpoint
from legged_envs.training.prepare import with_defaults
from legged_envs.training.scheme_options import SCHEME_CONFIGS, SchemeCfg
from legged_envs.training.schemes.networks import HistoryActor
from legged_envs.training.schemes.registry import SCHEMES
from legged_envs.training.schemes.scheme import LABELS
from legged_envs.training.schemes.ts import TeacherActor

VELOCITY = 3
"""Number of the first entries of an estimate, and of its labels, that are the base's velocity."""

COMPARED = {
    "crossed": ("tiles crossed", "{:.1%}"),
    "falls": ("falls", "{:.1%}"),
    "lin_vel_error": ("velocity error, m/s", "{:.3f}"),
    "ang_vel_error": ("turning error, rad/s", "{:.3f}"),
}
"""Numbers of an evaluation in which teacher and student are compared: description and format."""


@dataclass
class SchemeEvaluation:
    """Measurements of a scheme on unseen episodes."""

    scheme: str
    """Name of the scheme."""
    velocity_rms: float | None = None
    """Root mean square error ‖v̂ − v‖ of the estimated velocity of the base, until the robot falls,
    m/s. None: the scheme has no estimate."""
    teacher: dict[str, Any] | None = None
    """Evaluation of the teacher, as of the policy. None: the scheme has no teacher."""

    def print(self, student: Mapping[str, Any], console: Console) -> None:
        """Print the error of the estimate, or a table of student and teacher.

        Args:
            student: Evaluation of the policy.
            console: Console to print to.
        """
        if self.velocity_rms is not None:
            console.print(f"velocity estimate of {self.scheme}: {self.velocity_rms:.3f} m/s RMS")
        if self.teacher is None:
            return
        columns = [Column(name, justify="right") for name in ("student", "teacher")]
        table = Table("", *columns, title=f"student and teacher of {self.scheme}")
        for name, (description, form) in COMPARED.items():
            if name in student:
                values = (student[name], self.teacher[name])
                table.add_row(description, *map(form.format, values))
        console.print(table)


def evaluate_scheme(
    task_id: str,
    task: TaskCfg,
    run: Path,
    episodes: int,
    seed: int = EVALUATION_SEED,
    sim: str = "mujoco",
    device: str = "cpu",
    harsh: bool = False,
    show: Show = show_nothing,
) -> SchemeEvaluation:
    """Measure what the scheme of a run learnt besides the policy.

    Args:
        task_id: Registered id of the task.
        task: Configuration of the task that the policy is evaluated on.
        run: Run folder with a checkpoint.
        episodes: Number of episodes.
        seed: Random seed of the episodes.
        sim: Name of the physics engine.
        device: Torch device of the environments.
        harsh: True: harsh conditions.
        show: Reports the progress.

    Raises:
        FileNotFoundError: If the run has no checkpoint.
        ValueError: If the checkpoint is of another task, or of no scheme with an estimate or a
            teacher.
    """
    checkpoint, algo = read_scheme(task_id, task, run)
    scheme_class = SCHEMES[type(algo)]
    task = copy.deepcopy(task)
    scheme_class.add_observations(task, algo)
    has_teacher = issubclass(getattr(scheme_class, "actor_class", HistoryActor), TeacherActor)
    groups = ("policy", "critic" if has_teacher else LABELS)
    evaluator = Evaluator(task_id, task, episodes, sim, groups, device, harsh)
    sizes = evaluator.core.group_sizes
    example: Any = {name: torch.zeros(1, size, device=device) for name, size in sizes.items()}
    std = torch.ones(evaluator.core.actions.size)
    actor = scheme_class(algo, example, std, None).actor
    actor.load_state_dict(checkpoint["algorithm"]["actor"])
    actor.eval()
    (name,) = (name for name, kind in SCHEME_CONFIGS.items() if kind is type(algo))
    result = SchemeEvaluation(name)
    if isinstance(actor, TeacherActor):
        result.teacher = evaluator.run(Teacher(actor), seed=seed, show=show).as_dict()
    else:
        result.velocity_rms = estimate_error(evaluator, actor, seed, show)
    evaluator.close()
    return result


def read_scheme(task_id: str, task: TaskCfg, run: Path) -> tuple[dict[str, Any], SchemeCfg]:
    """Return the checkpoint of a run, and the completed options of its scheme.

    Args:
        task_id: Registered id of the task.
        task: Task of the policy, with all changes.
        run: Run folder.

    Raises:
        FileNotFoundError: If the run has no checkpoint.
        ValueError: If the checkpoint is of another task, or of a training without a scheme or with
            one that estimates nothing.
    """
    checkpoint = read_checkpoint(run, task_id)
    defaults = make_training_defaults(task_id)
    _, algo = with_defaults(checkpoint["cfg"], kind_of(task), defaults)
    if not isinstance(algo, SchemeCfg):
        raise ValueError(
            f"the run {str(run)!r} was trained with {type(algo).__name__}, which has no estimate "
            f"and no teacher: leave out --scheme, which is for {', '.join(SCHEME_CONFIGS)}"
        )
    return checkpoint, algo


class Teacher:
    """The policy that acts on the teacher's code.

    Args:
        actor: Actor with the networks of teacher and policy.
    """

    def __init__(self, actor: TeacherActor):
        self._actor = actor

    def __call__(self, history: torch.Tensor, privileged: torch.Tensor) -> torch.Tensor:
        """Return the actions. Shapes: (n, history_size), (n, privileged_size) → (n, actions)."""
        past = self._actor.network.normalized(history)
        seen = self._actor.privileged_normalizer(privileged)
        return self._actor.network.act(past, self._actor.teacher_code(seen))


class Estimator:
    """The policy that acts on its own estimate, and keeps the errors of the estimated velocity.

    Args:
        actor: Actor with the networks of estimator and policy.
    """

    def __init__(self, actor: HistoryActor):
        self._network = actor.network

        self.squares: list[torch.Tensor] = []
        """Squared error of the velocity in each step, m²/s². Shapes: (n,)."""

    def __call__(self, history: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the actions. Shapes: (n, history_size), (n, labels) → (n, actions)."""
        past = self._network.normalized(history)
        encoded = self._network.encoder(past)
        error = encoded[:, :VELOCITY] - labels[:, :VELOCITY]
        self.squares.append(error.square().sum(1))
        return self._network.act(past, self._network.code_of(encoded))


def estimate_error(evaluator: Evaluator, actor: HistoryActor, seed: int, show: Show) -> float:
    """Return the root mean square error of the estimated velocity, m/s.

    All steps count until the robot falls.
    """
    policy = Estimator(actor)
    rollout = evaluator.rollout(policy, seed, show=show)
    squares = torch.stack(policy.squares)
    # The observation of a step is that before it, so the step that ends an episode counts too.
    return squares[until_the_end(rollout.alive)].mean().sqrt().item()
