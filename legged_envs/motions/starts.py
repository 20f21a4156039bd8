"""Draws where episodes start in reference clips: uniformly, or more often where robots fail."""

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
"""Lower bound of divisors, so that there is no division by 0. Such quotients are not used."""


@dataclass(frozen=True)
class StartCfg(Configuration):
    """Configuration of a :class:`StartSampler`: where in reference clips episodes start.

    Clips are divided into bins, which are time intervals of about ``bin_length``. An adaptive
    sampler counts the failures in each bin.
    """

    adaptive: bool = False
    """True to start more often shortly before the times in a clip at which robots failed.

    Method: BeyondMimic (Liao et al. 2025). False: all starts are uniform, and the fields below
    except ``margin`` have no effect.
    """
    margin: float = 0.0
    """Smallest time from a start to the end of the clip, s. Clips that loop have no margin."""
    bin_length: float = 0.5
    """Approximate length of a bin, s. Each clip has a whole number of equal bins."""
    uniform_fraction: float = 0.1
    """Fraction of starts that are uniform, so that no part of a clip is left out, in (0, 1].

    1 makes all starts uniform. BeyondMimic: 0.1.
    """
    smoothing: float = 0.001
    """Weight of the newest control step in the running mean of failures, in (0, 1].

    BeyondMimic: 0.001.
    """
    bins_ahead: int = 3
    """Number of bins with failures that raise the probability of a start in a bin: the bin and the
    ones after it. mjlab: 3."""
    decay: float = 0.8
    """Weight of the failures in a bin relative to those in the bin before, in (0, 1].

    BeyondMimic: 0.8.
    """

    def check(self) -> None:
        """Check that all fields are in their ranges.

        Raises:
            ValueError: A field is out of its range. The message names it.
        """
        check_number("StartCfg.margin", self.margin, 0.0)
        check_number("StartCfg.bin_length", self.bin_length, above=0.0)
        whole_number("StartCfg.bins_ahead", self.bins_ahead)
        check_number("StartCfg.uniform_fraction", self.uniform_fraction, above=0.0, most=1.0)
        check_number("StartCfg.smoothing", self.smoothing, above=0.0, most=1.0)
        check_number("StartCfg.decay", self.decay, above=0.0, most=1.0)


class StartSampler(Stateful):
    """Draws the clip and the time in it at which an episode of an imitation task starts.

    A uniform start draws a clip by its weight, then a time in it. All times between two successive
    valid frames are equally likely.

    An adaptive sampler draws a uniform start with probability ``uniform_fraction``. Otherwise it
    draws bin b with a probability proportional to Σ_u decay^u f(b + u), 0 ≤ u < ``bins_ahead``. f
    is the running mean of failures in a bin per call of :meth:`record`. After the last bin of a
    clip that loops follows its first one. Within the bin it draws a time as for a uniform start.

    Args:
        library: Library with the clips.
        cfg: Settings of the sampler. None: the defaults of :class:`StartCfg`.

    Raises:
        ValueError: A field of ``cfg`` is out of its range.
        MotionError: A clip has no time at which an episode can start, or all weights are 0.
    """

    STATE = ("failures",)

    def __init__(self, library: MotionLibrary, cfg: StartCfg | None = None):
        self.library = library
        """Library with the clips."""
        self.cfg = cfg or StartCfg()
        """Settings of the sampler."""
        self.cfg.check()
        weights = self._interval_weights()
        # Cumulative distribution: probability that a uniform start is before each frame interval.
        cumulative = weights.cumsum(0) / weights.sum()
        self._cumulative = torch.cat((weights.new_zeros(1), cumulative))
        self._make_bins()
        self._uniform = self._cumulative[self._bin_end] - self._cumulative[self._bin_start]
        # In float64, like the running mean of failures, which becomes very small.
        exponents = torch.arange(self.cfg.bins_ahead, dtype=torch.float64, device=library.device)
        self._kernel = self.cfg.decay**exponents
        num_bins = len(self._bin_start)

        self.failures = torch.zeros(num_bins, dtype=torch.float64, device=library.device)
        """Running mean of the number of failures in each bin per call of :meth:`record`.

        Bins of all clips, one clip after the other. Shape: (num_bins,), float64.
        """
        self._update_probabilities()

    def bins(self, clips: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        """Return the index of the bin that contains each of some times in reference clips.

        A bin is a time interval of a clip, in which failures are counted. Bins are numbered through
        all clips of the library. A time past the end of a clip that loops is in a repetition of it;
        otherwise it is in the last bin of the clip.

        Args:
            clips: Index in the library of the clip of each time. Shape: (n,).
            times: Times since the first frame of the clip, s. Shape: (n,).

        Returns:
            Indices of bins, as in ``failures`` and ``probabilities``. Shape: (n,), int64.
        """
        library = self.library
        duration = library.duration[clips].double()
        times = times.double()
        # Times of a MotionPlayer grow past the end of a clip that loops.
        in_repetition = torch.remainder(times, duration)
        times = torch.where(library.loops[clips], in_repetition, times)
        count = self._bins_per_clip[clips]
        bin_in_clip = (times / duration * count).long()
        first = torch.zeros_like(bin_in_clip)
        bin_in_clip = bin_in_clip.clamp(first, count - 1)
        return self._first_bin[clips] + bin_in_clip

    def draw(self, random: Stream, env_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Draw a clip and a start time for each of some environments.

        Args:
            random: Random stream. Each environment uses its own numbers of it.
            env_ids: Indices of the environments. Shape: (n,).

        Returns:
            Indices of the clips in the library, (n,), int64, and times since their first frames, s,
            (n,), float64.
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
        # Within the bin with the probabilities of uniform starts. They are 0 between frames that
        # are not valid.
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
        """Update the running mean of failures, and the probabilities, after one control step.

        Args:
            clips: Index in the library of the clip of each robot. Shape: (n,).
            times: Time of each robot since the first frame of its clip, s. Shape: (n,).
            failed: True for robots that failed in this step. Shape: (n,), bool.
        """
        count = torch.zeros_like(self.failures)
        # Several robots can fail in one bin in the same step.
        count.index_add_(0, self.bins(clips, times), failed.double())
        self.failures.lerp_(count, self.cfg.smoothing)
        self._update_probabilities()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from ``state_dict`` and compute the probabilities from it."""
        super().load_state_dict(state)
        self._update_probabilities()

    def _interval_weights(self) -> torch.Tensor:
        """Return the weight of a uniform start in each interval between a frame and the next.

        The weight is the clip's weight, divided by the number of the clip's intervals in which a
        start is allowed. It is 0 where no start is allowed: next to a frame that is not valid,
        within ``margin`` of the clip's end, and after the last frame of a clip.

        Shape: (number of frames of all clips,), float64. Entry i is the interval after frame i.
        """
        library = self.library
        clip = torch.repeat_interleave(library.num_frames)
        frame = torch.arange(len(clip), device=library.device)
        next_in_clip = frame - library.first_frame[clip] + 1
        # A clip that loops has no end, so it has no margin.
        margin = torch.where(library.loops, 0.0, self.cfg.margin * library.frame_rate)
        last = library.num_frames - 1 - margin
        is_inside = next_in_clip <= last[clip] + ON_FRAME
        # Both frames of an interval must be valid. After a clip's last frame is_inside is False.
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
        """Divide each clip into bins. Each bin has a whole number of intervals between frames."""
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
        # Rounded up, so that each interval of a clip is in exactly one bin.
        self._bin_start = first + (bin_in_clip * intervals + count - 1) // count
        self._bin_end = first + ((bin_in_clip + 1) * intervals + count - 1) // count
        # Each bin and the bins after it, shape (num_bins, bins_ahead). In a clip that loops they
        # wrap around; in other clips the last bin is repeated.
        steps = torch.arange(self.cfg.bins_ahead, device=device)
        ahead = bin_in_clip.unsqueeze(1) + steps
        count = count.unsqueeze(1)
        around = ahead % count
        up_to_last = ahead.minimum(count - 1)
        loops = library.loops[clip].unsqueeze(1)
        ahead = torch.where(loops, around, up_to_last)
        first_bin = self._first_bin[clip].unsqueeze(1)
        self._bins_ahead = first_bin + ahead

    def set_failures(self, failures: torch.Tensor) -> None:
        """Set the running mean of failures in each bin. Shape: (num_bins,), float64."""
        self.failures = failures
        self._update_probabilities()

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
        """Probability that an episode starts in each bin, uniform starts included.

        Current after each :meth:`record`. Shape: (num_bins,), float64.
        """
        self._probability_sum = self.probabilities.cumsum(0)
        self._probability_sum /= self._probability_sum[-1].clone()
