"""Playback of reference clips: the clip and the time in it that each environment imitates."""

import torch

from legged_envs.motions.library import MotionLibrary, MotionSample
from legged_envs.state import State, Stateful, check_indices


class MotionPlayer(Stateful):
    """Plays a reference clip in each environment: it holds the clip and the time in it.

    ``start`` sets both when an episode starts, ``advance`` moves the time on in every control step,
    and ``sample`` returns the reference pose.

    Args:
        library: Library with the clips.
        num_envs: Number of environments.
    """

    STATE = ("clip", "time")

    def __init__(self, library: MotionLibrary, num_envs: int):
        self.library = library
        """Library with the clips."""
        self.clip = torch.zeros(num_envs, dtype=torch.int64, device=library.device)
        """Index in the library of the clip of each environment. Shape: (num_envs,), int64."""
        self.time = torch.zeros(num_envs, dtype=torch.float64, device=library.device)
        """Time of each environment since the first frame of its clip, s.

        It also grows past the end of the clip. Shape: (num_envs,), float64.
        """

    def load_state_dict(self, state: State) -> None:
        """Restore a state from ``state_dict``.

        Raises:
            ValueError: A clip does not exist, or a time is not finite.
        """
        check_indices("clips", state["clip"], self.library.num_clips)
        if not state["time"].isfinite().all():
            raise ValueError(f"times in clips must be finite, got {state['time'].tolist()}")
        super().load_state_dict(state)

    @property
    def phase(self) -> torch.Tensor:
        """Time of each environment in its clip, as a fraction of the clip's duration, in [0, 1].

        It starts again at 0 in each repetition of a clip that loops, and stays at 1 after the end
        of other clips. Shape: (num_envs,), float32.
        """
        # In float64: the time of a long episode has too many digits for float32.
        played = self.time / self.library.duration[self.clip]
        loops = self.library.loops[self.clip]
        return torch.where(loops, played - played.floor(), played.clamp(0.0, 1.0)).float()

    def start(self, env_ids: torch.Tensor, clips: torch.Tensor, times: torch.Tensor) -> None:
        """Start playing clips in some environments, each clip at a given time.

        Environment ``env_ids[i]`` then plays clip ``clips[i]`` from ``times[i]`` on. The other
        environments do not change.

        Args:
            env_ids: Indices of the environments. Shape: (n,).
            clips: Indices of the clips in the library. Shape: (n,), int64.
            times: Times since the first frames of the clips, s. Shape: (n,).

        Raises:
            ValueError: A clip index is negative or not below the number of clips.
        """
        check_indices("clips", clips, self.library.num_clips)
        self.clip[env_ids] = clips
        self.time[env_ids] = times.double()

    def advance(self, dt: float) -> None:
        """Advance the time in every environment by ``dt``, s."""
        self.time += dt

    def sample(
        self, offsets: torch.Tensor | None = None, env_ids: torch.Tensor | slice = slice(None)
    ) -> MotionSample:
        """Return the reference pose and velocities of environments at their present times.

        Args:
            offsets: Times relative to the present time of each environment, s, such as (0.0, 0.1)
                for now and 0.1 s ahead. Shape: (K,). None: the present time only.
            env_ids: Indices of n environments. Default: all.

        Returns:
            Reference. Its shapes start with (n, K), or with (n,) if ``offsets`` is None.
        """
        clip = self.clip[env_ids]
        time = self.time[env_ids]
        if offsets is None:
            return self.library.sample(clip, time)
        return self.library.sample(clip.unsqueeze(1), time.unsqueeze(1) + offsets)
