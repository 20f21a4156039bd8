from dataclasses import dataclass
from typing import Any

import torch

from legged_envs.checks import check_number, whole_number
from legged_envs.configuration import Configuration
from legged_envs.motions.library import ON_FRAME, MotionLibrary
from legged_envs.motions.motion import MotionError
from legged_envs.rng import Stream
from legged_envs.state import Stateful


@dataclass(frozen=True)
class StartCfg(Configuration):
    """How episodes choose where to start: uniformly, or more often before the places where robots fail."""

    adaptive: bool = False
    """Start more often shortly before the places where robots failed (BeyondMimic, Liao et al. 2025)."""
    margin: float = 0.0
    """Starts keep at least this long before the end of a clip that does not loop, s."""
    bin_length: float = 0.5
    """Failures are counted in bins of about this length, s."""
    uniform_fraction: float = 0.1
    """Probability of a uniform start, so that no place is forgotten (BeyondMimic 0.1)."""
    smoothing: float = 0.001
    """Weight of the newest step in the running mean of failures (BeyondMimic 0.001)."""
    bins_ahead: int = 3
    decay: float = 0.8
    """How many bins' failures draw a start, its own first (mjlab 3), and each next one's weight (BeyondMimic 0.8)."""

    def check(self) -> None:
        """Raise a ValueError that names the field that is wrong."""
        check_number("StartCfg.margin", self.margin, 0.0)
        check_number("StartCfg.bin_length", self.bin_length, above=0.0)
        whole_number("StartCfg.bins_ahead", self.bins_ahead)
        for name in ("uniform_fraction", "smoothing", "decay"):
            check_number(f"StartCfg.{name}", getattr(self, name), above=0.0, most=1.0)


class StartSampler(Stateful):
    """Draws clips and start times. Uniformly, a clip is drawn by its weight, then a time between two valid frames of
    it, all equally likely. Adaptively, it is so with probability ``uniform_fraction``, else in a bin b in proportion to
    Σ_u decay^u f(b + u), f the running mean of failures per :meth:`record`, u < bins_ahead; bins wrap in a loop."""

    STATE = ("failures",)

    def __init__(self, library: MotionLibrary, cfg: StartCfg | None = None):
        self.library, self.cfg = library, cfg or StartCfg()
        self.cfg.check()
        weights = self._interval_weights()
        self._cumulative = torch.cat((weights.new_zeros(1), weights.cumsum(0) / weights.sum()))
        self._make_bins()
        self._uniform = self._cumulative[self._bin_end] - self._cumulative[self._bin_start]
        self._kernel = self.cfg.decay ** torch.arange(
            self.cfg.bins_ahead, dtype=torch.float64, device=library.device
        )
        self.failures = torch.zeros(
            len(self._bin_start), dtype=torch.float64, device=library.device
        )
        """Running mean of the number of failures in each bin per call of :meth:`record`. Shape: (num_bins,)."""
        self._update_probabilities()

    def bins(self, clips: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        """The bins of ``times`` (n,), s, in ``clips`` (n,). Shape: (n,), int64."""
        duration, times, count = (
            self.library.duration[clips].double(),
            times.double(),
            self._bins_per_clip[clips],
        )
        times = torch.where(self.library.loops[clips], torch.remainder(times, duration), times)
        inside = (times / duration * count).long()
        return self._first_bin[clips] + inside.clamp(torch.zeros_like(inside), count - 1)

    def draw(self, random: Stream, env_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Clips (n,) int64 and times (n,) float64 for ``env_ids`` (n,), from the random numbers of those."""
        for_bin, for_place = random.uniform(0.0, 1.0, 2, env_ids).double().unbind(1)
        bins = torch.searchsorted(self._probability_sum, for_bin.contiguous(), right=True)
        bins = bins.clamp_(max=len(self._bin_start) - 1)
        first, end, clips = self._bin_start[bins], self._bin_end[bins], self._clip_of_bin[bins]
        place = torch.lerp(self._cumulative[first], self._cumulative[end], for_place)
        interval = (torch.searchsorted(self._cumulative, place, right=True) - 1).clamp_(
            first, end - 1
        )
        start, share = (
            self._cumulative[interval],
            self._cumulative[interval + 1] - self._cumulative[interval],
        )
        fraction = ((place - start) / share.clamp(min=1e-300)).clamp_(0.0, 1.0)
        return clips, (
            (interval - self.library.first_frame[clips]).double() + fraction
        ) / self.library.frame_rate

    def record(self, clips: torch.Tensor, times: torch.Tensor, failed: torch.Tensor) -> None:
        """Take in one control step: which robots, at ``times`` [s] of ``clips``, ``failed``, bool. Shapes: (n,)."""
        count = torch.zeros_like(self.failures).index_add_(
            0, self.bins(clips, times), failed.double()
        )
        self.failures.lerp_(count, self.cfg.smoothing)
        self._update_probabilities()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to a state, of which probabilities follow."""
        super().load_state_dict(state)
        self._update_probabilities()

    def _interval_weights(self) -> torch.Tensor:
        """Weight of a start between each frame and the next, 0 between clips. Shape: (total number of frames,)."""
        library = self.library
        clip = torch.repeat_interleave(library.num_frames)
        following = torch.arange(len(clip), device=library.device) - library.first_frame[clip] + 1
        last = (
            library.num_frames
            - 1
            - torch.where(library.loops, 0.0, self.cfg.margin * library.frame_rate)
        )
        usable = library.valid & library.valid.roll(-1) & (following <= last[clip] + ON_FRAME)
        number = torch.bincount(clip[usable], minlength=library.num_clips)
        if not number.all():
            where = f"at least {self.cfg.margin:g} s before its end, so no episode can start in it"
            clip_name, advice = (
                library.names[int(number.argmin())],
                "leave it out or lower StartCfg.margin",
            )
            raise MotionError(
                f"clip {clip_name!r} has no two successive valid frames {where}; {advice}"
            )
        if not library.weight.any():
            raise MotionError("the weights of all clips are 0, so none can be drawn")
        return usable.double() / number[clip] * library.weight[clip].double()

    def _make_bins(self) -> None:
        library, device = self.library, self.library.device
        intervals = library.num_frames - 1
        count = (
            (library.duration.double() / self.cfg.bin_length)
            .round()
            .clamp(max=intervals)
            .long()
            .clamp(min=1)
        )
        self._bins_per_clip, self._first_bin = count, count.cumsum(0) - count
        clip = self._clip_of_bin = torch.repeat_interleave(count)
        place = torch.arange(len(clip), device=device) - self._first_bin[clip]
        first, count, intervals = library.first_frame[clip], count[clip], intervals[clip]
        self._bin_start = first + (place * intervals + count - 1) // count
        self._bin_end = first + ((place + 1) * intervals + count - 1) // count
        ahead = place.unsqueeze(1) + torch.arange(self.cfg.bins_ahead, device=device)
        count = count.unsqueeze(1)
        ahead = torch.where(
            library.loops[clip].unsqueeze(1), ahead % count, ahead.minimum(count - 1)
        )
        self._ahead = self._first_bin[clip].unsqueeze(1) + ahead

    def _update_probabilities(self) -> None:
        drawn_to = (self.failures[self._ahead] * self._kernel).sum(1) * (self._uniform > 0.0)
        total = drawn_to.sum()
        adaptive = torch.where(total > 0.0, drawn_to / total.clamp(min=1e-300), self._uniform)
        share = self.cfg.uniform_fraction if self.cfg.adaptive else 1.0
        self.probabilities = torch.lerp(adaptive, self._uniform, share)
        """Probability of a start in each bin, float64. Shape: (num_bins,)."""
        self._probability_sum = self.probabilities.cumsum(0)
        self._probability_sum /= self._probability_sum[-1].clone()
