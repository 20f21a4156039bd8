"""Policies as files, in safetensors and ONNX format, each with its contract inside."""

import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from legged_envs.envs import CoreVectorEnv
from legged_envs.envs.cfg import TaskCfg
from legged_envs.policy.comparison import find_difference
from legged_envs.policy.contract_checks import check_contract
from legged_envs.policy.memory import (
    MEMORY_KEY,
    RememberingNetwork,
    clear_memory,
    remembering,
)
from legged_envs.policy.metadata import Contract, Inputs, ObservationEntry, contract, policy_inputs
from legged_envs.policy.network import Network, describe
from legged_envs.policy.network_size import check_network_size
from legged_envs.policy.shipped import SHIPPED as SHIPPED
from legged_envs.policy.shipped import SHIPPED_FOLDER
from legged_envs.policy.shipped import shipped_file as shipped_file
from legged_envs.policy.snapshots import find_snapshots
from legged_envs.policy.weights_file import (
    check_file_size,
    read_header,
    serialize,
    write_whole,
)
from legged_envs.tables import TableRepr, shorten
from legged_envs.tasks.kind import kind_of

POLICY_FILE = "policy.safetensors"
"""Name of the policy file in a run folder."""

CONTRACT_KEY = "contract"
"""Name of the text entry of a policy file that holds the contract, as JSON."""

NETWORK_KEY = "network"
"""Name of the text entry of a policy file that holds the description of the network, as JSON."""


READ_ERRORS = (
    SafetensorError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RuntimeError,
)
"""Errors for a file that is not a policy, or has entries that do not fit each other."""


class Policy(TableRepr):
    """A deterministic policy: the observations of its groups, each (n, size), → action (n, size).

    Args:
        network: Function of one tensor per observation group.
        contract: What its inputs and outputs mean.
    """

    def __init__(self, network: Callable[..., torch.Tensor], contract: Contract):
        self.network = network
        """Function of one tensor per observation group, with gradients if its weights have them."""
        self.contract = contract
        """Meaning of the inputs and outputs; see `legged_envs.policy.metadata`."""
        self.inputs: Inputs = policy_inputs(contract)
        """Observation groups that the policy reads, in the order of its inputs, and their terms."""
        self.task_id: str = contract.get("task_id", "")
        """Registered id of the task that the policy was trained on. Empty if not recorded."""
        self.changes: dict[str, Any] = dict(contract.get("changes", {}))
        """Changes to the registered task in training: path → value. Empty if none is recorded."""
        self.clips: tuple[str, ...] = tuple(contract.get("clips", ()))
        """Names of the motion clips that the policy imitates. Empty if none is recorded."""

    def _describe(self) -> str:
        return ", ".join([self.task_id, *self.inputs, *self.clips])

    def __call__(self, *observations: torch.Tensor) -> torch.Tensor:
        """Return the action for the observations of each group."""
        with torch.inference_mode():
            return self.network(*observations)

    def reset(self, ended: torch.Tensor | None = None) -> None:
        """Clear the memory of robots at the start of their episodes.

        Args:
            ended: True for these robots. None: all. Shape: (num_envs,), bool.
        """
        clear_memory(self.network, ended)

    def check_task(self, task_id: str, cfg: TaskCfg) -> None:
        """Check that this policy and a task belong together, without making the environment.

        Args:
            task_id: Id of the task, for errors.
            cfg: Configuration of the task.

        Raises:
            ValueError: If the task is for another robot, or only one of task and policy imitates
                motions.
        """
        robot = self.contract.get("robot")
        if robot != cfg.robot.name:
            raise ValueError(
                f"the policy of {self.task_id!r} was trained with robot = {robot}, "
                f"{task_id!r} has {cfg.robot.name}"
            )
        imitates = "reference" in self.contract
        if imitates and not kind_of(cfg).imitates_motions:
            raise ValueError(
                f"the policy belongs to {self.task_id!r}, which imitates motions, but {task_id!r} "
                "follows velocity commands"
            )
        if kind_of(cfg).imitates_motions and not imitates:
            raise ValueError(
                f"the policy belongs to {self.task_id!r}, which follows velocity commands, but "
                f"{task_id!r} imitates motions"
            )

    def check(self, env: CoreVectorEnv, groups: Sequence[str] | None = None) -> None:
        """Check that this policy can act in an environment.

        Args:
            env: Environment of the task.
            groups: Observation groups that the policy must take; None for any.

        Raises:
            ValueError: If the policy is not for this environment. The error names the first entry
                that differs.
        """
        if groups is not None and tuple(self.inputs) != tuple(groups):
            raise ValueError(
                f"the policy must take {', '.join(groups)}, "
                f"but the policy of {self.task_id!r} takes {', '.join(self.inputs)}"
            )
        taken = tuple(self.inputs)
        if not set(taken) <= set(env.group_sizes):
            # The environment lacks a group. Compare with the group that every task has.
            taken = ("policy",)
        present = contract(self.task_id, env, taken)
        difference = find_difference(self.contract, present)
        if difference is not None:
            raise ValueError(
                f"the policy of {self.task_id!r} was trained with "
                f"{difference.entry} = {difference.trained}, "
                f"this environment has {difference.present}; "
                "if it was trained with --changes, this environment needs the same"
            )


# --- writing --------------------------------------------------------------------------------------


def save_policy(path: Path, module: torch.nn.Module, contract: Contract) -> None:
    """Write a policy as safetensors, with its network and its contract as metadata.

    Args:
        path: File to write.
        module: Network of tensor operations without branches.
        contract: What its inputs and outputs mean.

    Raises:
        ValueError: If the network cannot be described; see `describe`.
    """
    # Tracing leaves marks on a module: the caller's stays as it is.
    description, weights = describe(copy.deepcopy(module).cpu().eval())
    metadata = {CONTRACT_KEY: json.dumps(contract), NETWORK_KEY: json.dumps(description)}
    write_whole(path, serialize(weights, metadata))


def halve_weights(path: Path) -> None:
    """Round the weights in a policy file to 16-bit floats.

    They are read as 32-bit floats. Everything else in the file stays as it is.
    """
    weights = {}
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
        for name in file.keys():  # noqa: SIM118
            weight = file.get_tensor(name)
            weights[name] = weight.half() if weight.is_floating_point() else weight
    write_whole(path, serialize(weights, metadata))


class _PolicyModule(torch.nn.Module):
    """A policy in the form that `torch.onnx` takes."""

    def __init__(self, policy: Policy):
        super().__init__()
        network = policy.network
        # The memory goes in and out of the model: whoever runs it keeps it.
        self._network = network.network if isinstance(network, RememberingNetwork) else network

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self._network(*inputs)


def save_onnx(path: Path, policy: torch.nn.Module | Policy, contract: Contract) -> None:
    """Write a policy as ONNX, with the entries of its contract as metadata of the model.

    Args:
        path: File to write.
        policy: Network, or a policy that was read from a file.
        contract: What its inputs and outputs mean. Lists and dicts become JSON. Each part of the
            memory is an input by its name, and an output by its name and ``_next``.
    """
    import onnx

    module = _PolicyModule(policy) if isinstance(policy, Policy) else policy
    zeros = []
    for terms in contract["inputs"].values():
        # The exporter traces the network with an example of each input.
        zeros.append(torch.zeros(1, _vector_size(terms)))
    memory: dict[str, int] = contract.get(MEMORY_KEY, {})
    for size in memory.values():
        zeros.append(torch.zeros(1, size))
    # Control loops know the first group by the name "obs".
    input_names = ["obs", *list(contract["inputs"])[1:], *memory]
    output_names = ["actions", *(f"{name}_next" for name in memory)]
    with TemporaryDirectory() as folder:
        exported = str(Path(folder, path.name))
        torch.onnx.export(
            module.cpu().eval(),
            tuple(zeros),
            exported,
            input_names=input_names,
            output_names=output_names,
            opset_version=18,
            dynamo=False,
            dynamic_axes={name: {0: "n"} for name in (*input_names, *output_names)},
        )
        model = onnx.load(exported)
    texts = {}
    for key, value in contract.items():
        texts[key] = value if isinstance(value, str) else json.dumps(value)
    onnx.helper.set_model_props(model, texts)
    write_whole(path, model.SerializeToString())


def _vector_size(terms: Sequence[ObservationEntry]) -> int:
    return sum(term["size"] for term in terms)


# --- reading --------------------------------------------------------------------------------------


def policy_file(path: Path | str) -> Path:
    """Return the policy file of a run folder, or `path` itself if it is not a folder.

    While a run trains for the first time, that is its newest policy of a single update.
    """
    path = Path(path)
    if not path.is_dir():
        return path
    file = path / POLICY_FILE
    snapshots = [] if file.is_file() else list(find_snapshots(path).values())
    return snapshots[-1] if snapshots else file


def load_policy(path: Path | str, device: str = "cpu") -> Policy:
    """Read a policy. No code in the file is run.

    Args:
        path: Policy file, or run folder.
        device: Device of the weights.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is not a policy.
    """
    path = policy_file(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no policy file {str(path)!r}")
    try:
        return _read_policy(path, device)
    except READ_ERRORS as error:
        reason = shorten(str(error).split("\n")[0], 300)
        raise ValueError(
            f"{str(path)!r} is not a policy as legged-envs train writes it ({POLICY_FILE}): "
            f"{reason}"
        ) from error


def _read_policy(path: Path, device: str) -> Policy:
    check_file_size(path)
    read_header(path)
    weights = {}
    with safe_open(path, "pt", device=device) as file:
        metadata = file.metadata() or {}
        for name in file.keys():  # noqa: SIM118
            weights[name] = _own_copy(file.get_tensor(name))
    missing = {CONTRACT_KEY, NETWORK_KEY} - metadata.keys()
    if missing:
        raise ValueError(f"it has no {' and no '.join(sorted(missing))}")
    network = Network(json.loads(metadata[NETWORK_KEY]), weights)
    entries = json.loads(metadata[CONTRACT_KEY])
    check_contract(entries)
    memory = entries.get(MEMORY_KEY, {})
    policy = Policy(remembering(network, memory), entries)
    sizes = [_vector_size(terms) for terms in policy.inputs.values()]
    sizes.extend(memory.values())
    # A contract without inputs fits no environment, so that nothing can act by the policy.
    if any(sizes):
        # The files of this package need no bounds. PyTorch takes a second to start this check.
        if path.parent != SHIPPED_FOLDER:
            check_network_size(network, sizes)
        _check_actions(policy, device)
    return policy


def _own_copy(weight: torch.Tensor) -> torch.Tensor:
    """Return a float32 copy, in memory that torch aligned.

    The last digits of a matrix product depend on the alignment, and a file does not keep it.
    """
    if weight.is_floating_point() and weight.dtype != torch.float32:
        return weight.float()
    return weight.clone()


def _check_actions(policy: Policy, device: str) -> None:
    """Raise a ValueError if the weights of a policy do not fit its contract."""
    zeros = []
    for terms in policy.inputs.values():
        zeros.append(torch.zeros(2, _vector_size(terms), device=device))
    actions = policy(*zeros)
    policy.reset()
    if not isinstance(actions, torch.Tensor):
        raise ValueError(
            f"its network must return finite actions for zeros, got {type(actions).__name__}"
        )
    # Contracts of earlier versions lack the number of actions.
    size = policy.contract.get("action_size", actions.shape[-1] if actions.dim() else 0)
    # Two rows: a network that mixes up rows and columns does not pass.
    expected = (2, size)
    if actions.shape != expected or not actions.isfinite().all():
        raise ValueError(
            f"its network must return finite actions of shape {expected} for zeros, got "
            f"{tuple(actions.shape)}"
        )


def load_shipped_policy(task_id: str) -> Policy:
    """Read the pretrained policy of the package for a task.

    Raises:
        ValueError: If there is no pretrained policy for the task.
    """
    return load_policy(shipped_file(task_id))
