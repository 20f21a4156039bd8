"""Default training options of tasks: values of ``legged-envs train`` options that are None."""

from dataclasses import dataclass

from legged_envs.configuration import Configuration
from legged_envs.tasks.kind import TaskKind


@dataclass
class TrainingDefaults(Configuration):
    """Default training options of a task.

    Every algorithm uses :attr:`iterations`, :attr:`coarse` and :attr:`first_trot`. The other fields
    are for PPO without motions only; motion-mimic PPO and distillation define theirs in their own
    options.
    """

    iterations: int = 270
    """Number of updates of the policy in a training."""

    coarse: float = 0.0
    """Share of the training, from its start, during which physics makes half as many steps, each
    twice as long. Range 0 to 1. 0 switches it off."""

    first_trot: float = 1.0
    """Factor on the weight of the reward ``trot`` in the first 1.8 M environment steps.

    The factor then falls linearly and reaches 1 at 3 M steps. 1 switches it off. Without effect on
    tasks that do not have the reward ``trot``.
    """

    hidden: tuple[int, ...] = (128, 128)
    """Widths of the hidden layers of actor and critic."""

    init_std: float = 0.5
    """Initial standard deviation of the actions of leg joints. Actions are in −1 to 1."""

    upper_body_noise: float = 1.0
    """Factor on ``init_std`` for joints outside the legs, such as arm and head joints. 1 gives
    all joints the same noise."""

    entropy: float = 0.0005
    """Weight of the policy's entropy in the loss. A larger weight keeps more exploration noise."""

    gamma: float = 0.97
    """Discount factor per control step at the start of a training."""

    final_gamma: float = 0.97
    """Discount factor per control step at the end of a training. It changes linearly in between."""

    symmetric_networks: bool = False
    """True: networks treat left and right equally by their structure. False: half of each
    mini-batch is mirrored."""


def quadruped_flat_training(iterations: int = 270) -> TrainingDefaults:
    """Return the training defaults of a quadruped that follows velocity commands on flat ground.

    Args:
        iterations: Number of updates. 270 updates of 768 robots are 5 M steps: four minutes on two
            cores.
    """
    return TrainingDefaults(
        iterations=iterations,
        # The last fifth is trained, as every policy is evaluated, in the task's own physics.
        coarse=0.8,
        # With a smaller factor, robots walked only by exploration noise, and the mean action stood
        # still.
        first_trot=2.5,
        # A step pays off within two thirds of a second: 33 control steps, which is 1 / (1 − 0.97).
        # With 0.99 it is learnt later.
        gamma=0.97,
        final_gamma=0.97,
        symmetric_networks=True,
    )


def biped_flat_training(iterations: int = 1500) -> TrainingDefaults:
    """Return the training defaults of a biped that follows velocity commands on flat ground.

    They are also for robots that balance on two wheels.

    Args:
        iterations: Number of updates.
    """
    return TrainingDefaults(
        iterations=iterations,
        coarse=0.8,
        first_trot=2.5,
        # Swings of arms and heads turn the trunk, so they explore with less noise.
        upper_body_noise=0.4,
        # Walking and turning are learnt soonest with 0.98. A step that starts badly makes a biped
        # fall a second or two later, which only the larger discount at the end counts.
        gamma=0.98,
        final_gamma=0.99,
    )


def quadruped_rough_training(iterations: int = 1300) -> TrainingDefaults:
    """Return the training defaults of a quadruped on rough ground.

    Args:
        iterations: Number of updates. 1300 updates, each with 24 steps of 768 robots, are 24 M
            steps: an hour on two cores.
    """
    return TrainingDefaults(
        iterations=iterations,
        # A wider first layer, because the policy also sees the heights of the ground around it.
        hidden=(256, 128),
        init_std=0.4,
        entropy=0.002,
        gamma=0.99,
        final_gamma=0.99,
        # The policies that climb stairs were trained with mirrored mini-batches. The one training
        # with symmetric networks to its end learnt to walk sooner, but did not climb high stairs.
        symmetric_networks=False,
    )


def biped_rough_training(iterations: int = 1300) -> TrainingDefaults:
    """Return the training defaults of a biped on rough ground.

    Args:
        iterations: Number of updates.
    """
    return TrainingDefaults(
        iterations=iterations,
        # Noise and discount as for quadrupeds on rough ground, with calm arms and heads.
        hidden=(256, 128),
        init_std=0.4,
        upper_body_noise=0.4,
        gamma=0.99,
        final_gamma=0.99,
    )


def mimic_training(iterations: int = 260) -> TrainingDefaults:
    """Return the training defaults of a task that imitates reference motions.

    Args:
        iterations: Number of updates.
    """
    return TrainingDefaults(iterations=iterations, coarse=0.8, first_trot=2.5)


def training_defaults_of(kind: TaskKind) -> TrainingDefaults:
    """Return the training defaults of a kind of task, for tasks without an entry in
    ``TRAININGS``."""
    # Motions first: a mimic task can also have velocity commands.
    if kind.imitates_motions:
        defaults = mimic_training()
    elif kind.has_terrain:
        defaults = biped_rough_training() if kind.balances else quadruped_rough_training()
    else:
        defaults = biped_flat_training() if kind.balances else quadruped_flat_training()
    if not kind.has_velocity_command:
        # Coarse physics and a first trot were only tried on tasks with velocity commands.
        defaults.coarse = 0.0
        defaults.first_trot = 1.0
    return defaults
