"""Configurations of the variants of ``LeggedRobot``: sizes of histories, labels and codes.

A size that is a product is computed where the class is written, as in LeggedGym-Ex: a subclass that
has another ``frame_stack`` also writes the size of its history.
"""

from legged_envs.compat.legged_gym.cfg import LeggedRobotCfg


class LeggedRobotTSCfg(LeggedRobotCfg):
    """Configuration of :class:`LeggedRobotTS`."""

    class env(LeggedRobotCfg.env):
        """Sizes of the observations of actor, teacher, student and critic."""

        # Gravity, angular velocity and commands, 3 each, and three numbers for each of 12 joints.
        num_observations: int = 45
        """Number of elements of ``obs_buf``."""
        num_privileged_obs: int | None = 3
        """Number of elements of ``privileged_obs_buf``, which the teacher's encoder sees."""
        frame_stack: int = 20
        """Number of steps in ``obs_history``, which the student's encoder sees."""
        num_history_obs: int = num_observations * frame_stack
        """Number of elements of ``obs_history``."""
        num_latent_dims: int = 3
        """Number of elements of the code."""
        c_frame_stack: int = 5
        """Number of steps in ``critic_obs_buf``."""
        single_critic_obs_len: int = num_observations + 3
        """Number of elements that the critic sees of one step."""
        num_critic_obs: int = c_frame_stack * single_critic_obs_len
        """Number of elements of ``critic_obs_buf``."""


class LeggedRobotCTSCfg(LeggedRobotTSCfg):
    """Configuration of :class:`LeggedRobotCTS`."""

    class env(LeggedRobotTSCfg.env):
        """Sizes of the observations, and the number of teachers."""

        num_teacher: int = 1
        """Number of environments that the teacher acts in, the first ones."""


class LeggedRobotEECfg(LeggedRobotCfg):
    """Configuration of :class:`LeggedRobotEE`."""

    class env(LeggedRobotCfg.env):
        """Sizes of the estimator's features and labels, and of the critic's observation."""

        num_single_obs: int = 45
        """Number of elements of the observation of one step."""
        num_observations: int = num_single_obs
        """The same as ``num_single_obs``."""
        frame_stack: int = 10
        """Number of steps in ``estimator_features_buf``."""
        num_estimator_features: int = num_single_obs * frame_stack
        """Number of elements of ``estimator_features_buf``."""
        num_estimator_labels: int = 7
        """Number of elements of ``estimator_labels_buf``."""
        c_frame_stack: int = 5
        """Number of steps in ``privileged_obs_buf``."""
        single_critic_obs_len: int = num_single_obs + num_estimator_labels
        """Number of elements that the critic sees of one step."""
        num_privileged_obs: int | None = c_frame_stack * single_critic_obs_len
        """Number of elements of ``privileged_obs_buf``, which the critic sees."""


class LeggedRobotDreamwaqCfg(LeggedRobotCfg):
    """Configuration of :class:`LeggedRobotDreamwaq`."""

    class env(LeggedRobotCfg.env):
        """Sizes of history, code, labels, next state and of the critic's observation."""

        num_observations: int = 45
        """Number of elements of ``obs_buf``."""
        frame_stack: int = 20
        """Number of steps in ``obs_history``."""
        num_history_obs: int = num_observations * frame_stack
        """Number of elements of ``obs_history``."""
        num_latent_dims: int = 16
        """Number of elements of the code of the autoencoder."""
        num_explicit_dims: int = 7
        """Number of elements of ``explicit_labels_buf``."""
        num_decoder_output: int = num_observations
        """Number of elements of ``next_state_buf``."""
        c_frame_stack: int = 5
        """Number of steps in ``privileged_obs_buf``."""
        single_critic_obs_len: int = num_observations + 3
        """Number of elements that the critic sees of one step."""
        num_privileged_obs: int | None = c_frame_stack * single_critic_obs_len
        """Number of elements of ``privileged_obs_buf``, which the critic sees."""


class LeggedRobotDreamWaQCfg(LeggedRobotDreamwaqCfg):
    """:class:`LeggedRobotDreamwaqCfg`, spelt as the paper of DreamWaQ does."""


class LeggedRobotAMPCfg(LeggedRobotCfg):
    """Configuration of :class:`LeggedRobotAMP`."""

    class env(LeggedRobotCfg.env):
        """Sizes of the observations, and of the states of the motion prior."""

        # Velocities of the base 3 + 3, two numbers for each of 12 joints, 3 for each of 4 feet.
        num_amp_obs: int = 42
        """Number of elements of ``amp_obs_buf``."""
