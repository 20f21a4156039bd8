"""The clip and the time that each environment imitates."""

import torch

from legged_envs.motions.library import MotionLibrary, MotionSample
from legged_envs.state import Stateful


class MotionPlayer(Stateful):
    """The clip of a library that each environment imitates, and the time in it.

    Args:
        library: The clips.
        num_envs: Number of environments.
    """

    STATE = ("clip", "time")

    def __init__(self, library: MotionLibrary, num_envs: int):
        self.library = library
        """The clips."""
        self.clip = torch.zeros(num_envs, dtype=torch.int64, device=library.device)
        """Index of each environment's clip. Shape: (num_envs,)."""
        self.time = torch.zeros(num_envs, dtype=torch.float64, device=library.device)
        """Time since the clip's first frame, s. It continues past the end. Shape: (num_envs,)."""

    @property
    def phase(self) -> torch.Tensor:
        """Part of the clip that was played, in [0, 1]. A clip that loops starts again at 0.

        Shape: (num_envs,), float32.
        """
        # In float64: the time of a long episode has too many digits for float32.
        played = self.time / self.library.duration[self.clip]
        loops = self.library.loops[self.clip]
        return torch.where(loops, played - played.floor(), played.clamp(0.0, 1.0)).float()

    def start(self, env_ids: torch.Tensor, clips: torch.Tensor, times: torch.Tensor) -> None:
        """Put environments at times of clips.

        Args:
            env_ids: Indices of environments. Shape: (n,).
            clips: Indices of clips. Shape: (n,).
            times: Times since the first frame, s. Shape: (n,).

        Raises:
            ValueError: The library has no clip with one of the indices.
        """
        # Indexing would take a negative number as one from the end.
        num_clips = self.library.num_clips
        if len(clips) and not 0 <= int(clips.min()) <= int(clips.max()) < num_clips:
            raise ValueError(f"clips must be in [0, {num_clips}), got {clips.tolist()}")
        self.clip[env_ids] = clips
        self.time[env_ids] = times.double()

    def advance(self, dt: float) -> None:
        """Let ``dt`` s pass in every environment."""
        self.time += dt

    def sample(
        self, offsets: torch.Tensor | None = None, env_ids: torch.Tensor | slice = slice(None)
    ) -> MotionSample:
        """Sample the reference of environments.

        Args:
            offsets: Times from now, s, (K,). Shapes then start with (n, K). None: now; shapes start
                with (n,).
            env_ids: Indices of n environments. Default: all.
        """
        clip = self.clip[env_ids]
        time = self.time[env_ids]
        if offsets is None:
            return self.library.sample(clip, time)
        return self.library.sample(clip.unsqueeze(1), time.unsqueeze(1) + offsets)
