"""Model card of a policy: the page that belongs to a published policy."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from legged_envs.envs.cfg import TaskCfg
from legged_envs.policy.header import read_evaluation
from legged_envs.policy.metadata import Contract
from legged_envs.policy.training_facts import complete_contract

CARD_FILE = "README.md"
"""File name of a model card, as model hubs show it."""

LICENCE = "bsd-3-clause"
"""Licence of the pretrained policies of this package."""

UNKNOWN_LICENCE = "unknown"
"""Licence of other policies: their authors must choose it."""

RESULTS = {
    "lin_vel_error": "error of the velocity, m/s",
    "ang_vel_error": "error of the turning velocity, rad/s",
    "falls": "share of episodes with a fall",
    "reward": "reward per second",
}
"""Numbers of an evaluation → what they are."""

UNITS = {
    "lin_vel_x": "m/s ahead",
    "lin_vel_y": "m/s to the left",
    "ang_vel_z": "rad/s",
    "friction": "coefficient of friction",
    "payload": "kg added to the base",
    "com_shift": "m, shift of the centre of mass",
    "gain_factor": "factor of the gains",
    "action_delay": "control steps of delay",
    "base_height": "m above the ground at a start",
    "roll_pitch": "rad at a start",
    "base_lin_vel": "m/s at a start",
    "base_ang_vel": "rad/s at a start",
    "joint_offset": "rad from the default pose at a start",
    "joint_vel": "rad/s of the joints at a start",
}
"""Ranges of a training → their units."""


def write_card(
    path: Path, contract: Contract, cfg: TaskCfg, weights: Path, is_shipped: bool
) -> None:
    """Write the model card of a policy, with the arguments of :func:`make_card`.

    Args:
        path: File to write.
        contract: Contract of the policy.
        cfg: Its task.
        weights: Policy file, which may hold the results of an evaluation.
        is_shipped: True for a pretrained policy of this package.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(make_card(contract, cfg, weights, is_shipped), encoding="utf-8")


def make_card(contract: Contract, cfg: TaskCfg, weights: Path, is_shipped: bool) -> str:
    """Return the model card of a policy, in Markdown with front matter.

    Args:
        contract: Contract of the policy.
        cfg: Its task.
        weights: Policy file, which may hold the results of an evaluation.
        is_shipped: True if the policy ships with this package.
    """
    licence = LICENCE if is_shipped else UNKNOWN_LICENCE
    completed = complete_contract(contract, cfg)
    evaluation = read_evaluation(weights)
    parts = [
        _front_matter(completed, licence),
        _introduction(completed),
        _policy_section(completed),
        _training_section(completed["training"]),
        _evaluation_section(evaluation),
        _cost_section(cfg, evaluation),
        _licence_section(is_shipped),
    ]
    return "\n".join(parts)


def _front_matter(contract: Contract, licence: str) -> str:
    tags = ["reinforcement-learning", "robotics", "legged-robots", "mujoco", contract["robot"]]
    lines = ["---", "library_name: legged-envs", f"license: {licence}", "tags:"]
    lines += [f"- {tag}" for tag in tags]
    return "\n".join([*lines, "---", ""])


def _introduction(contract: Contract) -> str:
    return (
        f"# {contract['robot']}: policy of {contract['task_id']}\n\n"
        f"A policy of the robot `{contract['robot']}`, trained on the task "
        f"`{contract['task_id']}` of legged-envs. The metadata of its files describes its "
        "inputs and outputs.\n"
    )


def _policy_section(contract: Contract) -> str:
    terms = []
    for term in contract["observation"]:
        if term["name"] not in terms:
            terms.append(term["name"])
    rows = [
        ("joints", f"{len(contract['joint_names'])}"),
        ("actions", f"{contract['action_size']}"),
        ("control step", f"{contract['control_dt']:g} s"),
        ("observation", ", ".join(terms)),
        ("kp, N·m/rad", _span(contract["kp"])),
        ("kd, N·m·s/rad", _span(contract["kd"])),
        ("armature, kg·m²", _span(contract["armature"])),
        ("stands still at the zero command", _yes(contract["training"]["can_stand"])),
    ]
    return "## Policy\n\n" + make_table(("what", "value"), rows)


def _training_section(training: Mapping[str, Any]) -> str:
    rows = []
    ranges = {**(training["commands"] or {}), **training, **(training["start"] or {})}
    for name, unit in UNITS.items():
        span = ranges.get(name)
        if isinstance(span, Sequence) and len(span) == 2:
            rows.append((name, f"{_span(span)} {unit}"))
    terrain = training["terrain"]
    ground = "a plane"
    if terrain is not None:
        ground = f"{', '.join(terrain['kinds'])}; {terrain['levels']} levels"
    rows.append(("ground", ground))
    return "## Training\n\nConditions of the training:\n\n" + make_table(("what", "range"), rows)


def _evaluation_section(evaluation: Mapping[str, Any]) -> str:
    if not evaluation:
        return (
            "## Evaluation\n\nThe file holds no evaluation: "
            "`legged-envs eval TASK --policy FILE --record` writes one.\n"
        )
    numbers = {**evaluation, **(evaluation.get("command") or {})}
    rows = []
    for name, meaning in RESULTS.items():
        if isinstance(numbers.get(name), (int, float)):
            rows.append((meaning, f"{numbers[name]:.3g}"))
    for clip, values in evaluation.get("clips", {}).items():
        error = values["joint_error"]
        # Every episode of a clip may end in its first step, which has no error.
        shown = "-" if error is None else f"{error:.3g}"
        rows.append((f"clip {clip}: error of joints, rad", shown))
        rows.append((f"clip {clip}: share of falls", f"{values['falls']:.3g}"))
    seed = evaluation.get("seed", "unknown")
    return f"## Evaluation\n\nOn episodes of seed {seed}:\n\n" + make_table(("what", "mean"), rows)


def _cost_section(cfg: TaskCfg, evaluation: Mapping[str, Any]) -> str:
    if not cfg.costs:
        return "## Costs\n\nThe task has none.\n"
    measured = evaluation.get("costs", {})
    rows = []
    for name, term in cfg.costs.items():
        value = measured.get(name)
        mean = "not measured" if value is None else f"{value:.4f}"
        rows.append((name, mean, f"{term.limit:g}"))
    return "## Costs\n\nPer control step:\n\n" + make_table(("cost", "mean", "limit"), rows)


def _licence_section(is_shipped: bool) -> str:
    if is_shipped:
        return "## Licence\n\nBSD-3-Clause, as legged-envs.\n"
    return "## Licence\n\nNot chosen yet: name yours here and in `license` above.\n"


def _span(numbers: Sequence[float]) -> str:
    # Plus zero: no −0 is written.
    low = min(numbers) + 0.0
    high = max(numbers) + 0.0
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def make_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(titles)} |", "|" + "---|" * len(titles)]
    for row in rows:
        # A bar would start a new cell.
        cells = [cell.replace("|", "\\|") for cell in row]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
