"""Warm start: training of a task that starts with the networks of an earlier run.

The earlier run may be of another task of the same robot. The new task may have more observations,
and the new networks may be wider.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch

from legged_envs.envs import CoreVectorEnv, unwrap
from legged_envs.envs.cfg import override
from legged_envs.mdp.observations import last_action
from legged_envs.policy.metadata import contract, observation_entries
from legged_envs.tasks import make_task_cfg, registered_id
from legged_envs.training.learner.networks import Network
from legged_envs.training.learner.ppo import PPO
from legged_envs.training.learner.symmetry import is_symmetric
from legged_envs.training.options import algorithm_name
from legged_envs.training.prepare import add_algorithm_observations
from legged_envs.training.scheme_options import SchemeCfg
from legged_envs.training.schemes.scheme import LABELS, Scheme
from legged_envs.wrappers.adapters.rsl_rl import BootstrapPPO, RslRlVecEnv

MEMORY = 200_000
"""Largest sample count of copied running statistics, if there are new observations.

A new sample changes the statistics by 1 / count. With a bounded count, the statistics of the new
observations converge soon.
"""

State = dict[str, torch.Tensor]
"""State of a network: values of its parameters and buffers, by name."""

Part = tuple[str, int, int, str]
"""Identity of an observation: name of its term, its age in steps, its size and its scale.

Observations of two tasks with the same identity have the same meaning.
"""

Columns = dict[Part, range]
"""Columns of each observation in the input of a network."""


def load_warm_start(
    checkpoint: Mapping[str, Any],
    *,
    place: Path,
    algorithm: PPO | BootstrapPPO,
    task_id: str,
    env: RslRlVecEnv,
    noise: float,
) -> None:
    """Initialize the networks of an algorithm from another run.

    Observations that both tasks have keep their weights. New observations, and new units of wider
    layers, have no influence at first. Actions and values are therefore equal to the earlier run's.
    An observation that the new task lacks is replaced by its mean. If the action scale differs,
    weights are rescaled so that the joint targets stay the same.

    Args:
        checkpoint: Checkpoint of the earlier run.
        place: Path of the checkpoint, for errors.
        algorithm: The algorithm. Its networks are changed.
        task_id: Id of the task to train.
        env: Environment of the task to train.
        noise: Factor on the earlier run's standard deviation of actions.

    Raises:
        ValueError: If the earlier run has another robot, other actions, wider networks or another
            algorithm, or has no observation in common with the task; or if its networks do not
            treat left and right equally, and those of the algorithm must.
    """
    source_id = checkpoint["task_id"]
    networks = _networks_of(checkpoint["algorithm"])
    if networks is None:
        earlier = getattr(checkpoint.get("cfg"), "algo", None)
        name = "another algorithm" if earlier is None else algorithm_name(earlier)
        raise ValueError(
            f"{str(place)!r} is a run of {name} on {source_id!r}, whose networks ppo cannot use: "
            f"give a run of ppo, or train with {name}"
        )
    source_envs = _make_source_envs(checkpoint, place)
    try:
        source = unwrap(source_envs)
        _check_same_robot(place, source_id, source, task_id, unwrap(env.env))
        for name, state in networks.items():
            model = getattr(algorithm, name)
            groups = _groups_read_by(algorithm, name)
            _load_network(model, groups, state, checkpoint, source, env, place, task_id)
            _check_symmetry(model, place)
    finally:
        source_envs.close()
    with torch.no_grad():
        algorithm.get_policy().distribution.std_param.mul_(noise)


def load_equal_networks(
    checkpoint: Mapping[str, Any],
    *,
    place: Path,
    algorithm: PPO,
    algo: SchemeCfg,
    task_id: str,
    env: RslRlVecEnv,
) -> None:
    """Initialize the networks of a training scheme from another run of the same scheme.

    The tasks may differ in everything but the robot, the observations and the action scale, because
    the networks of a scheme are copied as they are.

    Args:
        checkpoint: Checkpoint of the earlier run.
        place: Path of the checkpoint, for errors.
        algorithm: The algorithm. Its networks are changed.
        algo: Options of the scheme.
        task_id: Id of the task to train.
        env: Environment of the task to train.

    Raises:
        ValueError: If the earlier run has another scheme, robot or action scale, or other
            observations.
        RuntimeError: If a network has different sizes in the two runs.
    """
    earlier = checkpoint["cfg"].algo
    if type(earlier) is not type(algo):
        raise ValueError(
            f"{str(place)!r} is a run of {algorithm_name(earlier)}, and {algorithm_name(algo)} "
            f"starts only with networks of the same scheme: give a run of {algorithm_name(algo)}"
        )
    source_envs = _make_source_envs(checkpoint, place)
    try:
        source, target = unwrap(source_envs), unwrap(env.env)
        _check_same_robot(place, checkpoint["task_id"], source, task_id, target)
        groups = {*algorithm.actor_inputs.groups, *algorithm.critic_inputs.groups, LABELS}
        _check_same_observations(place, groups & target.group_sizes.keys(), source, target)
    finally:
        source_envs.close()
    names = ["actor", "critic"]
    for part in algorithm.parts:
        if isinstance(part, Scheme):
            # Only networks are loaded: the optimizers of scheme and policy start from scratch.
            names += [name for name, of in part.state().items() if isinstance(of, torch.nn.Module)]
    algorithm.load(checkpoint["algorithm"], dict.fromkeys(names, True))
    with torch.no_grad():
        algorithm.get_policy().distribution.std_param.mul_(algo.noise_kept)


def _check_same_observations(
    place: Path, groups: Iterable[str], source: CoreVectorEnv, target: CoreVectorEnv
) -> None:
    """Check that two environments have the same terms, history and scales in observation groups,
    and the same action scale."""
    for group in groups:
        here = list(_observation_columns(target, [group]))
        there = []
        if group in source.group_sizes:
            there = list(_observation_columns(source, [group]))
        if here != there:
            raise ValueError(
                f"the observation group {group!r} of the run {str(place)!r} has other terms, "
                "scales or another history: a training scheme starts only with networks that read "
                "the same observations"
            )
    if not torch.equal(source.actions.scale, target.actions.scale):
        raise ValueError(
            f"the run {str(place)!r} has another action scale: a training scheme starts only with "
            "networks of the same action scale"
        )


def _networks_of(state: Mapping[str, Any]) -> dict[str, State] | None:
    """Return the states of actor and critic of a run by name, None if it has other networks."""
    if "actor_state_dict" in state:
        # Names of rsl_rl, and of earlier versions of this package.
        return {"actor": state["actor_state_dict"], "critic": state["critic_state_dict"]}
    if "obs_normalizer._mean" in state.get("actor", {}):
        return {"actor": state["actor"], "critic": state["critic"]}
    return None


def _groups_read_by(algorithm: PPO | BootstrapPPO, name: str) -> Sequence[str]:
    """Return the observation groups that the actor or the critic reads."""
    if isinstance(algorithm, PPO):
        inputs = algorithm.actor_inputs if name == "actor" else algorithm.critic_inputs
        return inputs.groups
    groups: list[str] = getattr(algorithm, name).obs_groups
    return groups


def _make_source_envs(checkpoint: Mapping[str, Any], place: Path) -> Any:
    """Make one environment of the task that the run was trained on, with the observations that its
    algorithm added."""
    source_id = registered_id(checkpoint["task_id"], f"the checkpoint {str(place)!r}")
    cfg = make_task_cfg(source_id)
    if "cfg" in checkpoint:  # checkpoints of the first versions have no options
        cfg = override(cfg, checkpoint["cfg"].changes)
        add_algorithm_observations(checkpoint["cfg"].algo, cfg)
    return gym.make_vec(source_id, num_envs=1, cfg=cfg, array="torch", observations="dict")


def _check_same_robot(
    place: Path, source_id: str, source: CoreVectorEnv, task_id: str, target: CoreVectorEnv
) -> None:
    # Contracts describe joint order, gains and actions, which must be equal for equal networks.
    theirs = contract(source_id, source)
    ours = contract(task_id, target)
    for key in ("robot", "action"):
        if ours.get(key) != theirs.get(key):
            raise ValueError(
                f"{str(place)!r} is a run of {source_id!r} with {key} {theirs.get(key)}; "
                f"{task_id!r} has {ours.get(key)}, so it cannot start with the run's networks"
            )


def _check_symmetry(model: Any, place: Path) -> None:
    """Check that a network is symmetric after loading weights, if ``--symmetry networks`` made it.

    Other networks pass.

    Raises:
        ValueError: If the weights of the run at ``place`` are not symmetric.
    """
    if isinstance(model, Network) and model.images is not None and not is_symmetric(model):
        raise ValueError(
            f"the networks of {str(place)!r} do not treat left and right equally: leave out "
            "--symmetry networks, or start from a run with it"
        )


def _load_network(
    model: Any,
    groups: Sequence[str],
    state: State,
    checkpoint: Mapping[str, Any],
    source: CoreVectorEnv,
    env: RslRlVecEnv,
    place: Path,
    task_id: str,
) -> None:
    """Load the weights ``state`` of a network of the checkpoint into ``model``."""
    target = unwrap(env.env)
    columns_here = _observation_columns(target, groups)
    columns_there = _observation_columns(source, _groups_of(source, groups))
    shared = []
    for part, columns in columns_there.items():
        if part in columns_here:
            shared.append((columns_here[part], columns))
    if not shared:
        raise ValueError(
            f"{checkpoint['task_id']!r}, the task of the run {str(place)!r}, has no observation in "
            f"common with {task_id!r}"
        )
    # One observation of all environments initializes the statistics of new inputs. Those of shared
    # inputs are replaced below.
    shown = env.get_observations()
    observations = torch.cat([shown[group] for group in groups], dim=1)
    model.obs_normalizer.train().update(observations)
    # An action a gives the joint target a · scale. The same target needs a · ratio here.
    ratio = source.actions.scale / target.actions.scale
    state = _with_action_scale(
        state,
        ratio,
        _action_columns(source, columns_there),
        model.obs_normalizer.eps,
    )
    model.load_state_dict(_merged(model.state_dict(), state, shared))


def _groups_of(env: CoreVectorEnv, groups: Sequence[str]) -> list[str]:
    """Return the groups that a network sees, with ``policy`` instead of missing ones."""
    return [group if group in env.group_sizes else "policy" for group in groups]


def _observation_columns(env: CoreVectorEnv, groups: Sequence[str]) -> Columns:
    places: Columns = {}
    start = 0
    for group in groups:
        for term in observation_entries(env, group):
            size = term["size"]
            part = (term["name"], term.get("steps_ago", 0), size, str(term["scale"]))
            places[part] = range(start, start + size)
            start += size
    return places


def _action_columns(env: CoreVectorEnv, columns: Columns) -> list[range]:
    """Return the columns of ``columns`` that show last actions."""
    functions: dict[str, Any] = {}
    for group in env.cfg.observations.values():
        for name, term in group.terms.items():
            functions[name] = term.func
    return [at for part, at in columns.items() if functions.get(part[0]) is last_action]


def _with_action_scale(
    state: State, ratio: torch.Tensor, action_columns: Sequence[range], eps: float
) -> State:
    """Return the state of a network with ``ratio`` times larger actions.

    Args:
        state: State of the network.
        ratio: Factor of each action. Shape: (num_actions,).
        action_columns: Columns in which the network sees last actions.
        eps: Addition to the standard deviation by which the network divides its inputs.
    """
    state = {name: value.clone() for name, value in state.items()}
    weights = [value for name, value in state.items() if name.endswith("weight")]
    for columns in action_columns:
        at = list(columns)
        std = state["obs_normalizer._std"][:, at]
        # The normalized input changes a little, as eps does not scale with it.
        weights[0][:, at] *= (ratio * std + eps) / (ratio * (std + eps))
        state["obs_normalizer._mean"][:, at] *= ratio
        state["obs_normalizer._std"][:, at] *= ratio
        state["obs_normalizer._var"][:, at] *= ratio.square()
    if "distribution.std_param" in state:  # the actor: its output is an action
        biases = [value for name, value in state.items() if name.endswith("bias")]
        weights[-1].mul_(ratio[:, None])
        biases[-1].mul_(ratio)
        state["distribution.std_param"].mul_(ratio)
    return state


def _merged(new: State, old: State, shared: Sequence[tuple[range, range]]) -> State:
    """Return the state of a network with the values of a smaller one.

    Args:
        new: State of the network.
        old: State of the smaller one.
        shared: Columns of inputs of the network, and the columns of the smaller network with the
            same meaning.
    """
    _check_layers(new, old)
    new_columns: list[int] = []
    old_columns: list[int] = []
    for columns_here, columns_there in shared:
        new_columns.extend(columns_here)
        old_columns.extend(columns_there)
    merged = {name: value.clone() for name, value in new.items()}
    # Layers are named by their number.
    first = min(name for name in new if name.endswith("weight"))
    for name, value in old.items():
        if not value.dim():
            # The only scalar is the sample count, which all columns share: see MEMORY.
            has_new_inputs = len(old_columns) != new[first].shape[1]
            merged[name] = value.clamp(max=MEMORY) if has_new_inputs else value
            continue
        if name.startswith("obs_normalizer"):
            merged[name][:, new_columns] = value[:, old_columns]
            continue
        units = _places(len(value), len(merged[name]))
        if value.dim() == 1:
            merged[name][units] = value
            continue
        # Zero weights: units of the old network ignore new inputs and new units.
        rows = torch.zeros_like(merged[name][units])
        if name == first:
            rows[:, new_columns] = value[:, old_columns]
        else:
            rows[:, _places(value.shape[1], rows.shape[1])] = value
        merged[name][units] = rows
    return merged


def _places(old_width: int, new_width: int) -> list[int]:
    """Return the places of the units of a layer in a layer that may be wider.

    Both halves of the old layer begin where the halves of the new one do, because networks that
    treat left and right equally exchange the halves.
    """
    half = old_width // 2
    second = new_width // 2
    return [*range(half), *range(second, second + old_width - half)]


def _check_layers(new: State, old: State) -> None:
    # Weights are copied layer by layer, so another number of layers cannot be matched.
    sizes = _layer_sizes(new)
    old_sizes = _layer_sizes(old)
    fits = len(sizes) == len(old_sizes) and all(
        size >= old_size for size, old_size in zip(sizes, old_sizes, strict=True)
    )
    if not fits:
        raise ValueError(
            f"the layers must have the sizes of the run's layers, {old_sizes}, got {sizes}"
        )


def _layer_sizes(state: State) -> list[int]:
    return [len(value) for name, value in state.items() if name.endswith("bias")]
