"""Counter-based random numbers: one independent stream per environment and purpose. Draw ``n`` of stream ``name`` in
environment ``i`` under seed ``s`` is ``splitmix64(key(s, i, name) + n · γ)`` (Steele, Lea & Flood 2014, "Fast
splittable pseudorandom number generators"), whatever the batch size is and whoever else resets."""

import hashlib

import numpy as np
import torch

from legged_envs.state import Stateful, copied

_GOLDEN_GAMMA = 0x9E3779B97F4A7C15 - (1 << 64)
_MIX_1, _MIX_2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_NUMPY = {value: np.uint64(value) for value in (27, 30, 31, _MIX_1, _MIX_2)}
"""The same numbers as NumPy takes them: making one costs as much as an operation on a small batch."""


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
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


class Stream(Stateful):
    """The random numbers of one purpose; each environment has its own key and its own count of numbers drawn."""

    STATE = ("_key", "counter")

    def __init__(self, name: str, num_envs: int, device: torch.device):
        self.name = name
        self._salt = _hash_64(name)
        self.counter = torch.zeros(num_envs, 1, dtype=torch.int64, device=device)
        """How many 64-bit words each environment has drawn. Shape: (num_envs, 1)."""
        self._key = torch.zeros(num_envs, 1, dtype=torch.int64, device=device)
        self._steps: dict[int, torch.Tensor] = {}

    def rekey(self, env_keys: torch.Tensor, env_ids: torch.Tensor) -> None:
        """Restart the streams of ``env_ids`` under new environment keys. Shape of both: (n,)."""
        self._key[env_ids] = splitmix64((env_keys ^ self._salt).contiguous()).unsqueeze(1)
        self.counter[env_ids] = 0

    def signed_24_bit(self, size: int, env_ids: torch.Tensor | None = None) -> torch.Tensor:
        """Uniform integers in [-2**23, 2**23), the cheapest draw. Shape: (num_envs or len(env_ids), size), int32."""
        words = (size + 1) // 2
        if words not in self._steps:
            self._steps[words] = torch.arange(1, words + 1, device=self._key.device).mul_(_GOLDEN_GAMMA)
        if env_ids is None:
            start = torch.add(self._key, self.counter, alpha=_GOLDEN_GAMMA)
            self.counter.add_(words)
        else:
            count = self.counter[env_ids]
            start = torch.add(self._key[env_ids], count, alpha=_GOLDEN_GAMMA)
            self.counter[env_ids] = count + words
        if start.shape[0] == 0:
            return torch.empty(0, size, dtype=torch.int32, device=self._key.device)
        bits = splitmix64(start + self._steps[words]).view(torch.int32)
        return bits[:, :size].bitwise_right_shift(8)

    def uniform(
        self, low: float | torch.Tensor, high: float | torch.Tensor, size: int, env_ids: torch.Tensor | None = None
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
        if name not in self._streams:
            with torch.inference_mode(False):  # also where it is first asked for in a step
                stream = Stream(name, self.num_envs, self.device)
                stream.rekey(self._env_keys.clone(), torch.arange(self.num_envs, device=self.device))
            self._streams[name] = stream
        return self._streams[name]

    def seed(self, seed: int | list[int], env_ids: torch.Tensor) -> None:
        """Restart every stream of ``env_ids`` (n,). An int keys environment i by (seed, i); a list has one seed per
        environment and keys it by (seed, 0), as environment 0 of a batch with that seed."""
        keys = [_hash_64(f"{seed}/{i}" if isinstance(seed, int) else f"{seed[i]}/0") for i in env_ids.tolist()]
        self._env_keys[env_ids] = torch.tensor(keys, dtype=torch.int64, device=self.device)
        for stream in self._streams.values():
            stream.rekey(self._env_keys[env_ids], env_ids)

    def state_dict(self) -> dict[str, object]:
        return {"env_keys": self._env_keys.clone(), "streams": copied(self._streams)}

    def load_state_dict(self, state: dict) -> None:
        self._env_keys.copy_(state["env_keys"])
        for name, stream_state in state["streams"].items():
            self.stream(name).load_state_dict(stream_state)
