"""Which clip each environment imitates, and where in it it is."""

from __future__ import annotations

import torch

from legged_envs.motions.library import MotionLibrary, MotionSample


class MotionPlayer:
    """A clip and a time per environment, over one library.

    Args:
        library: The clips.
        num_envs: Number of environments.
    """

    def __init__(self, library: MotionLibrary, num_envs: int):
        self.library = library
        self.num_envs = num_envs
        self.clip = torch.zeros(num_envs, dtype=torch.int64, device=library.device)
        """Shape: (num_envs,)."""
        self.time = torch.zeros(num_envs, dtype=torch.float64, device=library.device)
        """Time since the clip's first frame, s; it goes on past the end. Shape: (num_envs,)."""

    @property
    def phase(self) -> torch.Tensor:
        """Part of the clip played, in [0, 1]; a looping clip starts again at 0. Shape: (num_envs,), float32."""
        played = self.time / self.library.duration[self.clip]
        return torch.where(self.library.loops[self.clip], played - played.floor(), played.clamp(0.0, 1.0)).float()

    def start(self, env_ids: torch.Tensor, clips: torch.Tensor, times: torch.Tensor) -> None:
        """Put ``env_ids`` at ``times`` of ``clips``, as drawn by a :class:`StartSampler`. Shapes: (n,)."""
        if len(clips) and not 0 <= int(clips.min()) <= int(clips.max()) < self.library.num_clips:
            raise ValueError(f"clips must be in [0, {self.library.num_clips}), got {clips.tolist()}")
        self.clip[env_ids] = clips
        self.time[env_ids] = times.double()

    def advance(self, dt: float) -> None:
        """Let ``dt`` s pass in every environment."""
        self.time += dt

    def sample(self, offsets: torch.Tensor | None = None, env_ids: torch.Tensor | slice = slice(None)) -> MotionSample:
        """The reference of ``env_ids``, default of every environment.

        Args:
            offsets: Times from the present one, s, for a window of the reference. Shape: (K,).
            env_ids: Numbers of n environments.

        Returns:
            Shapes start with (n,), or with (n, K) where there are offsets.
        """
        clip, time = self.clip[env_ids], self.time[env_ids]
        if offsets is None:
            return self.library.sample(clip, time)
        return self.library.sample(clip.unsqueeze(1), time.unsqueeze(1) + offsets)

    def state_dict(self) -> dict[str, torch.Tensor]:
        return {"clip": self.clip.clone(), "time": self.time.clone()}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        self.clip.copy_(state["clip"])
        self.time.copy_(state["time"])
