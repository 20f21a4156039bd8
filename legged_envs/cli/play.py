"""Implements `legged-envs play`."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from legged_envs.checks import check_choice, check_number, whole_number
from legged_envs.cli.tiles import choose_tiles
from legged_envs.runs.motion_options import MotionFileOptions
from legged_envs.runs.options import TaskId, Value, check_size
from legged_envs.system_checks import check_installed, check_output, check_port, has_display
from legged_envs.tasks import make_task_cfg, plain_id

if TYPE_CHECKING:
    from legged_envs.mdp.gait_command import GaitChoice

HOST = "127.0.0.1"
"""Address of the page: only this machine reaches it."""
DEFAULT_PORT = 8080
"""Port of the page without `--port`."""
DEFAULT_VIDEO = Path("play.mp4")
"""Video that is written on a machine without a display."""
FOLLOW = "follow"
"""View of the camera that belongs to the model, which follows the robot."""
VIEWS = {
    "front": (0.95, 0.0, 0.3),
    "behind": (-0.95, 0.0, 0.3),
    "left": (0.0, 0.95, 0.3),
    "right": (0.0, -0.95, 0.3),
    "top": (-0.1, 0.0, 0.99),
}
"""Name of a view → direction from the robot to the camera, which moves with the robot."""
NEAREST_VIEW = 1.0
"""Distance of the camera from a robot without height, m."""
HEIGHTS_AWAY = 2.5
"""Increase of that distance per height of the robot's base."""


@dataclass
class PlayCfg(MotionFileOptions):
    """Options of `legged-envs play`."""

    task_id: TaskId
    """Registered id, or module:Id of another package's task."""
    policy: Path | None = None
    """A policy.safetensors, or a run folder with one. Default: the pretrained policy.
    Also a policy of another framework: .onnx, or .pt."""
    video: Path | None = None
    """Write an mp4 here instead of opening a window. Without a display, play.mp4 is written."""
    vx: float | None = None
    """Forward command, m/s. Without any of vx, vy and wz: a tour of the task's commands."""
    vy: float | None = None
    """Sideways command, m/s."""
    wz: float | None = None
    """Turning command, rad/s."""
    gait: str | None = None
    """Gait, for tasks with gaits: trot, pace, bound or pronk. Default: one after the other."""
    period: float | None = None
    """Duration of a stride of the gait, s."""
    clearance: float | None = None
    """Height of the feet in mid-swing of the gait, m."""
    height: float | None = None
    """Height of the base of the gait, m."""
    pitch: float | None = None
    """Pitch of the base of the gait, rad, positive with the nose down."""
    clips: tuple[str, ...] = ()
    """Motions to imitate, for mimic tasks. Default: the motions that the policy was trained on."""
    changes: dict[str, Value] = field(default_factory=dict)
    """Changes to the task in addition to the policy's own, e.g. --changes
    actions.joint_position.scale 0.8"""
    seconds: float | None = None
    """Duration of each command or motion, s."""
    terrain: str | None = None
    """Kind of tiles to walk on, such as stairs_up, for tasks on rough ground."""
    level: int | None = None
    """Level of the tiles of --terrain. The first is 0."""
    scan: bool = False
    """Draw the points of the height scan that the policy observes."""
    appearance: str | None = None
    """Appearance of the robot, without effect on its physics: menagerie (the meshes of
    mujoco_menagerie: pip install mujoco-menagerie, or set MENAGERIE_ROOT to a checkout), or an
    MJCF file with the same bodies."""
    camera: str = "follow"
    """View of the robot in a window or a video: follow (the camera of the model), front, behind,
    left, right or top."""
    fps: int | None = None
    """Frames per second of a video, at most one per control step. Default: 25."""
    web: bool = False
    """Serve a page for a browser, with plots and controls, for --seconds or until Ctrl-C."""
    num_envs: int = 1
    """Number of robots on the page of --web."""
    port: int | None = None
    """Port of the page of --web. Default: 8080. Only this machine reaches the page. From another
    one: ssh -L 8080:localhost:8080 HOST."""
    folder: Path = Path("runs")
    """Folder below which the page of --web can load policy files and run folders."""
    contract: Path | None = None
    """File that describes a policy of another framework: deploy.yaml of unitree_rl_lab, a yaml of
    unitree_rl_gym, config.yaml of rl_sar. The .onnx of mjlab describes itself."""


def play(cfg: PlayCfg) -> None:
    """Watch a policy in a window, in a browser or as a video.

    In the window, the arrow keys, Home, End and Enter drive the robot.
    """
    # Everything that can be wrong is checked before PyTorch is imported, which takes seconds.
    plain_id(cfg.task_id)
    cfg.check_motion_files()
    check_size("--num-envs", cfg.num_envs)
    if cfg.web:
        check_web_options(cfg)
    else:
        check_window_options(cfg)
    video = find_video_path(cfg)
    check_frame_rate(cfg, video)
    command = make_command(cfg)
    changes = make_changes(cfg)
    from legged_envs.policy.foreign.summary import print_foreign
    from legged_envs.policy.lookup import policy_and_task
    from legged_envs.viewing.play import play as play_locally
    from legged_envs.viewing.scenes import make_scenes
    from legged_envs.viewing.watch import find_height_scan

    policy, task, _ = policy_and_task(
        cfg.task_id, cfg.policy, changes, cfg.clips, cfg.motions, cfg.contract, cfg.motion
    )
    print_foreign(policy)
    if cfg.scan:
        # Raises the error that the task has no scan, before environments are made.
        find_height_scan(task)
    scenes = make_scenes(task, command, cfg.clips, cfg.seconds, gait=make_gait(cfg))
    if cfg.web:
        from legged_envs.viewing.web.play import play as serve_page

        port = DEFAULT_PORT if cfg.port is None else cfg.port
        # Without --seconds the page stays until Ctrl-C.
        end = cfg.seconds or math.inf
        # The page offers the checkpoints of a run, also while it trains.
        run = cfg.policy if cfg.policy is not None and cfg.policy.is_dir() else None
        serve_page(
            cfg.task_id,
            task,
            policy,
            scenes,
            scan=cfg.scan,
            num_envs=cfg.num_envs,
            port=port,
            end=end,
            folder=cfg.folder,
            run=run,
        )
    else:
        play_locally(cfg.task_id, task, policy, video, scenes, cfg.scan, cfg.fps)


def check_web_options(cfg: PlayCfg) -> None:
    """Raise an error if no page can be served with these options."""
    if cfg.video is not None:
        raise ValueError("--web shows the robots in a browser: it takes no --video")
    if cfg.camera != FOLLOW:
        raise ValueError(
            f"--web has a camera that the mouse moves: it takes no --camera {cfg.camera}"
        )
    check_installed("viser", "trimesh", extra="web")
    # Before the environments are made, which takes seconds.
    check_port(HOST, DEFAULT_PORT if cfg.port is None else cfg.port)


def check_window_options(cfg: PlayCfg) -> None:
    """Raise a ValueError for an option that only the page in a browser has."""
    if cfg.port is not None:
        raise ValueError(f"--port {cfg.port} needs --web: a window or a video has none")
    if cfg.num_envs > 1:
        raise ValueError(
            f"--num-envs {cfg.num_envs} needs --web: a window or a video shows one robot"
        )


def find_video_path(cfg: PlayCfg) -> Path | None:
    """Return the path of the video. None: the robot is shown in a window or in a browser.

    Raises:
        ModuleNotFoundError: If a module that videos need is not installed.
        ValueError: If the file is not an .mp4, or cannot be written.
    """
    video = cfg.video
    if video is None and not cfg.web and not has_display():
        video = DEFAULT_VIDEO
    if video is not None:
        if video.suffix != ".mp4":
            raise ValueError(f"--video must name a file that ends in .mp4, got {str(video)!r}")
        check_output("--video", video)
        # Matplotlib has the font of the labels.
        check_installed("imageio_ffmpeg", "matplotlib")
    return video


def check_frame_rate(cfg: PlayCfg, video: Path | None) -> None:
    """Raise a ValueError if `--fps` is given without a video, or is out of its range.

    Args:
        cfg: Options of the command.
        video: Path of the video. None: there is none.
    """
    if cfg.fps is None:
        return
    if video is None:
        raise ValueError(f"--fps {cfg.fps} needs --video: a window shows each control step")
    most = round(1.0 / make_task_cfg(cfg.task_id).sim.step_dt)
    whole_number("--fps", cfg.fps, most=most)


def make_command(cfg: PlayCfg) -> tuple[float, float, float] | None:
    """Return the command (vx, vy, wz). None: no part of it is given.

    Raises:
        ValueError: If a part is not finite, or the task takes no commands because it imitates
            motions.
    """
    speeds = {"--vx": cfg.vx, "--vy": cfg.vy, "--wz": cfg.wz}
    for option, speed in speeds.items():
        if speed is not None:
            check_number(option, speed)
    if all(speed is None for speed in speeds.values()):
        return None
    from legged_envs.tasks.kind import kind_of

    if kind_of(make_task_cfg(cfg.task_id)).imitates_motions:
        raise ValueError(
            f"{cfg.task_id!r} imitates motions: it takes --clips, not --vx, --vy and --wz"
        )
    # One part that is given makes the others 0.
    return (cfg.vx or 0.0, cfg.vy or 0.0, cfg.wz or 0.0)


def make_gait(cfg: PlayCfg) -> "GaitChoice | None":
    """Return the gait and style. None: no part of them is given."""
    from legged_envs.mdp.gait_command import GaitChoice

    choice = GaitChoice(
        gait=cfg.gait,
        period=cfg.period,
        clearance=cfg.clearance,
        height=cfg.height,
        pitch=cfg.pitch,
    )
    return None if choice == GaitChoice() else choice


def make_changes(cfg: PlayCfg) -> dict[str, Any]:
    """Return all changes to the task that the options ask for, by path.

    Raises:
        ValueError: If the task has no such tiles, or the robot no such appearance.
    """
    changes = dict(cfg.changes)
    # The options for tiles come after --changes: they replace the same fields.
    changes.update(choose_tiles(cfg.task_id, cfg.terrain, cfg.level))
    if cfg.appearance is not None:
        from legged_envs.sim.render.appearance import find_appearance

        find_appearance(make_task_cfg(cfg.task_id).robot, cfg.appearance)
        changes["viewer.appearance"] = cfg.appearance
    changes.update(choose_view(cfg))
    return changes


def choose_view(cfg: PlayCfg) -> dict[str, Any]:
    """Return the changes to the task that move its camera to the view of `--camera`, by path.

    Raises:
        ValueError: If there is no such view.
    """
    check_choice("--camera", cfg.camera, (FOLLOW, *VIEWS))
    if cfg.camera == FOLLOW:
        return {}
    # A larger robot is seen from further away.
    distance = NEAREST_VIEW + HEIGHTS_AWAY * make_task_cfg(cfg.task_id).robot.base_height
    eye = tuple(distance * part for part in VIEWS[cfg.camera])
    return {"viewer.eye": eye, "viewer.lookat": None, "viewer.origin_type": "asset_root"}
