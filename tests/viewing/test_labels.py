"""Labels of pictures."""

import numpy as np
import pytest

from legged_envs.viewing.labels import LABEL_HEIGHT, LABEL_MARGIN, draw_label

LABEL = "command  vx +0.60\nspeed    vx +0.66  vy +0.01 m/s  wz -0.02 rad/s  pronk 0.50 s"


def columns_with_letters(width: int) -> np.ndarray:
    picture = np.zeros((360, width, 3), np.uint8)
    draw_label(picture, LABEL)
    assert not picture[LABEL_HEIGHT:].any()
    return np.flatnonzero(picture.max(axis=(0, 2)) > 100)


@pytest.mark.parametrize("width", [320, 560, 960])
def test_no_letter_is_cut_off(width):
    columns = columns_with_letters(width)
    left = columns[0]
    right = width - 1 - columns[-1]
    assert min(left, right) >= LABEL_MARGIN - 2
    assert abs(left - right) < 8
    # A wide picture has letters of the full size, a narrow one is filled.
    assert (left > 50) == (width == 960)
