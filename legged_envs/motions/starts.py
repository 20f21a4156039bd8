"""Where episodes start in the clips of a library: uniformly, or more often where robots fail."""

from dataclasses import dataclass
from typing import Any

import torch

from legged_envs.checks import check_number, whole_number
from legged_envs.configuration import Configuration
from legged_envs.motions.library import ON_FRAME, MotionLibrary
from legged_envs.motions.motion import MotionError
from legged_envs.rng import Stream
from legged_envs.state import Stateful

SMALLEST_DIVISOR = 1e-300
"""Bound of divisors that can be 0 where the quotient is not used, float64."""


@dataclass(frozen=True)
class StartCfg(Configuration):
    """Choice of the places where episodes start in a clip."""

    adaptive: bool = False
    """True to start more often shortly before the places where robots failed (BeyondMimic, Liao et
    al. 2025)."""
    margin: float = 0.0
    """Smallest time from a start to the end of a clip that does not loop, s."""
    bin_length: float = 0.5
    """Approximate length of the bins in which failures are counted, s."""
    uniform_fraction: float = 0.1
    """Probability of a uniform start, so that no place is forgotten (BeyondMimic 0.1)."""
    smoothing: float = 0.001
    """Weight of the newest step in the running mean of failures (BeyondMimic 0.001)."""
    bins_ahead: int = 3
    """Number of bins whose failures draw a start: its own bin and the next ones (mjlab 3)."""
    decay: float = 0.8
    """Weight of each next bin's failures relative to the bin before (BeyondMimic 0.8)."""

    def check(self) -> None:
        """Check all fields.

        Raises:
            ValueError: A field is wrong. The message names it.
        """
        check_number("StartCfg.margin", self.margin, 0.0)
        check_number("StartCfg.bin_length", self.bin_length, above=0.0)
        whole_number("StartCfg.bins_ahead", self.bins_ahead)
        check_number("StartCfg.uniform_fraction", self.uniform_fraction, above=0.0, most=1.0)
        check_number("StartCfg.smoothing", self.smoothing, above=0.0, most=1.0)
        check_number("StartCfg.decay", self.decay, above=0.0, most=1.0)


class StartSampler(Stateful):
    """Draws clips and start times.

    A uniform start draws a clip by its weight, then a time between two successive valid frames of
    it, all equally likely.

    An adaptive sampler does this with probability ``uniform_fraction``. Otherwise it draws bin b in
    proportion to Σ_u decay^u f(b + u), 0 ≤ u < ``bins_ahead``, with f the running mean of failures
    per call of :meth:`record`. The bins of a clip that loops wrap around.

    Args:
        library: The clips.
        cfg: Choice of the places. None: the defaults of :class:`StartCfg`.

    Raises:
        ValueError: A field of ``cfg`` is wrong.
        MotionError: A clip has no place to start, or all weights are 0.
    """

    STATE = ("failures",)

    def __init__(self, library: MotionLibrary, cfg: StartCfg | None = None):
        self.library = library
        """The clips."""
        self.cfg = cfg or StartCfg()
        """Choice of the places."""
        self.cfg.check()
        weights = self._interval_weights()
        # Probability that a uniform start is before each interval between two frames.
        cumulative = weights.cumsum(0) / weights.sum()
        self._cumulative = torch.cat((weights.new_zeros(1), cumulative))
        self._make_bins()
        self._uniform = self._cumulative[self._bin_end] - self._cumulative[self._bin_start]
        # In float64, as the failures: their running mean becomes very small.
        exponents = torch.arange(self.cfg.bins_ahead, dtype=torch.float64, device=library.device)
        self._kernel = self.cfg.decay**exponents
        num_bins = len(self._bin_start)

        self.failures = torch.zeros(num_bins, dtype=torch.float64, device=library.device)
        """Running mean of the number of failures in each bin per call of :meth:`record`. Shape:
        (num_bins,)."""
        self._update_probabilities()

    def bins(self, clips: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        """Return the bins of times in clips.

        Args:
            clips: Indices of clips. Shape: (n,).
            times: Times since the first frame, s. Shape: (n,).

        Returns:
            Indices of bins. Shape: (n,), int64.
        """
        library = self.library
        duration = library.duration[clips].double()
        times = times.double()
        # A player's time continues past the end of a clip that loops.
        in_repetition = torch.remainder(times, duration)
        times = torch.where(library.loops[clips], in_repetition, times)
        count = self._bins_per_clip[clips]
        bin_in_clip = (times / duration * count).long()
        first = torch.zeros_like(bin_in_clip)
        bin_in_clip = bin_in_clip.clamp(first, count - 1)
        return self._first_bin[clips] + bin_in_clip

    def draw(self, random: Stream, env_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Draw starts from the random numbers of environments.

        Args:
            random: The random stream.
            env_ids: Indices of environments. Shape: (n,).

        Returns:
            Clips (n,), int64, and times since their first frames (n,), s, float64.
        """
        numbers = random.uniform(0.0, 1.0, 2, env_ids).double()
        for_bin, for_place = numbers.unbind(1)
        for_bin = for_bin.contiguous()
        # Inverse transform sampling, first of a bin, then of a place in it.
        bins = torch.searchsorted(self._probability_sum, for_bin, right=True)
        # Rounding can leave the last sum slightly below 1.
        bins = bins.clamp_(max=len(self._bin_start) - 1)
        first = self._bin_start[bins]
        end = self._bin_end[bins]
        clips = self._clip_of_bin[bins]
        # Within the bin by the uniform probabilities, which are 0 between frames that are not
        # valid.
        low = self._cumulative[first]
        high = self._cumulative[end]
        place = torch.lerp(low, high, for_place)
        interval = torch.searchsorted(self._cumulative, place, right=True) - 1
        interval = interval.clamp_(first, end - 1)
        start = self._cumulative[interval]
        share = self._cumulative[interval + 1] - start
        share = share.clamp(min=SMALLEST_DIVISOR)
        fraction = ((place - start) / share).clamp_(0.0, 1.0)
        frame_in_clip = interval - self.library.first_frame[clips]
        times = (frame_in_clip.double() + fraction) / self.library.frame_rate
        return clips, times

    def record(self, clips: torch.Tensor, times: torch.Tensor, failed: torch.Tensor) -> None:
        """Update the running mean of failures with one control step.

        Args:
            clips: Clip of each robot. Shape: (n,).
            times: Time of each robot in its clip, s. Shape: (n,).
            failed: True for robots that failed. Shape: (n,), bool.
        """
        count = torch.zeros_like(self.failures)
        # Several robots can fail in one bin in the same step.
        count.index_add_(0, self.bins(clips, times), failed.double())
        self.failures.lerp_(count, self.cfg.smoothing)
        self._update_probabilities()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to a state from ``state_dict``; the probabilities follow from it."""
        super().load_state_dict(state)
        self._update_probabilities()

    def _interval_weights(self) -> torch.Tensor:
        """Return the weight of a start between each frame and the next, 0 between clips.

        Shape: (number of all frames,).
        """
        library = self.library
        clip = torch.repeat_interleave(library.num_frames)
        frame = torch.arange(len(clip), device=library.device)
        next_in_clip = frame - library.first_frame[clip] + 1
        # A clip that loops has no end to keep away from.
        margin = torch.where(library.loops, 0.0, self.cfg.margin * library.frame_rate)
        last = library.num_frames - 1 - margin
        is_inside = next_in_clip <= last[clip] + ON_FRAME
        # Both frames around the interval; behind the last frame of a clip is_inside is False.
        next_is_valid = library.valid.roll(-1)
        usable = library.valid & next_is_valid & is_inside
        number = torch.bincount(clip[usable], minlength=library.num_clips)
        if not number.all():
            clip_name = library.names[int(number.argmin())]
            raise MotionError(
                f"clip {clip_name!r} has no two successive valid frames "
                f"at least {self.cfg.margin:g} s before its end, so no episode can start in it; "
                "leave it out or lower StartCfg.margin"
            )
        if not library.weight.any():
            raise MotionError(
                "the weights of all clips are 0, so none can be drawn; give one a weight above 0"
            )
        weight = library.weight[clip].double()
        return usable.double() / number[clip] * weight

    def _make_bins(self) -> None:
        """Divide each clip into bins of whole intervals between frames."""
        library = self.library
        device = library.device
        num_intervals = library.num_frames - 1
        bins_per_clip = (library.duration.double() / self.cfg.bin_length).round()
        # At least one bin, and at most one for each interval.
        bins_per_clip = bins_per_clip.clamp(max=num_intervals).long().clamp(min=1)
        self._bins_per_clip = bins_per_clip
        self._first_bin = bins_per_clip.cumsum(0) - bins_per_clip
        clip = torch.repeat_interleave(bins_per_clip)
        self._clip_of_bin = clip
        all_bins = torch.arange(len(clip), device=device)
        bin_in_clip = all_bins - self._first_bin[clip]
        first = library.first_frame[clip]
        count = bins_per_clip[clip]
        intervals = num_intervals[clip]
        # Rounded up, so that the intervals of a clip are shared out without a gap.
        self._bin_start = first + (bin_in_clip * intervals + count - 1) // count
        self._bin_end = first + ((bin_in_clip + 1) * intervals + count - 1) // count
        # The bins that follow each bin, shape (num_bins, bins_ahead): around in a loop, else up to
        # the last.
        steps = torch.arange(self.cfg.bins_ahead, device=device)
        ahead = bin_in_clip.unsqueeze(1) + steps
        count = count.unsqueeze(1)
        around = ahead % count
        up_to_last = ahead.minimum(count - 1)
        loops = library.loops[clip].unsqueeze(1)
        ahead = torch.where(loops, around, up_to_last)
        first_bin = self._first_bin[clip].unsqueeze(1)
        self._bins_ahead = first_bin + ahead

    def _update_probabilities(self) -> None:
        failures_ahead = self.failures[self._bins_ahead]
        attraction = (failures_ahead * self._kernel).sum(1)
        # Bins without a usable interval cannot be drawn, whatever fails in them.
        attraction = attraction * (self._uniform > 0.0)
        total = attraction.sum()
        # Before the first failure all starts are uniform.
        by_failures = attraction / total.clamp(min=SMALLEST_DIVISOR)
        adaptive = torch.where(total > 0.0, by_failures, self._uniform)
        share = self.cfg.uniform_fraction if self.cfg.adaptive else 1.0

        self.probabilities = torch.lerp(adaptive, self._uniform, share)
        """Probability of a start in each bin, float64. Shape: (num_bins,)."""
        self._probability_sum = self.probabilities.cumsum(0)
        self._probability_sum /= self._probability_sum[-1].clone()
