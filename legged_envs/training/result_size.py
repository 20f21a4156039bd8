"""Size of the evaluation and the video at the end of a training."""

from legged_envs.training.options import AlgorithmCfg, TrainCfg

FULL_STEPS = 4e6
"""Environment steps of a training from which on its final evaluation and video have full size."""

FULL_MINUTES = 3.0
"""The same limit for a training with ``--minutes``, min: its number of steps is not known
before."""

FULL_EPISODES = 256
"""Number of episodes of an evaluation of full size."""

LEAST_EPISODES = 32
"""Least number of episodes of an evaluation without ``--episodes``."""

FULL_VIDEO_SECONDS = 6.0
"""Duration of a video of full size, s."""

LEAST_VIDEO_SECONDS = 3.0
"""Least duration of a video without ``--video-seconds``, s."""


def size_of_results(cfg: TrainCfg, algo: AlgorithmCfg) -> tuple[int, float]:
    """Return the number of episodes of an evaluation, and the duration of the video, s.

    What the options do not give is smaller for a short training: its evaluation and video would
    otherwise take longer than the training.

    Args:
        cfg: Options of the training, completed with the task's defaults.
        algo: Completed options of the algorithm.
    """
    if cfg.iterations is not None:
        share = cfg.iterations * algo.steps_per_env * cfg.num_envs / FULL_STEPS
    else:
        assert cfg.minutes is not None, "with_defaults() completes the number of updates"
        share = cfg.minutes / FULL_MINUTES
    share = min(share, 1.0)
    episodes = cfg.episodes
    if episodes is None:
        episodes = max(round(FULL_EPISODES * share), LEAST_EPISODES)
    video_seconds = cfg.video_seconds
    if video_seconds is None:
        video_seconds = max(FULL_VIDEO_SECONDS * share, LEAST_VIDEO_SECONDS)
    return episodes, video_seconds
