"""Training defaults of tasks: the values of options that are not given."""

from dataclasses import dataclass

from legged_envs.configuration import Configuration
from legged_envs.tasks.kind import TaskKind


@dataclass
class TrainingDefaults(Configuration):
    """Options with which a task is trained by default.

    Number of updates, coarse physics and first trot are for every algorithm. Network, noise,
    entropy and discounts are those of rsl_rl's PPO; motion-mimic PPO and distillation have them in
    their own options.
    """

    iterations: int = 270
    """Number of updates of the policy."""

    coarse: float = 0.0
    """Share of the training in which physics takes half as many steps, each twice as long."""

    first_trot: float = 1.0
    """Factor of the weight of the reward ``trot`` at the start of a training. 1 keeps the
    weight."""

    hidden: tuple[int, ...] = (128, 128)
    """Sizes of the hidden layers of actor and critic."""

    init_std: float = 0.5
    """Standard deviation of the first actions of legs. 1 is the whole action range."""

    upper_body_noise: float = 1.0
    """Factor of ``init_std`` for joints that are not in a leg, such as those of arms and heads."""

    entropy: float = 0.0005
    """Weight of the entropy in the loss."""

    gamma: float = 0.97
    """Discount of a control step at the start of a training."""

    final_gamma: float = 0.97
    """Discount of a control step at the end of a training. It changes linearly in between."""


def quadruped_flat_training(iterations: int = 270) -> TrainingDefaults:
    """Return the defaults of a quadruped that follows velocities on flat ground.

    Args:
        iterations: Number of updates. 270 updates of 768 robots are 5 M steps: four minutes on two
            cores.
    """
    return TrainingDefaults(
        iterations=iterations,
        # The last fifth is trained, as every policy is evaluated, in the task's own physics.
        coarse=0.8,
        # Before a trot was rewarded this much at first, noise carried the robot, which stood still
        # without noise.
        first_trot=2.5,
        # A step pays off within two thirds of a second, which this discount tells sooner than 0.99.
        gamma=0.97,
        final_gamma=0.97,
    )


def biped_flat_training(iterations: int = 1500) -> TrainingDefaults:
    """Return the defaults of a robot that balances and follows velocities on flat ground."""
    return TrainingDefaults(
        iterations=iterations,
        coarse=0.8,
        first_trot=2.5,
        # Swings of arms and heads turn the trunk.
        upper_body_noise=0.4,
        # Walking and turning are learnt soonest with 0.98. A step that begins badly makes a biped
        # fall a second or two later, which only the larger discount at the end counts.
        gamma=0.98,
        final_gamma=0.99,
    )


def quadruped_rough_training(iterations: int = 1300) -> TrainingDefaults:
    """Return the defaults of a quadruped on rough ground.

    Args:
        iterations: Number of updates. 1300 updates of 768 robots are 24 M steps: an hour on two
            cores.
    """
    return TrainingDefaults(
        iterations=iterations,
        # The policy also sees the heights around it.
        hidden=(256, 128),
        init_std=0.4,
        entropy=0.002,
        gamma=0.99,
        final_gamma=0.99,
    )


def biped_rough_training(iterations: int = 1300) -> TrainingDefaults:
    """Return the defaults of a robot that balances on rough ground."""
    return TrainingDefaults(
        iterations=iterations,
        hidden=(256, 128),
        init_std=0.4,
        upper_body_noise=0.4,
        gamma=0.99,
        final_gamma=0.99,
    )


def mimic_training(iterations: int = 260) -> TrainingDefaults:
    """Return the defaults of a task that imitates motions."""
    return TrainingDefaults(iterations=iterations, coarse=0.8, first_trot=2.5)


def training_defaults_of(kind: TaskKind) -> TrainingDefaults:
    """Return the defaults of a task that was registered without any, by its kind."""
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
