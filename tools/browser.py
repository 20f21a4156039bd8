"""The page that runs robots in the browser: `docs/demo.md`, with what `web/` and exports make.

    python -m tools.browser FOLDER

writes its files. Node.js builds the scripts, from packages that `web/package-lock.json` pins.
"""

import base64
import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import Any

import onnx

from legged_envs.envs.cfg import TaskCfg
from legged_envs.policy.export import ONNX_FILE, SCENE_FILE, export
from legged_envs.policy.lookup import policy_and_task
from legged_envs.policy.metadata import ObservationEntry
from legged_envs.policy.policy import load_shipped_policy
from legged_envs.policy.shipped import SHIPPED

WEB = Path(__file__).parents[1] / "web"
"""Folder of the page's sources."""
HTML_FILE = "page.html"
"""File of the part of the page that shows the robots."""
OPTIONS_MARK = "<!-- options -->"
"""Stands in that file for the policies that can be chosen."""
WHOLE_TEXTS = ("task_id", "robot", "action")
"""Entries of a policy's metadata in ONNX that are not JSON."""
QUANTITIES = (
    *("command", "gravity", "ang_vel", "joint_pos", "joint_vel", "action", "clock", "height_scan"),
    *("gait", "gait_style", "clock_sin", "clock_cos"),
)
"""Observation terms that the page computes, in `web/src/loop.ts`."""
JOINT_COSTS = {"joint_velocity": "velocity_limits", "joint_torque": "torque_limits"}
"""Costs of joints that exceed a limit, mapped to the field of the robot that has the limit."""
MAX_TILT = 0.35
"""Default of the parameter `max_tilt` of the cost `base_orientation`, rad."""

Json = dict[str, Any]


class NoNode(Exception):
    """Node.js, or the packages that it would have to fetch, are missing."""


def bundle(folder: Path) -> None:
    """Write the scripts of the page: the page itself and both engines.

    Args:
        folder: Folder to write to.

    Raises:
        NoNode: If there is no Node.js, or its packages cannot be fetched.
        subprocess.CalledProcessError: If the sources do not build.
    """
    node = shutil.which("node")
    npm = shutil.which("npm")
    if node is None or npm is None:
        raise NoNode("install Node.js 20 or newer, then run make docs again")
    fetch_packages(npm)
    subprocess.run([node, "build.mjs", str(folder.absolute())], cwd=WEB, check=True)


def fetch_packages(npm: str) -> None:
    """Fetch the packages that the lock file names, unless they are there.

    Args:
        npm: Path of npm.

    Raises:
        NoNode: If they cannot be fetched.
    """
    lock = WEB / "package-lock.json"
    fetched = WEB / "node_modules" / ".fetched"
    if fetched.is_file() and fetched.read_text() == lock.read_text():
        return
    words = [npm, "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(words, cwd=WEB, capture_output=True, text=True)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["npm ci failed"]
        raise NoNode(f"npm could not fetch the packages of web/package-lock.json: {lines[0]}")
    fetched.write_text(lock.read_text())


def write_robots(folder: Path, task_ids: list[str]) -> None:
    """Export the shipped policies of tasks as scripts of the page.

    Args:
        folder: Folder to write to.
        task_ids: Ids of the tasks.
    """
    for task_id in task_ids:
        with tempfile.TemporaryDirectory() as place:
            export(task_id, None, Path(place))
            write_robot(folder, task_id, Path(place))


def write_robot(folder: Path, task_id: str, exported: Path) -> None:
    """Write the shipped policy of a task and its robot as scripts of the page.

    Args:
        folder: Folder to write to.
        task_id: Id of the task.
        exported: Folder with the export of the policy.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _, cfg, _ = policy_and_task(task_id)
    name = SHIPPED[task_id].stem
    assets = {}
    for path in sorted(exported.glob("assets/*")):
        data = path.read_bytes()
        # Named by its content, because several robots walk on the same terrain.
        asset = f"{hashlib.sha256(data).hexdigest()[:12]}.{path.name}"
        assets[f"assets/{path.name}"] = asset
        _write_script(folder / f"{asset}.js", "files", asset, _packed(data))
    metadata = read_metadata(exported / ONNX_FILE)
    entry = {
        "metadata": metadata,
        "scene": (exported / SCENE_FILE).read_text(),
        "policy": _packed((exported / ONNX_FILE).read_bytes()),
        "assets": assets,
        "costs": cost_bounds(cfg, metadata["joint_ranges"]),
    }
    _write_script(folder / f"{name}.js", "robots", name, entry)


def _write_script(path: Path, shelf: str, name: str, value: object) -> None:
    path.write_text(f"leggedEnvs.{shelf}[{json.dumps(name)}]={json.dumps(value)};\n")


def _packed(data: bytes) -> str:
    # Without a time, the same content gives the same file.
    return base64.b64encode(gzip.compress(data, mtime=0)).decode()


def read_metadata(path: Path) -> Json:
    """Return the metadata of a policy in an ONNX file."""
    entries: Json = {}
    for prop in onnx.load(path).metadata_props:
        entries[prop.key] = prop.value if prop.key in WHOLE_TEXTS else json.loads(prop.value)
    return entries


def cost_bounds(cfg: TaskCfg, ranges: list[list[float] | None]) -> Json:
    """Return the bounds of the costs that the page shows, one entry for each of them.

    `limit` is the limit of the average per step. The other entry is what the joints or the base
    may do, in rad, rad/s and N·m.

    Args:
        cfg: The task.
        ranges: Least and largest position of each joint, rad; None of a joint without an end.
    """
    bounds: Json = {}
    for name, term in cfg.costs.items():
        fraction = term.params.get("soft_limit", 1.0)
        if name == "joint_position":
            allowed = [_middle_part(span, fraction) for span in ranges]
            bounds[name] = {"limit": term.limit, "ranges": allowed}
        elif name in JOINT_COSTS:
            limits = getattr(cfg.robot, JOINT_COSTS[name])
            bounds[name] = {"limit": term.limit, "max": [value * fraction for value in limits]}
        elif name == "base_orientation":
            bounds[name] = {"limit": term.limit, "max": term.params.get("max_tilt", MAX_TILT)}
    return bounds


def _middle_part(span: list[float] | None, fraction: float) -> list[float] | None:
    """Return a fraction of a range, around its middle."""
    if span is None:
        return None
    low, high = span
    middle = (low + high) / 2.0
    reach = (high - low) / 2.0 * fraction
    return [middle - reach, middle + reach]


def drivable() -> list[str]:
    """Return the ids of the tasks whose shipped policy the page can drive.

    These take one observation group, of quantities that the page computes. A policy that imitates
    motions takes its reference motion in addition, and is left out.
    """
    task_ids = []
    for task_id in SHIPPED:
        groups = list(load_shipped_policy(task_id).inputs.values())
        if len(groups) == 1 and all(map(_is_known, groups[0])):
            task_ids.append(task_id)
    return task_ids


def _is_known(term: ObservationEntry) -> bool:
    return term["name"] in QUANTITIES and "own" not in term


def page_html(task_ids: list[str]) -> str:
    """Return the HTML of the robots' part of the page.

    Args:
        task_ids: Ids of the tasks whose policies can be chosen.
    """
    groups: dict[str, list[str]] = {}
    for task_id in task_ids:
        _, cfg, _ = policy_and_task(task_id)
        ground = "Flat ground" if cfg.scene.terrain is None else "Rough ground"
        label = task_id.removeprefix("Legged/").removesuffix("-v0")
        option = f'<option value="{SHIPPED[task_id].stem}">{label}</option>'
        groups.setdefault(ground, []).append(option)
    lines = []
    for ground, options in groups.items():
        lines.append(f'<optgroup label="{ground}">{"".join(options)}</optgroup>')
    text = (WEB / "src" / "page.html").read_text()
    return text.replace(OPTIONS_MARK, "\n".join(lines))


def write_page(folder: Path, task_ids: list[str] | None = None) -> None:
    """Write all files of the page.

    Args:
        folder: Folder to write to.
        task_ids: Ids of the tasks whose policies can be chosen. None: all that the page can drive.

    Raises:
        NoNode: If there is no Node.js, or its packages cannot be fetched.
    """
    # First of all: it may be impossible.
    bundle(folder)
    if task_ids is None:
        task_ids = drivable()
    write_robots(folder, task_ids)
    shutil.copyfile(WEB / "src" / "page.css", folder / "page.css")
    (folder / HTML_FILE).write_text(page_html(task_ids))


def main() -> None:
    """Write the files of the page to the folder that the command line names."""
    folder = Path(sys.argv[1])
    try:
        write_page(folder)
    except NoNode as missing:
        print(f"the robots in the browser are left out: {missing}", file=sys.stderr)
        folder.mkdir(parents=True, exist_ok=True)
        sentence = f"This copy of the page was built without the robots: {escape(str(missing))}."
        (folder / HTML_FILE).write_text(f"<p><strong>{sentence}</strong></p>")


if __name__ == "__main__":
    main()
