"""Options of the training schemes. Every field is an option of ``legged-envs train``."""

from dataclasses import dataclass
from typing import Literal

from legged_envs.training.ppo_options import PPOCfg

HISTORY = "observations.policy.history"
"""Path of the number of control steps that the policy sees, in the configuration of a task."""


@dataclass
class SchemeCfg(PPOCfg):
    """Options of all schemes, in addition to PPO's options."""

    history: int = 10
    """Number of control steps that the policy observes, including the present one. At least 2."""

    encoder: Literal["mlp", "tcn", "moe"] = "mlp"
    """Network that encodes the history. ``mlp``: a multilayer perceptron. ``tcn``: convolutions
    over time. ``moe``: a mixture of experts, each an MLP."""

    encoder_hidden: tuple[int, ...] = (256, 128)
    """Widths of the hidden layers of the encoder. Of ``tcn``, the channels of its convolutions."""

    encoder_learning_rate: float = 1e-3
    """Learning rate of the encoder's own optimizer (Adam) at the start of the training."""

    encoder_final_learning_rate: float = 1e-4
    """Learning rate of the encoder at the end of the training. It changes linearly in between."""

    encoder_epochs: int = 1
    """Number of passes over a rollout in which the encoder learns. Each costs as much time as
    several passes of the policy. At most ``epochs``."""


@dataclass
class EECfg(SchemeCfg):
    """Options of the explicit estimator: the policy observes its own estimate of the velocity, the
    contacts and the heights of the feet."""


@dataclass
class DreamWaQCfg(SchemeCfg):
    """Options of DreamWaQ: the policy observes an estimate and a code of the next observation."""

    latent: int = 16
    """Size of the code of the variational autoencoder."""

    beta: float = 1.0
    """Weight β of the divergence of the code from a standard normal distribution."""

    decoder_hidden: tuple[int, ...] = (128, 256)
    """Widths of the hidden layers of the decoder."""


@dataclass
class HIMCfg(SchemeCfg):
    """Options of HIM: in addition to a velocity estimate, the policy observes a code of the history
    that distinguishes its next observation from other robots'."""

    latent: int = 16
    """Size of the code."""

    prototypes: int = 32
    """Number of prototypes, the directions that codes are assigned to."""

    temperature: float = 0.1
    """Temperature of the softmax over prototypes."""

    target_hidden: tuple[int, ...] = (128, 64)
    """Widths of the hidden layers of the network that encodes the next observation."""


@dataclass
class TSCfg(SchemeCfg):
    """Options of teacher and student: the student finds the teacher's code in its history."""

    latent: int = 32
    """Size of the code of the observations that only the teacher has."""


@dataclass
class CTSCfg(TSCfg):
    """Options of concurrent teacher and student: both act, and one policy learns from both."""

    teacher_share: float = 0.75
    """Share of the robots that the teacher acts for, from 0 to 1, both excluded."""


@dataclass
class LSTMCfg(PPOCfg):
    """Options of policies with a memory, in addition to PPO's options. No mini-batch is mirrored,
    because a memory has no mirror image."""

    cell: Literal["lstm", "gru"] = "lstm"
    """Recurrent cell of the memory: long short-term memory, or gated recurrent unit."""

    memory: int = 128
    """Size of the memory."""


SCHEME_CONFIGS: dict[str, type[SchemeCfg]] = {
    "ts": TSCfg,
    "cts": CTSCfg,
    "ee": EECfg,
    "dreamwaq": DreamWaQCfg,
    "him": HIMCfg,
}
"""Class of the options of each scheme with a history, by its name on the command line."""
