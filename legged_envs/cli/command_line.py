"""The command ``legged-envs``. A mistake is one line and exit status 2, before anything is written."""

import io
import keyword
import math
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from functools import partial, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NoReturn

# OpenMP threads that wait leave the cores to the physics after a short spin; read once, when torch loads.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")

import tyro

from legged_envs import __version__, checks, errors, system_checks
from legged_envs.evaluation.crosscheck_options import CrosscheckCfg
from legged_envs.evaluation.record_options import RecordCfg
from legged_envs.policy.header import HEADLINE_COLUMNS, headline, read_evaluation, record_evaluation
from legged_envs.runs.options import LARGEST_SEED, TaskId, Value, check_size
from legged_envs.runs.run_folder import write_json
from legged_envs.tasks import TASKS, make_task_cfg, plain_id
from legged_envs.training.options import TrainCfg, default_config

Runs = Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
"""Run folders, the arguments of a verb."""


def list_tasks(
    tasks: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="TASK_ID")] = (),
    picture: Path | None = None,
) -> None:
    """List the registered tasks: robot, joints, whether a policy ships, and how well it walks, as measured when it was
    made: errors of its velocity command, falls, motions imitated, tiles crossed; "-" was not measured.
    Args:
        tasks: Registered ids, or module:Id of another package's task: list these, with observation groups and costs.
        picture: Draw all robots of the package, those that a policy ships for walking, into this .png or .jpg."""
    if picture is not None:
        system_checks.check_output("--picture", picture, endings=(".png", ".jpg"))
        system_checks.check_installed("matplotlib")
    from rich.console import Console
    from rich.table import Column, Table

    heads = (
        "robot",
        "joints",
        *(("observation groups", "costs (limit)") if tasks else ("policy", *HEADLINE_COLUMNS)),
    )
    table, rows = (
        Table(Column("id", no_wrap=True), *(Column(head, overflow="fold") for head in heads)),
        {},
    )
    ids = [plain_id(task_id) for task_id in tasks or TASKS]

    for task_id in ids:
        try:
            rows[task_id] = _details(task_id) if tasks else _shipped(task_id)
        except Exception as error:  # one of another package, perhaps
            rows[task_id] = (
                "cannot be made:",
                *[""] * (len(heads) - 2),
                f"{type(error).__name__}: {error}",
            )
    for task_id in ids:
        table.add_row(task_id, *rows[task_id])
    Console().print(table)
    if picture is not None:
        from legged_envs.runs.progress import LINE_INTERVAL, showing
        from legged_envs.viewing.film_strip import draw_robots

        with showing(Console(), LINE_INTERVAL) as show:
            draw_robots(picture, show)


def _shipped(task_id: str) -> tuple[str, ...]:
    from legged_envs.policy.policy import SHIPPED, shipped_file

    robot = make_task_cfg(task_id).robot
    cells = (
        ("ships", *headline(read_evaluation(shipped_file(task_id)))) if task_id in SHIPPED else ()
    )
    return robot.name, str(robot.num_joints), *cells


def _details(task_id: str) -> tuple[str, ...]:
    from legged_envs.registration import make_core

    core = make_core(make_task_cfg(task_id), 1)
    groups = ", ".join(f"{name} ({size})" for name, size in core.group_sizes.items())
    costs = ", ".join(
        f"{n} ({x:g})" for n, x in zip(core.cost_names, core.cost_limits, strict=True)
    )
    core.close()
    return core.cfg.robot.name, str(core.cfg.robot.num_joints), groups, costs


def train(cfg: Annotated[TrainCfg, tyro.conf.arg(name="")]) -> None:
    """Train a policy, evaluate it and write a run folder."""
    from legged_envs.training.trainer import train as run

    run(cfg)


def play(
    task_id: TaskId,
    policy: Path | None = None,
    video: Path | None = None,
    vx: float | None = None,
    vy: float | None = None,
    wz: float | None = None,
    clips: tuple[str, ...] = (),
    motions: tuple[Path, ...] = (),
    changes: dict[str, Value] | None = None,
    seconds: float | None = None,
    terrain: str | None = None,
    level: int | None = None,
    scan: bool = False,
    appearance: str | None = None,
    web: bool = False,
    num_envs: int = 1,
    port: int | None = None,
) -> None:
    """Watch a policy walk, or imitate motions, in a window that arrows, Home, End and Enter drive, in a browser or as a
    video.
    Args:
        task_id: Registered id, or module:Id of another package's task.
        policy: A policy.safetensors, or the run folder with it; by default the one that ships with the package.
        video: Write an mp4 here in place of opening a window; without a display, play.mp4 is written.
        vx: Forward command, m/s. Without any of vx, vy and wz: a tour of the task's commands.
        vy: Sideways command, m/s.
        wz: Turning command, rad/s.
        clips: Motions to imitate, for mimic tasks; by default those that the policy was trained on.
        motions: Files of motions in place of the task's own, for mimic tasks: .npz, .csv, .json or .txt.
        changes: Changes to the task beside the policy's own, e.g. --changes actions.joint_position.scale 0.8
        seconds: How long each command holds or each motion is imitated.
        terrain: The kind of tiles to walk on, such as stairs_up, for tasks on rough ground.
        level: Of these tiles; the first is 0.
        scan: Draw the points of the ground that the policy sees.
        appearance: What the robot looks like, its physics the same: menagerie (the meshes of mujoco_menagerie: pip
            install mujoco-menagerie, or set MENAGERIE_ROOT to a checkout), or an MJCF file with the same bodies.
        web: Serve a page for a browser, with plots and everything to play with; for --seconds, else until Ctrl-C.
        num_envs: Robots on that page.
        port: Port of that page, by default 8080, which only this machine reaches: from elsewhere, ssh -L
            8080:localhost:8080 HOST."""
    plain_id(task_id)
    system_checks.check_inputs("--motions", motions)
    check_size("--num-envs", num_envs)
    if port is not None and not web:
        raise ValueError(f"--port {port} needs --web: a window or a video has none")
    port = 8080 if port is None else port
    if web:
        if video is not None:
            raise ValueError("--web shows the robots in a browser: it takes no --video")
        system_checks.check_installed("viser", "trimesh", extra="web")
        system_checks.check_port("127.0.0.1", port)
    elif num_envs > 1:
        raise ValueError(f"--num-envs {num_envs} needs --web: a window or a video shows one robot")
    elif video is None and sys.platform == "linux" and not os.environ.get("DISPLAY"):
        video = Path("play.mp4")
    if video is not None:
        if video.suffix != ".mp4":
            raise ValueError(f"--video must name a file that ends in .mp4, got {str(video)!r}")
        system_checks.check_output("--video", video)
        system_checks.check_installed("imageio_ffmpeg", "matplotlib")
    command = (
        None if vx is None and vy is None and wz is None else (vx or 0.0, vy or 0.0, wz or 0.0)
    )
    for name, speed in zip(("--vx", "--vy", "--wz"), command or (), strict=False):
        checks.check_number(name, speed)

    from legged_envs.tasks.kind import kind_of

    if command and kind_of(make_task_cfg(task_id)).imitates_motions:
        raise ValueError(f"{task_id!r} imitates motions: it takes --clips, not --vx, --vy and --wz")
    from legged_envs.policy.policy import policy_and_task
    from legged_envs.viewing import watch

    own = {**(changes or {}), **_on_tiles(task_id, terrain, level)}
    if appearance is not None:
        from legged_envs.sim.appearance import find_appearance

        find_appearance(make_task_cfg(task_id).robot, appearance)
        own["viewer.appearance"] = appearance
    loaded, cfg, _ = policy_and_task(task_id, policy, own, clips, motions)
    if scan:
        watch.scan_of(cfg)
    shown = watch.scenes(cfg, command, clips, seconds)
    if web:
        from legged_envs.viewing.web.play import play as play_in_browser

        play_in_browser(task_id, cfg, loaded, shown, scan, num_envs, port, seconds or math.inf)
    else:
        watch.play(task_id, cfg, loaded, video, shown, scan)


def evaluate(
    task_id: TaskId,
    policy: Path | None = None,
    episodes: int = 256,
    clips: tuple[str, ...] = (),
    motions: tuple[Path, ...] = (),
    seed: int | None = None,
    changes: dict[str, Value] | None = None,
    json: Path | None = None,
    terrain: str | None = None,
    level: int | None = None,
    picture: Path | None = None,
    record: bool = False,
    sim: str = "mujoco",
    device: str = "cpu",
) -> None:
    """Measure how well a policy walks, or imitates motions, on episodes that it was not trained on.
    Args:
        task_id: Registered id, or module:Id of another package's task.
        policy: A policy.safetensors, or the run folder with it; by default the one that ships with the package.
        episodes: How many; for each clip of a mimic task.
        clips: Motions to imitate, for mimic tasks; by default those that the policy was trained on.
        motions: Files of motions in place of the task's own, for mimic tasks: .npz, .csv, .json or .txt.
        seed: Of the episodes; by default that of a training's own evaluation. Training takes small ones.
        changes: Changes to the task beside the policy's own, e.g. --changes costs.joint_torque.params.soft_limit 0.3
        json: A new file to write the numbers to. The eval.json of a run is its training's own.
        terrain: The kind of tiles to walk on, for tasks on rough ground; by default all.
        level: Of these tiles, the first is 0; by default all.
        picture: Draw which part of the episodes crosses which tiles into this .png, for tasks on rough ground.
        record: Write the numbers into the file of the policy, where list finds them: those of its own task.
        sim: Physics engine: mujoco, mujoco_warp, genesis or one of another package.
        device: Where it runs, such as cuda:0; the policy runs on the CPU."""
    plain_id(task_id)
    system_checks.check_inputs("--motions", motions)
    check_size("--episodes", episodes)
    checks.whole_number("--seed", 0 if seed is None else seed, least=0, most=LARGEST_SEED)
    system_checks.check_output("--json", json)
    if json is not None and json.exists():
        raise ValueError(
            f"--json must name a new file, {str(json)!r} exists: an evaluation overwrites nothing"
        )
    tiles = _on_tiles(task_id, terrain, level)
    if record and (changes or clips or motions or tiles or sim != "mujoco"):
        given = "--changes, --clips, --motions, tiles or --sim"
        raise ValueError(f"--record is of the policy's own task: it takes no {given}")
    system_checks.check_output("--picture", picture, endings=(".png",))
    if picture is not None:
        _check_terrain(task_id, "--picture")
    from rich.console import Console

    from legged_envs.evaluation.evaluator import EVALUATION_SEED, Evaluator
    from legged_envs.policy.policy import policy_and_task, policy_file, shipped_file
    from legged_envs.runs.progress import LINE_INTERVAL, showing

    own = {**(changes or {}), **tiles}
    loaded, cfg, changed = policy_and_task(task_id, policy, own, clips, motions)
    file = policy_file(policy) if policy else shipped_file(task_id)
    if record:
        system_checks.check_output("--record", file)
    seed = EVALUATION_SEED if seed is None else seed
    evaluator = Evaluator(task_id, cfg, episodes, sim, tuple(loaded.inputs), device)
    loaded.check(core := evaluator.core)

    def act(*seen: Any) -> Any:
        return loaded(*(group.cpu() for group in seen)).to(core.device)

    with showing(console := Console(), LINE_INTERVAL) as show:
        result = evaluator.run(act, seed=seed, show=show)
    result.print(console)
    if picture is not None:
        from legged_envs.evaluation.plots import plot_crossings

        plot_crossings(result.crossings, picture)
    if record:
        record_evaluation(file, {"seed": seed} | result.as_dict())
    if json is not None:
        about = {
            "task_id": task_id,
            "policy": str(policy or "shipped"),
            "evaluation_seed": seed,
            "changes": changed,
        }
        write_json(json, about | {"sim": sim} | result.as_dict())


def record(cfg: Annotated[RecordCfg, tyro.conf.arg(name="")]) -> None:
    """Record what a policy does on its task as a Minari dataset: whole episodes, with observations, actions, rewards,
    costs, terminations and truncations. Minari recovers the environment from it."""
    from legged_envs.evaluation.record import main as run

    run(cfg)


def report(runs: Runs, out: Path = Path("report.html")) -> None:
    """Write a page about one or several runs, finished or still going: curves, evaluation, costs against their limits,
    film, what differs from the default configuration, versions, hardware and commit. Runs that differ in their seed
    alone are drawn as one, with their spread.
    Args:
        runs: Run folders.
        out: The page, .html, one file that needs no network; one that is there is replaced."""
    from legged_envs.evaluation.report import write_report

    write_report(runs, out, default_config)


def compare(runs: Runs) -> None:
    """Print runs beside each other: the options in which they differ, how far they are, when they walked, and how well
    they did in their evaluations.
    Args:
        runs: Run folders."""
    from legged_envs.evaluation.report import compare as print_comparison

    print_comparison(runs)


def _check_terrain(task_id: str, option: str) -> Any:
    """The terrain of a task; ValueError, naming the option, if it is on a plane."""
    if (ground := make_task_cfg(task_id).scene.terrain) is None:
        raise ValueError(f"{task_id!r} is on flat ground: it takes no {option}")
    return ground


def _on_tiles(task_id: str, terrain: str | None, level: int | None) -> dict[str, Any]:
    """Changes to a task, by which all robots begin on tiles of one kind and level."""
    changes: dict[str, Any] = {}
    if terrain is not None:
        from legged_envs.terrains import GENERATORS, KindCfg

        kinds = _check_terrain(task_id, "--terrain").kinds
        checks.check_known("unknown kind of terrain", (terrain,), GENERATORS, "kinds")
        changes["scene.terrain.kinds"] = {terrain: kinds.get(terrain, KindCfg())}
    if level is not None:
        rows = _check_terrain(task_id, "--level").rows
        checks.whole_number("--level", level, least=0, most=rows - 1)
        changes["scene.terrain.first_levels"] = (level, level)
    return changes


def bench(
    task_id: TaskId,
    rounds: int = 7,
    quick: bool = False,
    json: Path | None = None,
    sim: str = "mujoco",
    device: str = "cpu",
    sizes: tuple[int, ...] = (),
) -> None:
    """Measure environment steps a second beside those of the physics engine alone.
    Args:
        task_id: Registered id, or module:Id of another package's task.
        rounds: Paired rounds. The columns are their medians: envs, robots in one process; env-steps/s, robots times
            control steps in a second; control step, the time of one envs.step(); its physics alone, the time of the
            engine for the same model, states and targets; ratio, the former time by the latter.
        quick: Two rounds, without the largest size.
        json: Where to write the numbers.
        sim: Physics engine: mujoco, mujoco_warp, genesis or one of another package.
        device: Where it runs, such as cuda:0.
        sizes: Numbers of robots; by default 64, 512 and 4096."""
    plain_id(task_id)
    checks.whole_number("--rounds", rounds)
    system_checks.check_output("--json", json)
    for size in sizes:
        check_size("--sizes", size)
    from legged_envs.evaluation import bench as module

    module.main(task_id, rounds, quick, json, sim, device, sizes)


def crosscheck(cfg: Annotated[CrosscheckCfg, tyro.conf.arg(name="")]) -> None:
    """Run one policy on several engines, and in a plain mj_step loop from its ONNX file and the contract in it alone:
    how it walks on each, and where the runs part."""
    cfg.check()
    from legged_envs.evaluation.crosscheck import main as run

    run(cfg)


def export(
    task_id: TaskId, policy: Path | None = None, folder: Path = Path("deploy"), half: bool = False
) -> None:
    """Write a policy with what runs it without this package: policy.onnx and policy.safetensors, both with the contract
    between policy and robot, and scene.xml, the robot as plain MuJoCo reads it. examples/deploy.py drives it.
    Args:
        task_id: Registered id, or module:Id of another package's task.
        policy: A policy.safetensors, or the run folder with it; by default the one that ships with the package.
        folder: A new folder for them.
        half: Whether to round the weights to 16-bit floats, which makes policy.safetensors half as large."""
    plain_id(task_id)
    system_checks.check_output("--folder", folder, "folder")
    system_checks.check_installed("onnx")
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(
            f"--folder must be empty or new, got {str(folder)!r}: nothing is overwritten"
        )
    from legged_envs.policy.export import export as write

    print("wrote", *write(task_id, policy, folder, half))


def terrain(
    kinds: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="KIND")] = (),
    level: int | None = None,
    rows: int = 10,
    columns: int | None = None,
    seed: int = 0,
    picture: Path | None = None,
    array: Path | None = None,
) -> None:
    """Make kinds of terrain: print how high and how steep they are, and draw them.
    Args:
        kinds: Such as stairs_up; by default all.
        level: The one level to show, the first is 0; by default all.
        rows: Levels; the difficulty of level i is i / rows.
        columns: Tiles of each level, shared out among the kinds; by default one for each.
        seed: Of the random numbers.
        picture: Draw the heights from above into this .png.
        array: Write the heights, m, [x, y], to this .npy, which TerrainCfg.source takes."""
    from legged_envs.terrains import GENERATORS, TerrainCfg
    from legged_envs.terrains.report import report

    checks.check_known("unknown kind of terrain", kinds, GENERATORS, "kinds")
    kinds = tuple(dict.fromkeys(kinds or GENERATORS))
    checks.whole_number("--rows", rows)
    checks.whole_number("--columns", len(kinds) if columns is None else columns, least=len(kinds))
    checks.whole_number("--level", 0 if level is None else level, least=0, most=rows - 1)
    system_checks.check_output("--picture", picture, endings=(".png",))
    system_checks.check_output("--array", array, endings=(".npy",))
    if picture is not None:
        system_checks.check_installed("matplotlib")
    cfg = TerrainCfg(dict.fromkeys(kinds, 1.0), rows, columns or len(kinds), border=0.0, seed=seed)
    report(cfg, range(rows) if level is None else range(level, level + 1), picture, array)


def check(
    robot: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ROBOT")],
    write: Path | None = None,
) -> None:
    """Report on a robot: masses, joints, feet, how it stands on its own gains, and what is wrong. The exit status is 0
    without problems, 1 with some, and 2 if there is no robot that can be compiled.
    Args:
        robot: A robot of the package, such as go2, module:NAME of any RobotCfg, or a URDF or MJCF file.
        write: A new module, .py, for a first RobotCfg; beside it comes the model in the form that it needs."""
    path = Path(robot) if robot.endswith((".urdf", ".xml", ".mjcf")) else None
    name = re.sub(r"\W|^(?=\d)", "_", (write or path or Path()).stem).lower()
    system_checks.check_output("--write", write, endings=(".py",))
    if write is not None:
        if not write.stem.isidentifier() or keyword.iskeyword(write.stem):
            raise ValueError(
                f"--write must name a module that Python can import, got {write.name!r}"
            )
        if path is None:
            raise ValueError(f"--write is for a URDF or MJCF file, got {robot!r}")
        if there := [str(new) for new in (write, write.with_name(f"{name}.xml")) if new.exists()]:
            raise ValueError(
                f"--write must name a new module and model, {there[0]!r} exists: nothing is overwritten"
            )
    gaps: dict[str, str] = {}
    with TemporaryDirectory() as folder:
        if path is None:
            cfg = _named_robot(robot)
        else:
            from legged_envs.robots.reading.draft import draft_robot

            system_checks.check_inputs("check", [path])
            cfg, gaps = draft_robot(path, name, Path(folder))
        from legged_envs.robot_check import Report, raise_gains

        cfg = raise_gains(cfg) if path else cfg
        print(report := Report(cfg, gaps))
    if path is not None and write is not None:
        from legged_envs.robots.reading.describe import format_module

        draft_robot(path, name, write.parent)
        write.write_text(format_module(cfg, gaps))
    if report.problems:
        sys.exit(1)


def _named_robot(name: str) -> Any:
    """The RobotCfg of the package, or of module:NAME; ValueError if there is none."""
    from legged_envs.robots import ROBOTS, RobotCfg

    module, _, attribute = name.partition(":")
    known = vars(system_checks.import_named(module, name)) if ":" in name else ROBOTS
    names = [each for each, value in known.items() if isinstance(value, RobotCfg)]
    where = (
        f"robots of {module}"
        if ":" in name
        else "robots, beside module:NAME and files, .urdf or .xml"
    )
    wanted = attribute if ":" in name else name
    checks.check_known("unknown robot", [wanted], names, where)
    return known[wanted]


VERBS: dict[str, Callable[..., None]] = {
    "list": list_tasks,
    "train": train,
    "play": play,
    "eval": evaluate,
}
VERBS |= {"record": record, "report": report, "compare": compare}
VERBS |= {
    "bench": bench,
    "crosscheck": crosscheck,
    "export": export,
    "terrain": terrain,
    "check": check,
}
ABOUT = """Legged robots as vectorized Gymnasium environments.
--version tells the version; --traceback, after any command, what led to an error."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the command ``legged-envs``. What this package refuses and what the machine lacks is one line and
    exit status 2, with ``--traceback`` after what led to it; an interruption is 130. Other errors are Python's."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        sys.path.append(os.getcwd())  # for module:Id
    try:
        call = parse([word for word in words if word != "--traceback"])
        _check_gl()
        call()
    except KeyboardInterrupt:
        _stop("interrupted", 130)
    except Exception as error:
        if not errors.is_mistake(error):
            raise
        if "--traceback" in words:
            traceback.print_exc()
        _stop(f"error: {str(error) or type(error).__name__}", 2)


def _check_gl() -> None:
    """Raise a ValueError if the environment variable MUJOCO_GL is none of those that mujoco takes when it loads."""
    backends = {"linux": ("egl", "osmesa", "glx"), "darwin": ("cgl",)}.get(sys.platform, ("wgl",))
    switches = ("enable", "enabled", "on", "true", "1", "disable", "disabled", "off", "false", "0")
    value = os.environ.get("MUJOCO_GL", "").lower().strip()
    checks.check_known(
        "MUJOCO_GL cannot be", [value] if value else [], ("glfw", *backends, *switches), "it can be"
    )


def _stop(message: str, status: int) -> NoReturn:
    print("legged-envs:", " ".join(message.split()), file=sys.stderr)
    sys.exit(status)


def parse(words: list[str]) -> Callable[[], None]:
    """The call that ``words`` ask for. ValueError, with what tyro prints in a box of several paragraphs, if none."""
    if words[:1] == ["--version"]:
        if len(words) > 1:
            raise ValueError(f"--version stands alone, got {' '.join(words[1:])!r} after it")
        return partial(print, f"legged-envs {__version__}")
    verb = words[0] if words and not words[0].startswith("-") else ""
    checks.check_known("unknown command", [verb] if verb else [], VERBS, "commands")
    verbs, box = {name: _later(function) for name, function in VERBS.items()}, io.StringIO()
    options: dict[str, Any] = {"description": ABOUT, "config": (tyro.conf.CascadeSubcommandArgs,)}
    try:
        with redirect_stderr(box):
            return tyro.extras.subcommand_cli_from_dict(
                verbs, prog="legged-envs", args=words, **options
            )
    except SystemExit as stop:
        if not stop.code:  # --help
            raise
    lines = re.sub(r"\x1b\[[0-9;]*m", "", box.getvalue()).splitlines()[
        1:
    ]  # without colours and title
    text = " ".join(line.strip(" │|╰╯") for line in lines)
    wrong, *hints = [*filter(None, map(str.strip, re.split("[─-]{3,}", text)))] or [box.getvalue()]
    raise ValueError(f"{_told(wrong, hints)} ({f'legged-envs {verb}'.strip()} --help)")


def _told(wrong: str, hints: list[str]) -> str:
    """What is ``wrong`` and what of ``hints`` helps, both as tyro has them."""
    wrong = re.sub(r"no type matching .* from (.*?)\. .*", r"got \1", wrong)
    if usage := re.match(r"Argument helptext: (--\S+ (\[.*\]\]|\S+))", "".join(hints)):
        return f"{wrong}; expected {usage[1]}"
    if not wrong.startswith("Unrecognized"):
        return wrong.removesuffix(".").removesuffix(". (required)")
    given = wrong.partition(":")[2].split()[0].rstrip(",")
    names = next(
        (hint.partition(": ")[2] for hint in hints if hint.startswith("Available subcommands")), ""
    )
    similar = re.findall(
        r" (--(?!help)[\w.-]+)[ ,].*? in (legged-envs [a-z ]*[a-z])", " ".join(hints)
    )
    places = dict(reversed(similar))
    if given in places:
        return (
            f"{given} must follow one of {names}"
            if names
            else f"{given} is an option of {places[given]}"
        )
    meant = checks.did_you_mean(
        given, (*places, *names.split(", "), "--help", "--version", "--traceback")
    )
    expected = f"expected one of {names}" if names and not given.startswith("-") else ""
    return f"unexpected {given!r}; {meant}{expected}".strip("; ")


def _later(function: Callable[..., None]) -> Callable[..., Callable[[], None]]:
    """``function``, but a call of it returns the call."""

    @wraps(function)
    def bind(*args: Any, **kwargs: Any) -> Callable[[], None]:
        return partial(function, *args, **kwargs)

    return bind
