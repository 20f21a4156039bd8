"""Implements `legged-envs eval`."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from legged_envs.checks import whole_number
from legged_envs.cli.foreign import is_foreign
from legged_envs.cli.tiles import choose_tiles, terrain_of_task
from legged_envs.policy.header import (
    EVALUATION_KEY,
    HARSH_KEY,
    record_evaluation,
    without_nan,
)
from legged_envs.runs.motion_options import MotionFileOptions
from legged_envs.runs.options import LARGEST_SEED, TaskId, Value, check_size
from legged_envs.runs.run_folder import CHECKPOINT, write_json
from legged_envs.system_checks import check_output
from legged_envs.tasks import plain_id

if TYPE_CHECKING:
    import torch

    from legged_envs.envs.cfg import TaskCfg
    from legged_envs.policy.policy import Policy


@dataclass
class EvaluateCfg(MotionFileOptions):
    """Options of `legged-envs eval`."""

    task_id: TaskId
    """Registered id, or module:Id of another package's task."""
    policy: Path | None = None
    """A policy.safetensors, or a run folder with one. Default: the pretrained policy.
    Also a policy of another framework: .onnx, or .pt."""
    episodes: int = 256
    """Number of episodes, for a mimic task of each clip."""
    clips: tuple[str, ...] = ()
    """Motions to imitate, for mimic tasks. Default: the motions that the policy was trained on."""
    seed: int | None = None
    """Seed of the episodes. Default: the seed of a training's own evaluation. Trainings use small
    seeds."""
    changes: dict[str, Value] = field(default_factory=dict)
    """Changes to the task in addition to the policy's own, e.g. --changes
    costs.joint_torque.params.soft_limit 0.3"""
    json: Path | None = None
    """A new file to write the numbers to. The eval.json of a run belongs to its training."""
    terrain: str | None = None
    """Kind of tiles to walk on, for tasks on rough ground. Default: all."""
    level: int | None = None
    """Level of the tiles. The first is 0. Default: all."""
    picture: Path | None = None
    """Draw the share of episodes that cross each kind and level of tile into this .png, for tasks
    on rough ground."""
    harsh: bool = False
    """Evaluate under harsh conditions: slippery ground, a payload, delayed actions, more noise, and
    commands that are reversed at speed. For tasks that follow velocity commands."""
    scheme: bool = False
    """Also measure what the training scheme of a run learnt: the error of its velocity estimate
    (ee, dreamwaq, him), or its teacher next to its student (ts, cts). For run folders with a
    checkpoint."""
    record: bool = False
    """Write the numbers into the policy's file, where `legged-envs list` finds them. Only for the
    policy's own task."""
    sim: str = "mujoco"
    """Physics engine: mujoco, mujoco_warp, genesis or one of another package."""
    device: str = "cpu"
    """Device of the engine, such as cuda:0. The policy runs on the CPU."""
    contract: Path | None = None
    """File that describes a policy of another framework: deploy.yaml of unitree_rl_lab, a yaml of
    unitree_rl_gym, config.yaml of rl_sar. The .onnx of mjlab describes itself."""


def evaluate(cfg: EvaluateCfg) -> None:
    """Measure how well a policy walks or imitates motions.

    The evaluation uses other episodes than the training."""
    # Before PyTorch is imported and the policy is read.
    check_options(cfg)
    changes = dict(cfg.changes)
    changes.update(choose_tiles(cfg.task_id, cfg.terrain, cfg.level))
    from legged_envs.evaluation.evaluator import EVALUATION_SEED
    from legged_envs.policy.foreign.summary import print_foreign
    from legged_envs.policy.lookup import policy_and_task
    from legged_envs.policy.policy import policy_file, shipped_file

    policy, task, all_changes = policy_and_task(
        cfg.task_id, cfg.policy, changes, cfg.clips, cfg.motions, cfg.contract, cfg.motion
    )
    print_foreign(policy)
    file = shipped_file(cfg.task_id) if cfg.policy is None else policy_file(cfg.policy)
    # Before the episodes, which take long.
    if cfg.record:
        check_output("--record", file)
    if cfg.scheme:
        from legged_envs.training.scheme_evaluation import read_scheme

        assert cfg.policy is not None, "check_options() has checked it"
        read_scheme(cfg.task_id, task, cfg.policy)
    # No training has this seed, so these episodes are new to the policy.
    seed = EVALUATION_SEED if cfg.seed is None else cfg.seed
    numbers = run_evaluation(cfg, policy, task, seed)
    if cfg.record:
        key = HARSH_KEY if cfg.harsh else EVALUATION_KEY
        record_evaluation(file, {"seed": seed, **numbers}, key)
    if cfg.scheme:
        numbers["scheme"] = measure_scheme(cfg, task, seed, numbers)
    if cfg.json is not None:
        conditions = {
            "task_id": cfg.task_id,
            "policy": str(cfg.policy or "shipped"),
            "evaluation_seed": seed,
            "changes": all_changes,
            "sim": cfg.sim,
        }
        write_json(cfg.json, without_nan({**conditions, **numbers}))


def run_evaluation(
    cfg: EvaluateCfg, policy: "Policy", task: "TaskCfg", seed: int
) -> dict[str, Any]:
    """Evaluate a policy, print the results and draw the picture.

    Args:
        cfg: Options of the command.
        policy: The policy.
        task: Its task, with all changes.
        seed: Seed of the episodes.

    Returns:
        The results, as JSON values.
    """
    from rich.console import Console

    from legged_envs.evaluation.evaluator import Evaluator
    from legged_envs.runs.progress import LINE_INTERVAL, showing

    groups = tuple(policy.inputs)
    evaluator = Evaluator(cfg.task_id, task, cfg.episodes, cfg.sim, groups, cfg.device, cfg.harsh)
    core = evaluator.core
    # A policy with other observations fails here, and not in the middle of the episodes.
    policy.check(core)

    def act(*observations: "torch.Tensor") -> "torch.Tensor":
        # The engine may be on a GPU. The policy is on the CPU.
        on_cpu = [group.cpu() for group in observations]
        return policy(*on_cpu).to(core.device)

    console = Console()
    with showing(console, LINE_INTERVAL) as show:
        result = evaluator.run(act, seed=seed, show=show, reset=policy.reset)
    result.print(console)
    if cfg.picture is not None:
        from legged_envs.evaluation.plots import plot_crossings

        plot_crossings(result.crossings, cfg.picture)
    return result.as_dict()


def measure_scheme(
    cfg: EvaluateCfg, task: "TaskCfg", seed: int, student: dict[str, Any]
) -> dict[str, Any]:
    """Evaluate what the scheme of a run learnt, and print the results.

    Args:
        cfg: Options of the command.
        task: Task of the policy, with all changes.
        seed: Seed of the episodes.
        student: Results of the policy.

    Returns:
        The results, as JSON values.
    """
    from rich.console import Console

    from legged_envs.runs.progress import LINE_INTERVAL, showing
    from legged_envs.training.scheme_evaluation import evaluate_scheme

    assert cfg.policy is not None
    console = Console()
    with showing(console, LINE_INTERVAL) as show:
        result = evaluate_scheme(
            cfg.task_id,
            task,
            cfg.policy,
            cfg.episodes,
            seed,
            sim=cfg.sim,
            device=cfg.device,
            harsh=cfg.harsh,
            show=show,
        )
    result.print(student, console)
    return asdict(result)


def check_options(cfg: EvaluateCfg) -> None:
    """Check the options as far as possible without the policy.

    Raises:
        FileNotFoundError: If a file of motions is missing.
        ValueError: If an option has an invalid value, or does not suit the task.
    """
    plain_id(cfg.task_id)
    cfg.check_motion_files()
    check_size("--episodes", cfg.episodes)
    if cfg.seed is not None:
        whole_number("--seed", cfg.seed, least=0, most=LARGEST_SEED)
    check_output("--json", cfg.json)
    # Reports read the eval.json of a run, which must keep the training's results.
    if cfg.json is not None and cfg.json.exists():
        raise ValueError(
            f"--json must name a new file, {str(cfg.json)!r} exists: "
            "an evaluation overwrites nothing"
        )
    # `legged-envs list` shows these numbers next to the task, so they must be of that task.
    changes_task = bool(cfg.changes or cfg.clips or cfg.motions)
    chooses_tiles = cfg.terrain is not None or cfg.level is not None
    if cfg.record and (changes_task or chooses_tiles or cfg.sim != "mujoco"):
        raise ValueError(
            "--record is of the policy's own task: "
            "it takes no --changes, --clips, --motions, tiles or --sim"
        )
    if cfg.record and is_foreign(cfg.policy, cfg.contract):
        raise ValueError(
            "--record writes into a policy file of this package: "
            "write the numbers of another framework's policy to a file with --json"
        )
    if cfg.scheme and (cfg.policy is None or not (cfg.policy / CHECKPOINT).is_file()):
        raise ValueError(
            f"--scheme reads {CHECKPOINT} of a run: give its folder as --policy, "
            f"got {str(cfg.policy)!r}"
        )
    check_output("--picture", cfg.picture, endings=(".png",))
    if cfg.picture is not None:
        terrain_of_task(cfg.task_id, "--picture")
        from legged_envs.tasks import make_task_cfg
        from legged_envs.tasks.kind import kind_of

        if not kind_of(make_task_cfg(cfg.task_id)).follows_velocity:
            raise ValueError("--picture shows crossed tiles of tasks with velocity commands")
