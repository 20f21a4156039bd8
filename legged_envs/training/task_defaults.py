"""Options of a training that are None, completed with the task's training defaults."""

from dataclasses import replace

from legged_envs.envs.cfg import TaskCfg
from legged_envs.tasks.kind import kind_of
from legged_envs.tasks.training_defaults import TrainingDefaults
from legged_envs.training.checkpoint import read_checkpoint
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.ppo_options import Symmetry


def complete_ppo(algo: PPOCfg, defaults: TrainingDefaults, cfg: TrainCfg) -> PPOCfg:
    """Return options of PPO in which no field is None.

    Args:
        algo: The options as given.
        defaults: Default training options of the task.
        cfg: Options of the training.

    Raises:
        FileNotFoundError: If ``cfg.warm_start`` does not exist.
    """
    gamma = algo.gamma
    final_gamma = algo.final_gamma
    if final_gamma is None:
        # A given discount is constant over the run. Only the task's default rises.
        final_gamma = defaults.final_gamma if gamma is None else gamma
    if gamma is None:
        gamma = defaults.gamma
    return replace(
        algo,
        gamma=gamma,
        final_gamma=final_gamma,
        hidden=defaults.hidden if algo.hidden is None else algo.hidden,
        init_std=defaults.init_std if algo.init_std is None else algo.init_std,
        entropy=defaults.entropy if algo.entropy is None else algo.entropy,
        symmetry=_usual_symmetry(algo, defaults, cfg) if algo.symmetry is None else algo.symmetry,
    )


def _usual_symmetry(algo: PPOCfg, defaults: TrainingDefaults, cfg: TrainCfg) -> Symmetry:
    """Return how a training treats left and right equally if its options do not say it."""
    if cfg.learner == "rsl_rl":
        return "off"
    if type(algo) is not PPOCfg:
        return "batches"
    widths = defaults.hidden if algo.hidden is None else algo.hidden
    if any(width % 2 for width in widths):
        return "batches"
    symmetric = defaults.symmetric_networks
    if cfg.warm_start is not None:
        earlier = getattr(read_checkpoint(cfg.warm_start).get("cfg"), "algo", None)
        symmetric = isinstance(earlier, PPOCfg) and earlier.symmetry == "networks"
    return "networks" if symmetric else "batches"


def coarse_fraction(cfg: TrainCfg, task: TaskCfg, defaults: TrainingDefaults) -> float:
    """Return the share of a training during which physics makes half as many steps.

    Args:
        cfg: Options of the training. ``cfg.coarse`` takes precedence over the default.
        task: Configuration of the task, with all changes.
        defaults: Default training options of the task.

    Raises:
        ValueError: If ``cfg.coarse`` is given, but the number of physics steps per control step is
            odd or cannot be changed.
    """
    can_be_coarse = task.is_reconfigurable and task.sim.decimation % 2 == 0
    if cfg.coarse and not can_be_coarse:
        raise ValueError(
            "--coarse halves sim.decimation of a task of terms, "
            f"got {cfg.coarse} for {cfg.task_id!r}"
        )
    if cfg.coarse is not None:
        return cfg.coarse
    # On rough ground robots do not learn to walk with coarse physics. The ground of this task is
    # examined, not the default ground, because --changes can replace it.
    if can_be_coarse and not kind_of(task).has_terrain:
        return defaults.coarse
    return 0.0


def first_trot_factor(cfg: TrainCfg, task: TaskCfg, defaults: TrainingDefaults) -> float:
    """Return the factor on the weight of the reward ``trot`` at the start of a training.

    Args:
        cfg: Options of the training. ``cfg.first_trot`` takes precedence over the default.
        task: Configuration of the task, with all changes.
        defaults: Default training options of the task.

    Raises:
        ValueError: If ``cfg.first_trot`` is given, but the task has no reward ``trot``.
    """
    rewards_trot = (
        task.is_reconfigurable and "trot" in task.rewards and task.rewards["trot"].weight != 0.0
    )
    if cfg.first_trot is not None:
        if not rewards_trot:
            raise ValueError(
                f"--first-trot is for tasks with a reward 'trot', {cfg.task_id!r} has none"
            )
        return cfg.first_trot
    # The networks of a warm start already trot.
    begins_anew = cfg.warm_start is None and not kind_of(task).has_terrain
    if rewards_trot and begins_anew:
        return defaults.first_trot
    return 1.0
