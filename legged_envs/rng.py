"""Counter-based random numbers: one independent stream per environment and purpose.

Draw ``n`` of stream ``name`` in environment ``i`` under seed ``s`` is ``splitmix64(key(s, i, name)
+ n · γ)`` (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators"). It depends
neither on the batch size nor on the resets of other environments.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from legged_envs.state import Stateful, copy_state

_GOLDEN_GAMMA = 0x9E3779B97F4A7C15 - (1 << 64)
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB
# The same numbers for NumPy: making one takes as long as an operation on a small batch.
_NUMPY = {value: np.uint64(value) for value in (27, 30, 31, _MIX_1, _MIX_2)}
# Words computed at once, for draws of small batches still to come.
_WORDS_AHEAD = 2048


def splitmix64(x: torch.Tensor) -> torch.Tensor:
    """Hash each integer of a tensor by the output function of SplitMix64, in place.

    Args:
        x: Integers to hash, of any shape, int64. They are overwritten.

    Returns:
        The same tensor ``x``.
    """
    # On the CPU through NumPy: it has the logical shift that torch lacks, and half the overhead on
    # small batches.
    if x.device.type == "cpu":
        z = x.numpy().view(np.uint64)
        z ^= z >> _NUMPY[30]
        z *= _NUMPY[_MIX_1]
        z ^= z >> _NUMPY[27]
        z *= _NUMPY[_MIX_2]
        z ^= z >> _NUMPY[31]
        return x
    _shift_right_xor(x, 30).mul_(_MIX_1 - (1 << 64))
    _shift_right_xor(x, 27).mul_(_MIX_2 - (1 << 64))
    return _shift_right_xor(x, 31)


def _shift_right_xor(x: torch.Tensor, bits: int) -> torch.Tensor:
    # torch shifts the sign in from the left; the mask removes it.
    mask = (1 << (64 - bits)) - 1
    shifted = torch.bitwise_right_shift(x, bits).bitwise_and_(mask)
    return x.bitwise_xor_(shifted)


def hash_64(text: str) -> int:
    """Return a hash of a text, the same in every process: a whole number from −2⁶³ to 2⁶³ − 1."""
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


class Stream(Stateful):
    """A random number generator for one purpose, for example one command, in all environments.

    Each environment has a key, which the seed determines, and a count of the numbers it has drawn.
    So its numbers do not depend on the other environments.

    Args:
        name: Name of the purpose. Streams of different names are independent.
        num_envs: Number of environments.
        device: Device of the drawn numbers.
    """

    STATE = ("_key", "counter")

    def __init__(self, name: str, num_envs: int, device: torch.device):
        self.name = name
        """Name of the purpose, such as ``"command/velocity"``."""
        self.counter = torch.zeros(num_envs, 1, dtype=torch.int64, device=device)
        """Number of 64-bit words that each environment has drawn. Shape: (num_envs, 1), int64."""
        self._salt = hash_64(name)
        self._key = torch.zeros(num_envs, 1, dtype=torch.int64, device=device)
        # Multiples of γ by (number of draws, words in each).
        self._offsets: dict[tuple[int, int], torch.Tensor] = {}
        # Draws that were computed ahead, and their size; 0 if there are none.
        self._size_ahead = 0
        self._draws_ahead: Iterator[torch.Tensor] = iter(())

    def rekey(self, env_keys: torch.Tensor, env_ids: torch.Tensor) -> None:
        """Restart the random numbers of some environments with new keys, as for a new seed.

        Args:
            env_keys: New keys. Shape: (n,), int64.
            env_ids: Indices of environments. Shape: (n,).
        """
        salted = (env_keys ^ self._salt).contiguous()
        self._key[env_ids] = splitmix64(salted).unsqueeze(1)
        self.counter[env_ids] = 0
        self._forget_draws_ahead()

    def _forget_draws_ahead(self) -> None:
        self._size_ahead = 0
        self._draws_ahead = iter(())

    def signed_24_bit(self, size: int, env_ids: torch.Tensor | None = None) -> torch.Tensor:
        """Draw uniform integers in [−2²³, 2²³). It is faster than :meth:`uniform`.

        Args:
            size: Number of integers for each environment.
            env_ids: Indices of environments, (n,). None: all environments.

        Returns:
            Integers. Shape: (num_envs or n, size), int32.
        """
        words = (size + 1) // 2
        if env_ids is None:
            if self._size_ahead != size:
                self._size_ahead = size
                self._draws_ahead = self._draw_ahead(size)
            self.counter.add_(words)
            return next(self._draws_ahead)
        # The counters of these environments do not change the others.
        self._forget_draws_ahead()
        count = self.counter[env_ids]
        self.counter[env_ids] = count + words
        return self._draw(self._key[env_ids], count, 1, size)[0]

    def _draw_ahead(self, size: int) -> Iterator[torch.Tensor]:
        """Yield the next draws of all environments, valid as long as nothing else is drawn.

        The counter must be past each of them when it is taken.
        """
        words = (size + 1) // 2
        words_in_draw = max(1, len(self._key) * words)
        num_draws = max(1, _WORDS_AHEAD // words_in_draw)
        while True:
            draws = self._draw(self._key, self.counter - words, num_draws, size)
            yield from draws.unbind()

    def _draw(
        self, key: torch.Tensor, count: torch.Tensor, num_draws: int, size: int
    ) -> torch.Tensor:
        """Return draws after ``count`` words, one after the other. Shape: (num_draws, len(key),
        size)."""
        words = (size + 1) // 2
        if len(key) == 0:
            return torch.empty(num_draws, 0, size, dtype=torch.int32, device=key.device)
        if (num_draws, words) not in self._offsets:
            numbers = torch.arange(1, num_draws * words + 1, device=key.device)
            offsets = numbers.mul_(_GOLDEN_GAMMA).view(num_draws, 1, words)
            self._offsets[num_draws, words] = offsets
        start = torch.add(key, count, alpha=_GOLDEN_GAMMA)
        bits = splitmix64(start + self._offsets[num_draws, words])
        # A word is two integers of 32 bit, of which float32 holds the upper 24.
        return bits.view(torch.int32)[..., :size].bitwise_right_shift(8)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from ``state_dict``. The next draws repeat the draws after the saving.

        Raises:
            KeyError: A part of the state is missing.
        """
        super().load_state_dict(state)
        self._forget_draws_ahead()

    def uniform(
        self,
        low: float | torch.Tensor,
        high: float | torch.Tensor,
        size: int,
        env_ids: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Draw uniform numbers in [low, high) for all or some environments.

        Args:
            low: Lower bound: a float, or a tensor (size,).
            high: Upper bound: a float, or a tensor (size,).
            size: Number of numbers for each environment.
            env_ids: Indices of environments, (n,). None: all environments.

        Returns:
            Numbers. Shape: (num_envs or n, size), float32.
        """
        steps = self.signed_24_bit(size, env_ids).add_(1 << 23)
        return (steps.float() * 2.0**-24).mul_(high - low).add_(low)


class RandomStreams:
    """All random number generators of a vector environment, one stream for each purpose.

    A stream is made when :meth:`stream` is called with its name for the first time.

    Args:
        num_envs: Number of environments.
        device: Device of the drawn numbers.
        first_env: Number of the first environment: environment i has the random numbers of
            ``first_env + i``.
    """

    def __init__(self, num_envs: int, device: torch.device, first_env: int = 0):
        self.num_envs = num_envs
        """Number of environments."""
        self.first_env = first_env
        """Number of the first environment."""
        self.device = device
        """Device of the numbers."""
        self._streams: dict[str, Stream] = {}
        self._env_keys = torch.zeros(num_envs, dtype=torch.int64, device=device)

    def stream(self, name: str) -> Stream:
        """Return the random number generator of a purpose. Streams of other names are independent.

        Calls with the same name return the same object.
        """
        if name not in self._streams:
            # Also where the name is first used in a step, its tensors must outlive inference mode.
            with torch.inference_mode(False):
                stream = Stream(name, self.num_envs, self.device)
                self._rekey_all(stream)
            self._streams[name] = stream
        return self._streams[name]

    def _rekey_all(self, stream: Stream) -> None:
        all_envs = torch.arange(self.num_envs, device=self.device)
        stream.rekey(self._env_keys.clone(), all_envs)

    def seed(self, seed: int | list[int], env_ids: torch.Tensor) -> None:
        """Restart all streams of some environments with new seeds.

        Args:
            seed: One int: environment i gets the numbers of (seed, first_env + i). Or a list with
                one seed for each of the ``num_envs`` environments: each gets the numbers of
                environment 0 of a batch with its seed.
            env_ids: Indices of the environments to restart. Shape: (n,).
        """
        keys = []
        for i in env_ids.tolist():
            if isinstance(seed, int):
                keys.append(hash_64(f"{seed}/{self.first_env + i}"))
            else:
                keys.append(hash_64(f"{seed[i]}/0"))
        self._env_keys[env_ids] = torch.tensor(keys, dtype=torch.int64, device=self.device)
        for stream in self._streams.values():
            stream.rekey(self._env_keys[env_ids], env_ids)

    def state_dict(self) -> dict[str, object]:
        """Return a copy of the keys of all environments and of the state of each stream."""
        return {"env_keys": self._env_keys.clone(), "streams": copy_state(self._streams)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`.

        Streams that did not exist when the state was saved start from their first number.

        Raises:
            KeyError: A part of the state is missing.
        """
        self._env_keys.copy_(state["env_keys"])
        for stream in self._streams.values():
            self._rekey_all(stream)
        for name, stream_state in state["streams"].items():
            self.stream(name).load_state_dict(stream_state)
