"""Configurations of LeggedGym-Ex's own learners, with its names and most of its values.

This package does not read them. They are here so that files of tasks, which define both
configurations, can be imported.
"""

from collections.abc import Sequence


class LeggedRobotCfgPPO:
    """Configuration of LeggedGym-Ex's PPO."""

    seed: int = 1
    runner_class_name: str = "OnPolicyRunner"

    class policy:
        """Networks of actor and critic."""

        clip_actions: float = 100.0
        init_noise_std: float = 1.0
        actor_hidden_dims: Sequence[int] = (512, 256, 128)
        critic_hidden_dims: Sequence[int] = (512, 256, 128)
        activation: str = "elu"

    class algorithm:
        """Numbers of PPO."""

        value_loss_coef: float = 1.0
        use_clipped_value_loss: bool = True
        clip_param: float = 0.2
        entropy_coef: float = 0.01
        num_learning_epochs: int = 5
        num_mini_batches: int = 4
        learning_rate: float = 1e-3
        schedule: str = "adaptive"
        gamma: float = 0.99
        lam: float = 0.95
        desired_kl: float = 0.01
        max_grad_norm: float = 1.0

    class runner:
        """Length of the training, and files."""

        policy_class_name: str = "ActorCritic"
        algorithm_class_name: str = "PPO"
        num_steps_per_env: int = 24
        max_iterations: int = 1500
        save_interval: int = 50
        experiment_name: str = "test"
        run_name: str = ""
        resume: bool = False


class LeggedRobotTSCfgPPO(LeggedRobotCfgPPO):
    """Configuration of the learner of teacher and student."""

    runner_class_name = "TSRunner"

    class policy(LeggedRobotCfgPPO.policy):
        """Networks of actor, critic and both encoders."""

        privilege_encoder_hidden_dims: Sequence[int] = (256, 128)
        history_encoder_type: str = "MLP"
        history_encoder_hidden_dims: Sequence[int] = (256, 128)

    class algorithm(LeggedRobotCfgPPO.algorithm):
        """Numbers of PPO and of the student's encoder."""

        encoder_lr: float = 1e-3
        num_encoder_epochs: int = 1


class LeggedRobotCTSCfgPPO(LeggedRobotTSCfgPPO):
    """Configuration of the learner of teacher and student at once."""

    runner_class_name = "CTSRunner"


class LeggedRobotEECfgPPO(LeggedRobotCfgPPO):
    """Configuration of the learner of the explicit estimator."""

    runner_class_name = "EERunner"

    class policy(LeggedRobotCfgPPO.policy):
        """Networks of actor, critic and estimator."""

        estimator_hidden_dims: Sequence[int] = (256, 128)

    class algorithm(LeggedRobotCfgPPO.algorithm):
        """Numbers of PPO and of the estimator."""

        estimator_lr: float = 2e-4
        num_estimator_epochs: int = 1


class LeggedRobotDreamwaqCfgPPO(LeggedRobotCfgPPO):
    """Configuration of the learner of DreamWaQ."""

    runner_class_name = "DreamWaQRunner"

    class policy(LeggedRobotCfgPPO.policy):
        """Networks of actor, critic, encoder and decoder."""

        encoder_hidden_dims: Sequence[int] = (256, 128)
        decoder_hidden_dims: Sequence[int] = (256, 128)

    class algorithm(LeggedRobotCfgPPO.algorithm):
        """Numbers of PPO and of the autoencoder."""

        encoder_lr: float = 2e-4
        num_encoder_epochs: int = 1
        vae_kld_weight: float = 2.0
