"""Motion-mimic PPO and distillation over :class:`~legged_envs.storage.RolloutStorageMM`.

The environment's observation is a TensorDict, float32, of

- ``policy`` (num_envs, P) and ``critic`` (num_envs, C);
- ``reference`` (num_envs, R) and ``critic_reference`` (num_envs, CR): windows of future frames, frame after frame;
- ``reference_mask`` and ``critic_reference_mask`` (num_envs, 1): 1 where there is a reference, else 0, and then the
  window's content has no influence on anything.

``extras`` of a step are those of :class:`~legged_envs.wrappers.rsl_rl.RslRlVecEnv`: ``time_outs`` (num_envs,) bool,
``costs`` (num_envs, K), and ``final_obs``, the true last observations, on steps that end episodes.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from rsl_rl.extensions import RandomNetworkDistillation
from rsl_rl.modules import MLP, EmpiricalNormalization
from rsl_rl.modules.distribution import GaussianDistribution
from tensordict import TensorDict
from torch import nn
from torch.nn import functional

from legged_envs.rl.mimic_config import (
    ACTOR_GROUPS,
    CRITIC_GROUPS,
    AmpCfg,
    LagrangeCfg,
    MimicDistillationCfg,
    MimicNetworkCfg,
    MimicPPOCfg,
)
from legged_envs.storage import MiniBatch, RolloutStorageMM, Transition
from legged_envs.storage.amp import AmpExtractors

Inputs = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""What a network looks at. Shapes: (n, P), (n, R), and (n, 1) or (n,)."""
Teacher = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""(``critic``, ``critic_reference``, ``critic_reference_mask``) → actions (num_envs, num_actions)."""
_Module = TypeVar("_Module", bound=nn.Module)


# --- networks ---------------------------------------------------------------------------------------------------------


class FrameTransformer(nn.Module):
    """Encodes a window of frames by attention among them: frames as tokens, learnt positions, mean over the frames.

    Layers are normalised before attention and MLP (Xiong et al. 2020). It is written out because PyTorch's own layers
    do not export to ONNX with a free batch size.

    Raises:
        ValueError: If the heads do not divide ``encoder_size``.
    """

    def __init__(self, reference_size: int, frames: int, cfg: MimicNetworkCfg):
        super().__init__()
        width = cfg.encoder_size
        if width % cfg.encoder_heads:
            raise ValueError(f"encoder_heads must divide encoder_size = {width}, got {cfg.encoder_heads}")
        self.frames = frames
        self.embed = nn.Linear(reference_size // frames, width)
        self.position = nn.Parameter(0.02 * torch.randn(frames, width))
        self.layers = nn.ModuleList(_AttentionLayer(width, cfg) for _ in range(cfg.encoder_layers))
        self.out = nn.Linear(width, width)

    def forward(self, window: torch.Tensor) -> torch.Tensor:
        """Shape: (n, R) → (n, encoder_size)."""
        tokens = self.embed(window.unflatten(1, (self.frames, -1))) + self.position
        for layer in self.layers:
            tokens = layer(tokens)
        return self.out(tokens.mean(dim=1))


class _AttentionLayer(nn.Module):
    def __init__(self, width: int, cfg: MimicNetworkCfg):
        super().__init__()
        self.heads = cfg.encoder_heads
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = MLP(width, width, cfg.encoder_hidden, cfg.activation)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        split = self.queries_keys_values(self.norm_attention(tokens)).unflatten(2, (3, self.heads, -1))
        queries, keys, values = split.permute(2, 0, 3, 1, 4).unbind(0)
        attended = functional.scaled_dot_product_attention(queries, keys, values)
        tokens = tokens + self.out(attended.transpose(1, 2).flatten(2))
        return tokens + self.mlp(self.norm_mlp(tokens))


class MimicNetwork(nn.Module):
    """MLP over the normalised observation and the encoded reference; a learnt code where there is no reference.

    Args:
        sizes: P and R, the sizes of observation and reference window.
        frames: Frames of a window.
        outputs: Size of the output.
        cfg: Layers.
    """

    input_names = ("observation", "reference", "mask")
    output_names = ("actions",)

    def __init__(self, sizes: tuple[int, int], frames: int, outputs: int, cfg: MimicNetworkCfg):
        super().__init__()
        self.sizes = sizes
        self.normalizer, self.reference_normalizer = map(EmpiricalNormalization, sizes)
        self.encoder: nn.Module
        if cfg.encoder == "transformer":
            self.encoder = FrameTransformer(sizes[1], frames, cfg)
        else:
            self.encoder = MLP(sizes[1], cfg.encoder_size, cfg.encoder_hidden, cfg.activation, cfg.activation)
        self.no_reference = nn.Parameter(torch.zeros(cfg.encoder_size))
        self.head = MLP(sizes[0] + cfg.encoder_size, outputs, cfg.hidden, cfg.activation)

    def forward(self, observation: torch.Tensor, reference: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Shapes: (n, P), (n, R), (n, 1) or (n,) → (n, outputs)."""
        present = mask.reshape(-1, 1) > 0.5
        # Emptied before the encoder too, so that not even a NaN under the mask reaches a gradient.
        window = self.reference_normalizer(reference).masked_fill(present.logical_not(), 0.0)
        code = torch.where(present, self.encoder(window), self.no_reference)
        return self.head(torch.cat((self.normalizer(observation), code), dim=1))

    def update_normalizers(self, observation: torch.Tensor, reference: torch.Tensor, mask: torch.Tensor) -> None:
        """Take observations, and references where there are some, into the running statistics."""
        self.normalizer.update(observation)
        present = mask.flatten() > 0.5
        if present.any():
            self.reference_normalizer.update(reference[present])

    def dummy_inputs(self) -> Inputs:
        """Inputs of one environment, as ``torch.onnx.export`` asks for them."""
        return torch.zeros(1, self.sizes[0]), torch.zeros(1, self.sizes[1]), torch.ones(1, 1)


class MimicGaussian(GaussianDistribution):
    """A Gaussian with one learnt standard deviation where there is a reference and one where there is none.

    Around a reference little has to be explored, and so little is soon; commands ask for more.
    """

    def __init__(self, num_actions: int, init_std: float, init_free_std: float):
        super().__init__(num_actions, init_std, std_type="log")
        self.log_free_std_param = nn.Parameter(torch.full((num_actions,), init_free_std).log())

    def update_where(self, mean: torch.Tensor, mask: torch.Tensor) -> None:
        """Become the distribution around ``mean`` (n, num_actions), with a reference where ``mask`` (n, 1) or (n,)."""
        log_std = torch.where(mask.reshape(-1, 1) > 0.5, self.log_std_param, self.log_free_std_param)
        self._distribution = torch.distributions.Normal(mean, log_std.exp())


class MimicPolicy(nn.Module):
    """A :class:`MimicNetwork` whose output is the mean of a :class:`MimicGaussian`."""

    def __init__(self, sizes: tuple[int, int], frames: int, num_actions: int, cfg: MimicNetworkCfg):
        super().__init__()
        self.network = MimicNetwork(sizes, frames, num_actions, cfg)
        self.distribution = MimicGaussian(num_actions, cfg.init_std, cfg.init_free_std)

    def forward(self, observation: torch.Tensor, reference: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Mean actions; ``distribution`` is then that of these observations."""
        mean = self.network(observation, reference, mask)
        self.distribution.update_where(mean, mask)
        return mean

    @property
    def output_std(self) -> torch.Tensor:
        """Standard deviation of the actions where there is a reference. Shape: (num_actions,)."""
        return self.distribution.log_std_param.detach().exp()

    def as_jit(self) -> MimicNetwork:
        """A copy that ``torch.jit.script`` takes: (observation, reference, mask) → mean actions, on the CPU."""
        return copy.deepcopy(self.network).cpu().eval()

    def as_onnx(self, verbose: bool = False) -> MimicNetwork:
        """The same for ``torch.onnx.export``, with ``dummy_inputs()`` and names. ``verbose`` is rsl_rl's, not read."""
        return self.as_jit()


# --- what both algorithms share ---------------------------------------------------------------------------------------


class _Means:
    """Means of what is counted over an iteration, read back from the device once."""

    def __init__(self) -> None:
        self._sums: dict[str, torch.Tensor] = {}
        self._counts: dict[str, int] = {}

    def add(self, **values: torch.Tensor) -> None:
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + value.detach()
            self._counts[name] = self._counts.get(name, 0) + 1

    def take(self) -> dict[str, float]:
        means = {name: total.item() / self._counts[name] for name, total in self._sums.items()}
        self._sums, self._counts = {}, {}
        return means


class _MimicAlgorithm:
    """An actor that learns from a storage, and everything that a checkpoint holds.

    Whoever derives from it makes ``storage`` and calls :meth:`_make_optimizer`.

    Args:
        env_obs: An observation of the environment.
        num_actions: Size of the action.
        frames: Frames of each reference window.
        cfg: Networks, learning rate and gradient norm.
        groups: Observation groups of the actor.
        device: Where to learn.

    Raises:
        ValueError: If a group is missing or a window does not divide into frames.
    """

    storage: RolloutStorageMM

    def __init__(
        self,
        env_obs: TensorDict,
        num_actions: int,
        frames: int,
        cfg: MimicPPOCfg | MimicDistillationCfg,
        groups: tuple[str, str, str],
        device: str | torch.device,
    ):
        self.device = torch.device(device)
        self.learning_rate = cfg.learning_rate
        """Set it together with the ``lr`` of ``optimizer.param_groups``."""
        self.iteration = 0
        """Number of updates so far."""
        self._calm = 0
        """Number of environments, the first ones, that act without noise."""
        self.groups = groups
        """What the policy sees of an observation, in the order of its arguments."""
        self._max_grad_norm = cfg.max_grad_norm
        self._sizes = {names: _sizes(env_obs, names, frames) for names in (ACTOR_GROUPS, CRITIC_GROUPS)}
        self._parts: dict[str, nn.Module | torch.optim.Optimizer] = {}
        """Everything with a state, by its name in a checkpoint."""
        self.actor = self._add("actor", MimicPolicy(self._sizes[groups], frames, num_actions, cfg))
        self._transition = Transition()
        self._means = _Means()

    def _add(self, name: str, module: _Module) -> _Module:
        """``module`` on the device and in checkpoints."""
        self._parts[name] = module.to(self.device)
        return module

    def _make_optimizer(self, *networks: nn.Module) -> None:
        """Adam over ``networks``, each of which has its gradient clipped by itself."""
        self._networks = networks
        parameters = [parameter for network in networks for parameter in network.parameters()]
        self.optimizer = torch.optim.Adam(parameters, lr=self.learning_rate, fused=True)
        self._parts["optimizer"] = self.optimizer

    def _descend(self, loss: torch.Tensor) -> None:
        self.optimizer.zero_grad()
        loss.backward()
        for network in self._networks:
            nn.utils.clip_grad_norm_(network.parameters(), self._max_grad_norm)
        self.optimizer.step()

    def _see(self, obs: TensorDict) -> torch.Tensor:
        """Put what the actor sees, and the actions drawn for it, into the transition. Returns the actions."""
        transition, seen = self._transition, _inputs(obs, self.groups)
        transition.observations, transition.reference_observations = seen[:2]
        transition.reference_observations_mask = seen[2].squeeze(1) > 0.5
        mean = self.actor(*seen)
        transition.actions = self.actor.distribution.sample()
        transition.actions[: self._calm] = mean[: self._calm]
        return transition.actions

    def _seen(self, whose: str = "") -> Inputs:
        """Observations, references and masks of the rollout, the actor's or the ``"privileged_"`` ones."""
        names = ("observations", "reference_observations", "reference_observations_mask")
        observation, reference, mask = (getattr(self.storage, whose + name).flatten(0, 1) for name in names)
        return observation, reference, mask

    def train_mode(self) -> None:
        """Let the networks learn and the normalizers count."""
        for part in self._parts.values():
            if isinstance(part, nn.Module):
                part.train()

    def get_policy(self) -> MimicPolicy:
        """The policy, with ``output_std``, ``as_jit()`` and ``as_onnx()``."""
        return self.actor

    def save(self) -> dict[str, Any]:
        """Copies of everything that learns, between two iterations; ``torch.save`` takes it as it is."""
        state = {name: part.state_dict() for name, part in self._parts.items()}
        return copy.deepcopy(state) | {"iteration": self.iteration}

    def load(self, state: Mapping[str, Any], load_cfg: Mapping[str, bool] | None = None, strict: bool = True) -> bool:
        """Return exactly to a state from :meth:`save`.

        Args:
            state: The state; it is not changed.
            load_cfg: Which of its parts to load, e.g. ``{"actor": True}``; all of them if None.
            strict: Whether each network's parameters must be exactly those of the state.

        Returns:
            Whether the iteration was loaded, so that the run goes on.

        Raises:
            ValueError: If a part is asked for that the state or this algorithm does not have.
            RuntimeError: If the parameters of a network differ.
        """
        known = {*self._parts, "iteration"}
        wanted = known if load_cfg is None else {name for name, load in load_cfg.items() if load}
        if missing := sorted(wanted - (state.keys() & known)):
            raise ValueError(
                f"load: {missing} must be in the state, which has {sorted(state)}, and in this algorithm, which has "
                f"{sorted(known)}; use the configuration that it was saved with, or choose parts with load_cfg"
            )
        for name in wanted - {"iteration"}:
            part = self._parts[name]
            if isinstance(part, nn.Module):
                part.load_state_dict(state[name], strict=strict)
            else:
                part.load_state_dict(copy.deepcopy(state[name]))  # it would go on writing to the caller's tensors
        self.learning_rate = self.optimizer.param_groups[0]["lr"]
        if "iteration" in wanted:
            self.iteration = state["iteration"]
        return "iteration" in wanted


def _inputs(obs: TensorDict, groups: tuple[str, str, str]) -> Inputs:
    observation, reference, mask = groups
    return obs[observation], obs[reference], obs[mask]


def _sizes(obs: TensorDict, groups: tuple[str, str, str], frames: int) -> tuple[int, int]:
    """Sizes of observation and reference window."""
    if missing := [group for group in groups if group not in obs]:
        raise ValueError(f"env_obs must have the groups {ACTOR_GROUPS + CRITIC_GROUPS}, {missing} are missing")
    observation, reference, _ = _inputs(obs, groups)
    size = reference.shape[1]
    if frames < 1 or size % frames:
        raise ValueError(
            f"frames must divide the {size} numbers of {groups[1]!r} into frames of one size, got {frames}"
        )
    return observation.shape[1], size


# --- PPO --------------------------------------------------------------------------------------------------------------


class Discriminator(nn.Module):
    """Tells the reference's pairs of successive states (D = 1) from the policy's (D = −1).

    Least-squares loss, gradient penalty and reward of Peng et al. 2021 ("AMP", eq. 6 to 8) as Escontrela et al. 2022.
    """

    def __init__(self, state_size: int, cfg: AmpCfg):
        super().__init__()
        self.normalizer = EmpiricalNormalization(state_size)
        self.network = MLP(2 * state_size, 1, cfg.hidden, cfg.activation)
        self.gradient_penalty = cfg.gradient_penalty

    def forward(self, previous: torch.Tensor, current: torch.Tensor) -> torch.Tensor:
        """D of pairs of states. Shapes: (n, S), (n, S) → (n,)."""
        return self.network(self._pair(previous, current)).squeeze(1)

    def _pair(self, previous: torch.Tensor, current: torch.Tensor) -> torch.Tensor:
        return torch.cat((self.normalizer(previous), self.normalizer(current)), dim=1)

    def reward(self, previous: torch.Tensor, current: torch.Tensor) -> torch.Tensor:
        """max(0, 1 − ¼ (D − 1)²). Shapes: (n, S), (n, S) → (n,)."""
        return (1.0 - 0.25 * (self(previous, current) - 1.0).square()).clamp_(min=0.0)

    def losses(
        self, policy: tuple[torch.Tensor, torch.Tensor], expert: tuple[torch.Tensor, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """``amp`` = E_expert (D − 1)² + E_policy (D + 1)² + w/2 · E_expert ‖∇D‖², and the mean D of both."""
        pair = self._pair(*expert).requires_grad_()
        of_expert, of_policy = self.network(pair), self(*policy)
        (gradient,) = torch.autograd.grad(of_expert.sum(), pair, create_graph=True)
        penalty = 0.5 * self.gradient_penalty * gradient.square().sum(dim=1).mean()
        fit = (of_expert - 1.0).square().mean() + (of_policy + 1.0).square().mean()
        return {"amp": fit + penalty, "amp_expert": of_expert.mean(), "amp_policy": of_policy.mean()}


class Lagrange(nn.Module):
    """A multiplier λ_k ≥ 0 for each cost term, and the costs in units that compare with the limits.

    Steps with and without a reference have multipliers of their own: who follows commands has other costs than who
    imitates, and both are to keep the limits.

    The storage gets (1 − γλ) · cost / limit: as a generalised advantage sums temporal differences with weights that add
    up to 1 / (1 − γλ), the cost advantages are mean excesses of cost per control step, 1 being as much as the limit.
    See :meth:`combine_` for what becomes of them.

    Args:
        names: Of the environment's terms, from which ``cfg.costs`` chooses K.
        limits: Mean cost per control step that each term may have.
        discount: γλ of the advantages.
        cfg: Rate, start and bound of the multipliers.

    Raises:
        ValueError: If a limit is not positive, their number is not that of the names, ``cfg.costs`` names none of them,
            or ``discount`` is not below 1.
    """

    multipliers: torch.Tensor
    """Without a reference, and with one. Shape: (2, K)."""
    integral: torch.Tensor
    """What of them has been summed up. Shape: (2, K)."""
    limits: torch.Tensor
    """Shape: (K,)."""

    def __init__(self, names: Sequence[str], limits: Sequence[float], discount: float, cfg: LagrangeCfg):
        super().__init__()
        if not limits or len(limits) != len(names) or min(limits) <= 0.0:
            raise ValueError(
                "lagrange needs a cost name and a positive limit for each cost term, "
                f"got cost_names = {tuple(names)} and cost_limits = {tuple(limits)}"
            )
        if discount >= 1.0:
            raise ValueError(f"lagrange needs gamma · gae_lambda below 1, got {discount}")
        if unknown := [name for name in cfg.costs if name not in names]:
            raise ValueError(f"lagrange.costs must be names of cost terms ({', '.join(names)}), got {unknown[0]!r}")
        self._columns = [k for k, name in enumerate(names) if not cfg.costs or name in cfg.costs]
        self.names = tuple(names[k] for k in self._columns)
        """Of the terms that have a multiplier."""
        limits = [limits[k] for k in self._columns]
        self.cfg = cfg
        self.scale = 1.0 - discount
        for name in ("multipliers", "integral"):
            self.register_buffer(name, torch.full((2, len(limits)), cfg.initial, dtype=torch.float32))
        self.register_buffer("limits", torch.tensor(limits, dtype=torch.float32), persistent=False)

    def scaled(self, costs: torch.Tensor) -> torch.Tensor:
        """What the storage gets of the costs of a step. Shapes: (…, all terms) → (…, K)."""
        return costs[..., self._columns] * (self.scale / self.limits)

    def ascend(self, scaled_costs: torch.Tensor, referenced: torch.Tensor) -> torch.Tensor:
        """λ_k = I_k + proportional · e_k, kept in [0, maximum], with e_k = min((mean cost_k − limit_k) / limit_k, 1).

        I_k ← I_k + rate · e_k is kept in the same bounds. The proportional part answers at once, where the integral
        alone would rise too far before the policy has followed (Stooke, Achiam, Abbeel 2020, "Responsive Safety in
        Reinforcement Learning by PID Lagrangian Methods").

        Args:
            scaled_costs: Of a rollout. Shape: (num_steps, num_envs, K).
            referenced: Where there was a reference, bool. Shape: (num_steps, num_envs).

        Returns:
            The mean costs per control step without and with a reference; NaN where there was no such step, and then the
            multipliers stay. Shape: (2, K).
        """
        fractions = torch.stack([scaled_costs[rows].mean(dim=0) for rows in (~referenced, referenced)]) / self.scale
        excess = (fractions - 1.0).clamp_(max=1.0)  # a robot that still falls would price everything else out
        known = excess.isfinite()
        integral = torch.add(self.integral, excess, alpha=self.cfg.rate).clamp_(0.0, self.cfg.maximum)
        self.integral = torch.where(known, integral, self.integral)
        multipliers = torch.add(integral, excess, alpha=self.cfg.proportional).clamp_(0.0, self.cfg.maximum)
        self.multipliers = torch.where(known, multipliers, self.multipliers)
        return fractions * self.limits

    def combine_(self, advantages: torch.Tensor, cost_advantages: torch.Tensor, referenced: torch.Tensor) -> None:
        """Write (A − Σ λ_k A^c_k) / (1 + Σ λ_k) to ``advantages`` A, which are standardised.

        Each A^c_k is centred and divided by its standard deviation, but by no less than 1 − γλ, which is one step's
        cost at the limit; those with and those without a reference by themselves. So a term near its limit weighs λ_k
        times as much as the reward, and one that hardly costs anything beside its limit stays as small as it is: its
        noise is not blown up.

        Shapes: (num_steps, num_envs, 1), (num_steps, num_envs, K), (num_steps, num_envs).
        """
        for rows, multipliers in zip((~referenced, referenced), self.multipliers, strict=True):
            costs = cost_advantages[rows]
            if not len(costs):
                continue
            std, mean = torch.std_mean(costs, dim=0, correction=0)
            excess = (costs - mean) @ (multipliers / std.clamp(min=self.scale))
            advantages[rows] = (advantages[rows] - excess.unsqueeze(1)) / (1.0 + multipliers.sum())


class MimicPPO(_MimicAlgorithm):
    """PPO (Schulman et al. 2017) for an actor that follows a reference, with the interface of rsl_rl's PPO.

    One iteration is ``steps_per_env`` times :meth:`act`, step of the environment, :meth:`process_env_step`; then
    :meth:`compute_returns` and :meth:`update`. The normalizers move once, at the end of an update. The rewards become
    task_reward_weight · r + amp_reward_weight · style + rnd weight · novelty, as far as these are switched on.

    Args:
        env_obs: An observation of the environment: see the module's documentation.
        num_actions: Size of the action.
        num_envs: Number of environments.
        frames: Frames of each reference window; critic's and actor's windows have the same number.
        cfg: What to do.
        cost_names: Names of the cost terms, for the losses.
        cost_limits: What each may cost per control step on average; needed if ``cfg.lagrange`` is on.
        teacher: Labels every visited state; needed if ``cfg.dagger`` is on.
        amp_cfg: The extractors of :class:`legged_envs.storage.amp.AmpExtractors`; needed if ``cfg.amp`` is on. They get
            what the actor sees, that is ``policy`` and (``reference``, mask), noise included, or ``critic`` and
            (``critic_reference``, mask) with ``cfg.privileged_actor``. The expert's pairs are the reference's states at
            two successive control steps of an episode, so a motion must not be exchanged within an episode.
        device: Where to learn.

    Raises:
        ValueError: If a group or an argument that ``cfg`` needs is missing, or arguments do not fit together.
    """

    def __init__(
        self,
        env_obs: TensorDict,
        num_actions: int,
        num_envs: int,
        frames: int,
        cfg: MimicPPOCfg,
        *,
        cost_names: Sequence[str] = (),
        cost_limits: Sequence[float] = (),
        teacher: Teacher | None = None,
        amp_cfg: Mapping[str, Any] | None = None,
        device: str | torch.device = "cpu",
    ):
        groups = CRITIC_GROUPS if cfg.privileged_actor else ACTOR_GROUPS
        super().__init__(env_obs, num_actions, frames, cfg, groups, device)
        self.cfg = cfg
        if cfg.dagger.coefficient and teacher is None:
            raise ValueError(f"dagger.coefficient = {cfg.dagger.coefficient} needs a teacher, got None")
        self.teacher = teacher if cfg.dagger.coefficient else None
        critic_sizes = self._sizes[CRITIC_GROUPS]
        self.critic = self._add("critic", MimicNetwork(critic_sizes, frames, 1, cfg))
        self.cost_critic: MimicNetwork | None = None
        self.lagrange: Lagrange | None = None
        if cfg.lagrange.enabled:
            if not 0.0 <= cfg.lagrange.calm_fraction < 1.0:
                raise ValueError(f"lagrange.calm_fraction must be in [0, 1), got {cfg.lagrange.calm_fraction}")
            self._calm = min(math.ceil(cfg.lagrange.calm_fraction * num_envs), num_envs - 1)
            self.lagrange = self._add(
                "lagrange", Lagrange(cost_names, cost_limits, cfg.gamma * cfg.gae_lambda, cfg.lagrange)
            )
            self.cost_critic = self._add(
                "cost_critic", MimicNetwork(critic_sizes, frames, len(self.lagrange.names), cfg)
            )
        self._critics = [critic for critic in (self.critic, self.cost_critic) if critic is not None]
        self._make_optimizer(self.actor, *self._critics)
        self.discriminator: Discriminator | None = None
        if cfg.amp.amp_reward_weight:
            self._make_discriminator(env_obs, amp_cfg)
        self.rnd: RandomNetworkDistillation | None = None
        if cfg.rnd.weight:
            self._make_rnd(env_obs)
        self.storage = RolloutStorageMM(
            "rl",
            num_envs,
            cfg.steps_per_env,
            obs_shape=self._sizes[groups][:1],
            ref_obs_shape=self._sizes[groups][1:],
            privileged_obs_shape=None if cfg.privileged_actor else critic_sizes[:1],
            privileged_ref_obs_shape=None if cfg.privileged_actor else critic_sizes[1:],
            actions_shape=[num_actions],
            apply_dagger_actions=self.teacher is not None,
            rnd_state_shape=None if self.rnd is None else [self.rnd.num_states],
            amp_cfg=None if self.discriminator is None else amp_cfg,
            device=self.device,
            num_costs=0 if self.lagrange is None else len(self.lagrange.names),
        )
        self._time_outs = torch.zeros(cfg.steps_per_env, num_envs, dtype=torch.bool, device=self.device)
        self._final_inputs: list[Inputs] = []
        """What the critics see of the episodes that timed out in this rollout, in the order of ``_time_outs``."""

    def _make_discriminator(self, env_obs: TensorDict, amp_cfg: Mapping[str, Any] | None) -> None:
        if amp_cfg is None:
            raise ValueError(
                f"amp.amp_reward_weight = {self.cfg.amp.amp_reward_weight} needs amp_cfg with 'amp_obs_extractor' and "
                "'amp_ref_obs_extractor', got None"
            )
        self._extractors = AmpExtractors(amp_cfg, with_reference=True)
        state_size = self._extractors.states(env_obs[self.groups[0]]).shape[1]
        self.discriminator = self._add("discriminator", Discriminator(state_size, self.cfg.amp))
        learning_rate = self.cfg.amp.learning_rate
        self._amp_optimizer = torch.optim.Adam(self.discriminator.parameters(), lr=learning_rate, fused=True)
        self._parts["amp_optimizer"] = self._amp_optimizer

    def _make_rnd(self, env_obs: TensorDict) -> None:
        cfg = self.cfg.rnd
        if cfg.group not in env_obs:
            raise ValueError(f"rnd.group must be one of {sorted(env_obs.keys())}, got {cfg.group!r}")
        self.rnd = RandomNetworkDistillation(
            env_obs[cfg.group].shape[1],
            {"rnd_state": [cfg.group]},
            cfg.outputs,
            cfg.hidden,
            cfg.hidden,
            self.cfg.activation,
            state_normalization=True,
            weight=cfg.weight,
            learning_rate=cfg.learning_rate,
            device=str(self.device),
        )
        self._parts |= {"rnd": self.rnd, "rnd_optimizer": self.rnd.optimizer}

    # --- rollout ------------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def act(self, obs: TensorDict) -> torch.Tensor:
        """Draw actions and keep what belongs to them. Returns the actions, (num_envs, num_actions)."""
        transition, critic_inputs = self._transition, _inputs(obs, CRITIC_GROUPS)
        actions = self._see(obs)
        transition.critic_observations, transition.critic_reference_observations = critic_inputs[:2]
        transition.critic_reference_observations_mask = critic_inputs[2].squeeze(1) > 0.5
        transition.action_mean, transition.action_sigma = self.actor.distribution.params
        transition.actions_log_prob = self.actor.distribution.log_prob(actions)
        transition.values = self.critic(*critic_inputs)
        if self.cost_critic is not None:
            transition.cost_values = self.cost_critic(*critic_inputs)
        if self.teacher is not None:
            # Once the loss has faded out nobody reads the label, which the storage asks for all the same.
            transition.dagger_actions = self.teacher(*critic_inputs) if self.dagger_coefficient else actions
        return actions

    @torch.no_grad()
    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: Mapping[str, Any]
    ) -> None:
        """Keep what the step of the environment led to.

        Args:
            obs: The observation after it, of the next episode where one ended.
            rewards: Shape: (num_envs,).
            dones: Where an episode ended, bool. Shape: (num_envs,).
            extras: ``time_outs``, ``costs`` with constraints, and ``final_obs`` if an episode ended.

        Raises:
            ValueError: If ``final_obs`` or ``costs`` is missing.
        """
        transition, time_outs = self._transition, extras["time_outs"]
        following = extras.get("final_obs")
        if following is None:
            if dones.any():
                raise ValueError("extras must have final_obs, the true last observations, when episodes end")
            following = obs
        if self.storage.step == 0:
            self._final_inputs = []
        self._time_outs[self.storage.step] = time_outs
        if time_outs.any():
            observation, reference, mask = (part[time_outs] for part in _inputs(following, CRITIC_GROUPS))
            self._final_inputs.append((observation, reference, mask))
        transition.rewards, transition.dones = self._total_rewards(rewards, following), dones
        if self.lagrange is not None:
            if extras.get("costs") is None:
                raise ValueError("extras must have costs, (num_envs, K), as lagrange.enabled is on; got none")
            transition.cost_rewards = self.lagrange.scaled(extras["costs"])
        self.storage.add_transitions(transition)
        transition.clear()

    def _total_rewards(self, rewards: torch.Tensor, following: TensorDict) -> torch.Tensor:
        """The environment's rewards and those of AMP and RND for getting to ``following``, before any reset."""
        if self.discriminator is not None:
            assert self._transition.observations is not None
            states = self._extractors.states
            previous, current = states(self._transition.observations), states(following[self.groups[0]])
            style = self.discriminator.reward(previous, current)
            self._means.add(style_reward=style.mean())
            rewards = self.cfg.amp.task_reward_weight * rewards + self.cfg.amp.amp_reward_weight * style
        if self.rnd is not None:
            self._transition.rnd_state = following[self.cfg.rnd.group]
            novelty = self.rnd.get_intrinsic_reward(following)
            self._means.add(rnd_reward=novelty.mean())
            rewards = rewards + novelty
        return rewards

    @torch.no_grad()
    def compute_returns(self, obs: TensorDict) -> None:
        """Write returns and advantages; ``obs`` is the observation after the last step.

        An episode that timed out goes on with the value of its true last observation.
        """
        inputs = [torch.cat(parts) for parts in zip(_inputs(obs, CRITIC_GROUPS), *self._final_inputs, strict=True)]
        arguments: dict[str, Any] = {}
        for kind, critic in zip(("", "cost_"), self._critics, strict=False):
            last, finals = critic(*inputs).tensor_split([self.storage.num_envs])
            final_values = last.new_zeros(*self._time_outs.shape, last.shape[1])
            final_values[self._time_outs] = finals
            arguments |= {f"last_{kind}values": last, f"final_{kind}values": final_values}
        self.storage.compute_returns(
            gamma=self.cfg.gamma, lam=self.cfg.gae_lambda, time_outs=self._time_outs, **arguments
        )

    # --- learning -----------------------------------------------------------------------------------------------------

    @property
    def dagger_coefficient(self) -> float:
        """Weight of the DAgger loss in this iteration."""
        cfg = self.cfg.dagger
        faded = self.iteration / cfg.decay_iterations if cfg.decay_iterations else 0.0
        return cfg.coefficient * max(0.0, 1.0 - faded)

    def update(self) -> dict[str, float]:
        """Learn from the rollout. Returns the means of losses and of what else tells how learning goes.

        With constraints these are ``cost/<name>``, the mean cost per control step, and ``multiplier/<name>`` as well,
        and the same with ``free_`` before it for the steps without a reference.
        """
        constraints = self._constrain()
        for batch in self.storage.mini_batches(self.cfg.mini_batches, self.cfg.epochs):
            self._descend(self._loss(batch))
            if self.discriminator is not None:
                self._train_discriminator(batch)
            if self.rnd is not None:
                loss = self.rnd.compute_loss({self.cfg.rnd.group: batch.rnd_state})
                _minimise(self.rnd.optimizer, loss)
                self._means.add(rnd=loss)
        self._update_normalizers()
        self.storage.clear()
        self.iteration += 1
        return self._means.take() | constraints

    def _constrain(self) -> dict[str, float]:
        """Move the multipliers, put the costs into the advantages. Returns mean costs and multipliers."""
        lagrange, storage = self.lagrange, self.storage
        if lagrange is None:
            return {}
        referenced = storage.reference_observations_mask
        assert storage.cost_rewards is not None and storage.cost_advantages is not None and referenced is not None
        measured = slice(self._calm or None)
        costs = lagrange.ascend(storage.cost_rewards[:, measured], referenced[:, measured])
        lagrange.combine_(storage.advantages, storage.cost_advantages, referenced)
        storage.advantages[:, : self._calm] = 0.0  # actions without noise say nothing about which noise is good
        report: dict[str, float] = {}
        for kind, values in (("cost", costs), ("multiplier", lagrange.multipliers)):
            for prefix, row in zip(("free_", ""), values.tolist(), strict=True):
                named = zip(lagrange.names, row, strict=True)
                report |= {f"{prefix}{kind}/{name}": value for name, value in named if not math.isnan(value)}
        return report

    def _loss(self, batch: MiniBatch) -> torch.Tensor:
        """Clipped surrogate, squared errors of the critics, entropy, and DAgger's squared error."""
        cfg, distribution = self.cfg, self.actor.distribution
        mean = self.actor(batch.observations, batch.reference_observations, batch.reference_observations_mask)
        with torch.no_grad():
            kl = distribution.kl_divergence((batch.action_mean, batch.action_sigma), distribution.params).mean()
        if cfg.schedule == "adaptive":
            self._adapt_learning_rate(kl.item())
        advantages = batch.advantages.squeeze(1)
        ratio = (distribution.log_prob(batch.actions) - batch.actions_log_prob.squeeze(1)).exp()
        clipped = ratio.clamp(1.0 - cfg.clip, 1.0 + cfg.clip)
        surrogate = -torch.min(advantages * ratio, advantages * clipped).mean()
        entropy = distribution.entropy.mean()
        critic_inputs = (
            batch.critic_observations,
            batch.critic_reference_observations,
            batch.critic_reference_observations_mask,
        )
        value = functional.mse_loss(self.critic(*critic_inputs), batch.returns)
        loss = surrogate + cfg.value_loss * value - cfg.entropy * entropy
        self._means.add(surrogate=surrogate, value=value, entropy=entropy, kl=kl)
        if self.cost_critic is not None:
            assert batch.cost_returns is not None
            cost_value = functional.mse_loss(self.cost_critic(*critic_inputs), batch.cost_returns)
            loss = loss + cfg.value_loss * cost_value
            self._means.add(cost_value=cost_value)
        if self.dagger_coefficient and batch.dagger_actions is not None:
            dagger = functional.mse_loss(mean, batch.dagger_actions)
            loss = loss + self.dagger_coefficient * dagger
            self._means.add(dagger=dagger)
        return loss

    def _adapt_learning_rate(self, kl: float) -> None:
        """As rsl_rl: from 1e-5 to 1e-2."""
        if kl > 2.0 * self.cfg.desired_kl:
            self.learning_rate = max(1e-5, self.learning_rate / 1.5)
        elif 0.0 < kl < 0.5 * self.cfg.desired_kl:
            self.learning_rate = min(1e-2, self.learning_rate * 1.5)
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate

    def _train_discriminator(self, batch: MiniBatch) -> None:
        """One step on the pairs (previous state, state) within an episode, the expert's where there is a reference."""
        assert self.discriminator is not None and batch.has_previous is not None
        assert batch.reference_observations is not None and batch.reference_observations_mask is not None
        assert batch.obs_prev_state is not None and batch.ref_obs_prev_state is not None
        assert batch.ref_obs_prev_mask is not None
        states = self._extractors.states(batch.observations)
        expert_states, available = self._extractors.reference_states(
            batch.reference_observations, batch.reference_observations_mask
        )
        ours, theirs = batch.has_previous, available & batch.ref_obs_prev_mask
        if not (ours.any() and theirs.any()):
            return
        losses = self.discriminator.losses(
            (batch.obs_prev_state[ours], states[ours]), (batch.ref_obs_prev_state[theirs], expert_states[theirs])
        )
        _minimise(self._amp_optimizer, losses["amp"])
        self._means.add(**losses)

    @torch.no_grad()
    def _update_normalizers(self) -> None:
        """Take the rollout into the running statistics of every network."""
        seen = self._seen()
        self.actor.network.update_normalizers(*seen)
        for critic in self._critics:
            critic.update_normalizers(*(seen if self.cfg.privileged_actor else self._seen("privileged_")))
        if self.discriminator is not None:
            expert_states, available = self._extractors.reference_states(seen[1], seen[2])
            states = torch.cat((self._extractors.states(seen[0]), expert_states[available]))
            self.discriminator.normalizer.update(states)
        if self.rnd is not None:
            assert self.storage.rnd_state is not None
            self.rnd.update_normalization({self.cfg.rnd.group: self.storage.rnd_state.flatten(0, 1)})


def _minimise(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


# --- distillation -----------------------------------------------------------------------------------------------------


class MimicDistillation(_MimicAlgorithm):
    """A student that sees ``policy`` and ``reference`` acts, a teacher labels, and the student learns its actions.

    DAgger (Ross et al. 2011) without mixing: every rollout is the student's own. The interface is that of
    :class:`MimicPPO`.

    Args:
        env_obs: An observation of the environment: see the module's documentation.
        num_actions: Size of the action.
        num_envs: Number of environments.
        frames: Frames of each reference window.
        cfg: What to do.
        teacher: Labels every visited state.
        device: Where to learn.

    Raises:
        ValueError: If a group is missing or a window does not divide into frames.
    """

    def __init__(
        self,
        env_obs: TensorDict,
        num_actions: int,
        num_envs: int,
        frames: int,
        cfg: MimicDistillationCfg,
        *,
        teacher: Teacher,
        device: str | torch.device = "cpu",
    ):
        super().__init__(env_obs, num_actions, frames, cfg, ACTOR_GROUPS, device)
        self.cfg = cfg
        self.teacher = teacher
        self._make_optimizer(self.actor)
        self.storage = RolloutStorageMM(
            "distillation",
            num_envs,
            cfg.steps_per_env,
            obs_shape=self._sizes[ACTOR_GROUPS][:1],
            ref_obs_shape=self._sizes[ACTOR_GROUPS][1:],
            privileged_obs_shape=None,
            privileged_ref_obs_shape=None,
            actions_shape=(num_actions,),
            device=self.device,
        )

    @torch.no_grad()
    def act(self, obs: TensorDict) -> torch.Tensor:
        """Draw the student's actions and ask the teacher. Returns the student's, (num_envs, num_actions)."""
        actions = self._see(obs)
        self._transition.privileged_actions = self.teacher(*_inputs(obs, CRITIC_GROUPS))
        return actions

    @torch.no_grad()
    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: Mapping[str, Any]
    ) -> None:
        """Keep the step; only ``rewards`` and ``dones``, (num_envs,) both, are looked at."""
        self._transition.rewards, self._transition.dones = rewards, dones
        self.storage.add_transitions(self._transition)
        self._transition.clear()

    def compute_returns(self, obs: TensorDict) -> None:
        """Nothing: there are no returns in distillation."""

    def update(self) -> dict[str, float]:
        """Learn the labels of the rollout. Returns the mean squared error, ``distillation``."""
        for _ in range(self.cfg.epochs):
            for observation, _, reference, _, _, labels, _ in self.storage.generator():
                loss = functional.mse_loss(self.actor(observation, *reference), labels)
                self._descend(loss)
                self._means.add(distillation=loss)
        self.actor.network.update_normalizers(*self._seen())
        self.storage.clear()
        self.iteration += 1
        return self._means.take()
