"""Labels in rendered frames, which show the command of a robot and its measured velocity."""

from collections.abc import Iterable, Iterator

import numpy as np

from legged_envs.envs import CoreVectorEnv
from legged_envs.viewing.scenes import Scene

LABEL_HEIGHT = 56
"""Height of the label at the top of a rendered frame, pixels."""
LETTER_SIZE = 19
"""Font size of a label, pixels. In narrow pictures it is smaller."""
LABEL_MARGIN = 8
"""Least space left and right of a label, pixels."""
LABEL_BRIGHTNESS = 0.35
"""Factor on the brightness of the frame behind a label, 0 to 1."""
SMOOTHING_TIME = 0.3
"""Time constant of the exponential average of displayed velocities, s. Raw values oscillate within
a stride."""


class SmoothedVelocity:
    """Exponential average of a robot's velocity in the base frame, for display."""

    def __init__(self) -> None:
        self.value = np.zeros(3)
        """Averaged velocity: vx, m/s, vy, m/s, and yaw rate wz, rad/s. Shape: (3,)."""

    def update(self, core: CoreVectorEnv, env_id: int) -> None:
        """Update the average with the current velocity. Call it after each control step.

        Args:
            core: Environments, without wrappers.
            env_id: Index of the robot's environment.
        """
        vx, vy = core.robot.lin_vel_b[env_id, :2].tolist()
        wz = core.robot.ang_vel_b[env_id, 2].item()
        # An exponential average needs no history.
        measured = np.array((vx, vy, wz))
        self.value += (measured - self.value) * core.step_dt / SMOOTHING_TIME


def label_scenes(core: CoreVectorEnv, scenes: Iterable[Scene]) -> Iterator[tuple[Scene, str]]:
    """Yield each scene of a film with its caption: command and speed of the first robot.

    Args:
        core: The environments.
        scenes: What is shown after each control step. Taking the next item makes the step.
    """
    velocity = SmoothedVelocity()
    for scene in scenes:
        # A robot that imitates a motion has no command to compare its velocity with.
        if scene.clip is not None:
            yield scene, scene.clip
            continue
        velocity.update(core, env_id=0)
        label = _format_velocity("speed", *velocity.value)
        if scene.command is not None:
            label = f"{_format_velocity('command', *scene.command)}\n{label}"
        if scene.gait is not None:
            label += f"  {scene.gait.gait}"
        yield scene, label


def _format_velocity(title: str, vx: float, vy: float, wz: float) -> str:
    return f"{title:7}  vx {vx:+.2f}  vy {vy:+.2f} m/s  wz {wz:+.2f} rad/s"


def draw_label(picture: np.ndarray, label: str) -> None:
    """Draw a label into the top of a picture, white on a darkened background.

    Args:
        picture: The picture, changed in place. Shape: (height, width, 3), uint8.
        label: One or two lines of text.
    """
    ink = _render_text(label, picture.shape[1])
    # The letters stay readable on a bright sky.
    background = picture[:LABEL_HEIGHT] * (LABEL_BRIGHTNESS * (1.0 - ink))
    picture[:LABEL_HEIGHT] = background + 255.0 * ink


def _render_text(text: str, width: int) -> np.ndarray:
    """Return the ink at each pixel of a label, 0 to 1. Shape: (LABEL_HEIGHT, width, 1)."""
    from matplotlib import get_data_path
    from PIL import Image, ImageDraw, ImageFont

    # Matplotlib ships this font. Its letters have one width, so that numbers do not jump.
    file = f"{get_data_path()}/fonts/ttf/DejaVuSansMono.ttf"
    font = ImageFont.truetype(file, LETTER_SIZE)
    longest = max(font.getlength(line) for line in text.split("\n"))
    space = width - 2 * LABEL_MARGIN
    if longest > space:
        # A narrow picture has smaller letters, so that no word is cut off.
        font = ImageFont.truetype(file, LETTER_SIZE * space / longest)
    image = Image.new("L", (width, LABEL_HEIGHT))
    centre = (width / 2, LABEL_HEIGHT / 2)
    ImageDraw.Draw(image).multiline_text(
        centre, text, fill=255, font=font, anchor="mm", align="center"
    )
    return np.asarray(image)[..., None] / np.float32(255.0)
