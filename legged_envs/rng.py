"""Counter-based random numbers: one independent stream per environment and purpose. Draw ``n`` of stream ``name`` in
environment ``i`` under seed ``s`` is ``splitmix64(key(s, i, name) + n · γ)`` (Steele, Lea & Flood 2014, "Fast
splittable pseudorandom number generators"), whatever the batch size is and whoever else resets."""

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
_AHEAD = 2048  # words computed at once, for draws of small batches still to come
_NONE: tuple[int, Iterator[torch.Tensor]] = 0, iter(())


def splitmix64(x: torch.Tensor) -> torch.Tensor:
    """The SplitMix64 output function, in place on an int64 tensor."""
    # On the CPU through NumPy, which has the logical shift that torch lacks and half the overhead on small batches.
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
    return x.bitwise_xor_(torch.bitwise_right_shift(x, bits).bitwise_and_((1 << (64 - bits)) - 1))


def _hash_64(text: str) -> int:
    return int.from_bytes(
        hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True
    )


class Stream(Stateful):
    """The random numbers of one purpose; each environment has its own key and its own count of numbers drawn."""

    STATE = ("_key", "counter")

    def __init__(self, name: str, num_envs: int, device: torch.device):
        self.name = name
        self._salt = _hash_64(name)
        self.counter = torch.zeros(num_envs, 1, dtype=torch.int64, device=device)
        """How many 64-bit words each environment has drawn. Shape: (num_envs, 1)."""
        self._key = torch.zeros(num_envs, 1, dtype=torch.int64, device=device)
        self._steps: dict[tuple[int, int], torch.Tensor] = {}
        self._next = _NONE  # the size of the draws to come, and these

    def rekey(self, env_keys: torch.Tensor, env_ids: torch.Tensor) -> None:
        """Restart the streams of ``env_ids`` under new environment keys. Shape of both: (n,)."""
        self._key[env_ids] = splitmix64((env_keys ^ self._salt).contiguous()).unsqueeze(1)
        self.counter[env_ids] = 0
        self._next = _NONE

    def signed_24_bit(self, size: int, env_ids: torch.Tensor | None = None) -> torch.Tensor:
        """Uniform integers in [-2**23, 2**23), the cheapest draw. Shape: (num_envs or len(env_ids), size), int32."""
        words = (size + 1) // 2
        if env_ids is None:
            if self._next[0] != size:
                self._next = size, self._draws(size)
            self.counter.add_(words)
            return next(self._next[1])
        self._next = _NONE
        count = self.counter[env_ids]
        self.counter[env_ids] = count + words
        return self._draw(self._key[env_ids], count, 1, size)[0]

    def _draws(self, size: int) -> Iterator[torch.Tensor]:
        """The draws of ``size`` to come as long as nothing else is drawn, once the counter is past each."""
        words = (size + 1) // 2
        steps = max(1, _AHEAD // max(1, len(self._key) * words))
        while True:
            yield from self._draw(self._key, self.counter - words, steps, size).unbind()

    def _draw(self, key: torch.Tensor, count: torch.Tensor, steps: int, size: int) -> torch.Tensor:
        """Some draws after ``count`` words, one after the other. Shape: (steps, len(key), size)."""
        words = (size + 1) // 2
        if len(key) == 0:
            return torch.empty(steps, 0, size, dtype=torch.int32, device=key.device)
        if (steps, words) not in self._steps:
            numbers = torch.arange(1, steps * words + 1, device=key.device).mul_(_GOLDEN_GAMMA)
            self._steps[steps, words] = numbers.view(steps, 1, words)
        bits = splitmix64(torch.add(key, count, alpha=_GOLDEN_GAMMA) + self._steps[steps, words])
        return bits.view(torch.int32)[..., :size].bitwise_right_shift(8)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to a state from ``state_dict``: the numbers that followed it are drawn again. KeyError if a part is
        missing."""
        super().load_state_dict(state)
        self._next = _NONE

    def uniform(
        self,
        low: float | torch.Tensor,
        high: float | torch.Tensor,
        size: int,
        env_ids: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Uniform float32 from low to high, which are floats or tensors (size,). Shape: (num_envs or n, size)."""
        steps = self.signed_24_bit(size, env_ids).add_(1 << 23)
        return (steps.float() * 2.0**-24).mul_(high - low).add_(low)


class RandomStreams:
    """All random streams of a batch of environments, made by name on first use, on ``device``."""

    def __init__(self, num_envs: int, device: torch.device):
        self.num_envs, self.device = num_envs, device
        self._streams: dict[str, Stream] = {}
        self._env_keys = torch.zeros(num_envs, dtype=torch.int64, device=device)

    def stream(self, name: str) -> Stream:
        """The random numbers of the purpose ``name``, independent of those of other names; the same object each time,
        made on first use."""
        if name not in self._streams:
            with torch.inference_mode(False):  # also where it is first asked for in a step
                stream = Stream(name, self.num_envs, self.device)
                stream.rekey(
                    self._env_keys.clone(), torch.arange(self.num_envs, device=self.device)
                )
            self._streams[name] = stream
        return self._streams[name]

    def seed(self, seed: int | list[int], env_ids: torch.Tensor) -> None:
        """Restart every stream of ``env_ids`` (n,). An int keys environment i by (seed, i); a list has one seed per
        environment and keys it by (seed, 0), as environment 0 of a batch with that seed."""
        keys = [
            _hash_64(f"{seed}/{i}" if isinstance(seed, int) else f"{seed[i]}/0")
            for i in env_ids.tolist()
        ]
        self._env_keys[env_ids] = torch.tensor(keys, dtype=torch.int64, device=self.device)
        for stream in self._streams.values():
            stream.rekey(self._env_keys[env_ids], env_ids)

    def state_dict(self) -> dict[str, object]:
        """The keys of the environments and the state of each stream that was made, by name, copied."""
        return {"env_keys": self._env_keys.clone(), "streams": copy_state(self._streams)}

    def load_state_dict(self, state: dict) -> None:
        """Return to a state from :meth:`state_dict`. Streams that were made after it begin anew, as they did then;
        KeyError if a part is missing."""
        self._env_keys.copy_(state["env_keys"])
        for stream in self._streams.values():
            stream.rekey(self._env_keys.clone(), torch.arange(self.num_envs, device=self.device))
        for name, stream_state in state["streams"].items():
            self.stream(name).load_state_dict(stream_state)
