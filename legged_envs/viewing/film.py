"""Films: mp4 files of the first robot, with labels and the reference of a clip."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import torch
from gymnasium.vector import VectorEnv

from legged_envs.envs import CoreVectorEnv, unwrap
from legged_envs.envs.cfg import TaskCfg
from legged_envs.evaluation.conditions import PolicyFunction
from legged_envs.evaluation.metrics.mimic import motion_of
from legged_envs.policy.policy import Policy
from legged_envs.runs.progress import Show, show_nothing
from legged_envs.sim.cfg import Pose
from legged_envs.viewing.labels import draw_label, label_scenes
from legged_envs.viewing.scenes import Scene, make_scenes
from legged_envs.viewing.watch import make_watched_envs, watch

# Both are multiples of 16, the block size of the encoder.
RENDER_SIZE = (960, 544)
"""Size of rendered frames without ``viewer.resolution``, pixels."""
VIDEO_WIDTH = 720
"""Width of the video, pixels. Frames are rendered larger than the video and scaled down, which is
the cheapest antialiasing without a GPU."""
FRAMES_PER_SECOND = 25
"""Frame rate of films and of the page."""
VIDEO_QUALITY = 6
"""Quality of the encoder, 0 to 10."""
REFERENCE_OFFSET = (0.0, 0.7, 0.0)
"""Displacement at which the reference is drawn, m, world frame."""
LARGEST_DRIFT = 0.2
"""Largest distance of robot and reference along x and y that is shown, m. With more, the reference
would leave the picture."""


def film_policy(
    task_id: str,
    cfg: TaskCfg,
    policy: Policy,
    path: Path,
    scenes: Sequence[Scene] = (),
    show: Show = show_nothing,
    scan: bool = False,
    fps: int | None = None,
) -> None:
    """Write an mp4 video of a robot under a policy.

    Args:
        task_id: Registered id of the task.
        cfg: Configuration of the task.
        policy: Policy that controls the robot.
        path: Path of the mp4 file to write.
        scenes: Velocity commands or clips to film, in order. Empty: those of :func:`make_scenes`.
        show: Function that reports the progress.
        scan: True: also draw the points of the ground whose heights the policy observes.
        fps: Frames per second, rounded so that frames are whole control steps apart. None:
            ``FRAMES_PER_SECOND``.

    Raises:
        RuntimeError: If this machine cannot render. No file is written.
    """
    with closing(make_watched_envs(task_id, cfg, policy, scan)) as envs:
        groups = tuple(policy.inputs)
        film(envs, policy, groups, scenes or make_scenes(cfg), path, show, fps)


def film(
    envs: VectorEnv,
    policy: PolicyFunction,
    groups: Sequence[str],
    scenes: Sequence[Scene],
    path: Path,
    show: Show = show_nothing,
    fps: int | None = None,
) -> None:
    """Write an mp4 video of the first robot and, next to it, of the reference that it imitates.

    Args:
        envs: Environments that were made with ``EVALUATION_ENV_OPTIONS``.
        policy: Function from observations, one argument per group, to actions.
        groups: Names of the observation groups that are the arguments of the policy, in order.
        scenes: Velocity commands or clips to film, in order.
        path: Path of the mp4 file to write. If filming fails, the file is removed.
        show: Function that reports the progress.
        fps: Frames per second, rounded so that frames are whole control steps apart. None:
            ``FRAMES_PER_SECOND``.

    Raises:
        RuntimeError: If this machine cannot render. No file is written.
    """
    core = unwrap(envs)
    # A video plays in real time, so frames are whole numbers of control steps apart.
    steps_per_frame = max(1, round(1.0 / (core.step_dt * (fps or FRAMES_PER_SECOND))))
    moments = watch(envs, policy, groups, scenes)
    frames = _render_frames(core, moments, steps_per_frame)
    num_steps = sum(round(scene.seconds / core.step_dt) for scene in scenes)
    size = _frame_size(core)
    # The encoder takes only even widths.
    width = VIDEO_WIDTH if core.sim.viewer.resolution is None else size[0] // 2 * 2
    frame_rate = 1.0 / (core.step_dt * steps_per_frame)
    write_film(path, frames, size, width, frame_rate, num_steps / steps_per_frame, show)


def write_film(
    path: Path,
    frames: Iterator[np.ndarray],
    size: tuple[int, int],
    width: int,
    frame_rate: float,
    num_frames: float,
    show: Show = show_nothing,
) -> None:
    """Write an mp4 file of pictures.

    Args:
        path: Path of the mp4 file. If filming fails, the file is removed.
        frames: The pictures. Shape: (height, width, 3), uint8.
        size: Width and height of the pictures, pixels.
        width: Width of the film, an even number of pixels.
        frame_rate: Frames per second.
        num_frames: Number of frames, which may be an estimate, for the progress.
        show: Function that reports the progress.
    """
    import imageio_ffmpeg

    # A machine that cannot render fails here, before a file is made.
    first_frame = next(frames)
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = imageio_ffmpeg.write_frames(
        str(path),
        size,
        fps=frame_rate,
        quality=VIDEO_QUALITY,
        output_params=["-preset", "veryfast", "-vf", f"scale={width}:-2:flags=area"],
    )
    try:
        # Closing waits for the encoder: only then the file is complete.
        with closing(writer):
            # The first value starts the generator. It is no frame.
            writer.send(None)
            writer.send(first_frame.tobytes())
            show("filming", min(1 / num_frames, 1.0))
            for count, frame in enumerate(frames, start=2):
                writer.send(frame.tobytes())
                # The number of frames is an estimate, because scenes are rounded to whole steps.
                show("filming", min(count / num_frames, 1.0))
    except BaseException:
        # Also after Ctrl-C: a part of an mp4 cannot be played.
        path.unlink(missing_ok=True)
        raise


def _render_frames(
    core: CoreVectorEnv, moments: Iterator[Scene], steps_per_frame: int
) -> Iterator[np.ndarray]:
    # Labels see each step, also those without a frame: they average velocities.
    for step, (scene, label) in enumerate(label_scenes(core, moments)):
        if step % steps_per_frame == 0:
            yield render_frame(core, scene, label)


def render_frame(core: CoreVectorEnv, scene: Scene, label: str) -> np.ndarray:
    """Return a picture of the first robot at this moment, with a label.

    Args:
        core: The environments.
        scene: The scene. In a clip, the reference is drawn next to the robot.
        label: Text at the top.

    Returns:
        The picture. Shape: (height, width, 3), uint8.
    """
    reference = None if scene.clip is None else _reference_pose(core)
    picture = core.sim.render(0, *_frame_size(core), ghost=reference)
    draw_label(picture, label)
    return picture


def _reference_pose(core: CoreVectorEnv) -> Pose:
    """Return the pose of the first robot's reference, next to the robot."""
    reference = motion_of(core).player.sample()[0]
    robot_pos_w = core.sim.root_pos_w[0, :2]
    drift = reference.root_pos_w[:2] - robot_pos_w
    drift = drift.clamp(-LARGEST_DRIFT, LARGEST_DRIFT)
    position = torch.cat((robot_pos_w + drift, reference.root_pos_w[2:]))
    position = position + drift.new_tensor(REFERENCE_OFFSET)
    return Pose(position, reference.root_quat_w, reference.joint_pos)


def _frame_size(core: CoreVectorEnv) -> tuple[int, int]:
    """Return width and height of rendered frames, pixels."""
    return core.sim.viewer.resolution or RENDER_SIZE
