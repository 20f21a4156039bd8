"""The mask of environments with an ended episode that are not reset yet."""

from typing import cast

import numpy as np
from gymnasium.vector import AutoresetMode

from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array


class Episodes:
    """A mask of the environments with an ended episode that are not reset yet.

    Wrappers leave these environments out of their statistics. The time until the reset depends on
    the autoreset mode of the wrapped environment:

    ==========  =======================
    mode        marked in the mask
    ==========  =======================
    SAME_STEP   never
    NEXT_STEP   during the next step
    DISABLED    until its reset
    ==========  =======================

    Masks (num_envs,) may be arrays of any kind. Methods return masks of the requested kind.

    Args:
        mode: Autoreset mode of the wrapped environment.
    """

    def __init__(self, mode: AutoresetMode):
        self.mode = mode
        """Autoreset mode of the wrapped environment."""
        self.some_over = False
        """True if at least one environment is marked in the mask."""
        # None until an episode was over.
        self._over: Array | None = None

    def over(self, example: Array) -> Array:
        """Return the mask of the environments with an ended episode that are not reset yet.

        Args:
            example: Array with one row for each environment. The mask has its kind and device.

        Returns:
            The mask. Shape: (num_envs,), bool.
        """
        over = self._over
        if over is None:
            over = np.zeros(example.shape[0], bool)
        self._over = arrays.as_kind_of(over, example)
        return self._over

    def running(self, example: Array) -> Array:
        """Return the mask of the environments with a running episode, the inverse of `over`."""
        return ~self.over(example)

    def begin(self, begun: Array) -> None:
        """Mark the environments of a mask (num_envs,) as reset: their episodes run."""
        if self.some_over:
            self._set(self.over(begun) & ~begun)

    def end(self, ended: Array) -> None:
        """Mark the episodes of a mask (num_envs,) as ended and not reset yet."""
        if self.some_over:
            earlier = cast("Array", self._over)
            self._set(arrays.as_kind_of(ended, earlier) | earlier)
        else:
            self._set(arrays.copied(ended))

    def step(self, ended: Array | None) -> None:
        """Update the mask after a step of the wrapped environment.

        Args:
            ended: Environments with an episode that ended in the step, (num_envs,). None: no
                episode ended.
        """
        if self.mode is AutoresetMode.DISABLED:
            if ended is not None:
                self.end(ended)
        elif self.mode is AutoresetMode.NEXT_STEP and (ended is not None or self.some_over):
            # The environment has reset in this step what had ended in the step before.
            self._over = None if ended is None else arrays.copied(ended)
            self.some_over = ended is not None

    def _set(self, over: Array) -> None:
        self._over = over
        self.some_over = arrays.any_row(over)

    def state_dict(self) -> Array | None:
        """Return a copy of the mask of the ended episodes, or None if no episode is over."""
        if not self.some_over:
            return None
        return arrays.copied(cast("Array", self._over))

    def check_state(self, state: Array | None) -> None:
        """Check that a saved mask of ended episodes can be loaded into this object.

        Args:
            state: Result of an earlier ``state_dict``: a boolean mask (num_envs,), or None.

        Raises:
            ValueError: The state is not a boolean mask or None, or was saved in another autoreset
                mode.
        """
        if state is None:
            return
        if "bool" not in str(getattr(state, "dtype", None)):
            raise ValueError(f"the mask of ended episodes must be boolean, got {state!r}")
        if self.mode is AutoresetMode.SAME_STEP and arrays.any_row(state):
            raise ValueError(
                f"the state is of another autoreset mode than {self.mode}: "
                "it has episodes that wait for their reset"
            )

    def load_state_dict(self, state: Array | None) -> None:
        """Return to a state from :meth:`state_dict`."""
        self.some_over = False
        if state is not None:
            self._set(arrays.copied(state))
