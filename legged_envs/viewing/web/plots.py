"""Curves on the page."""

from collections.abc import Sequence
from colorsys import hls_to_rgb
from typing import Any

import numpy as np
import viser

HISTORY = 150
"""Number of control steps that a plot shows."""
PLOT_HEIGHT = 230
"""Height of a plot, pixels."""
LIMIT = "limit"
"""Name of a curve that is drawn in grey."""


class Plot:
    """Curves over the last :data:`HISTORY` control steps.

    Args:
        gui: Controls of the page.
        title: Title of the plot.
        names: Names of the curves. Without any, the page has no such plot.
    """

    def __init__(self, gui: viser.GuiApi, title: str, names: Sequence[str]):
        self.rows = np.zeros((HISTORY, len(names) + 1))
        """Time, s, and the value of each curve. Shape: (HISTORY, num_curves + 1)."""
        self._handle = None
        if names:
            # The first column is the time, which is no curve.
            series: list[Any] = [{}]
            for index, name in enumerate(names):
                # Hues are spread evenly, so that the curves differ as much as possible.
                color = make_color(index / len(names), saturated=name != LIMIT)
                series.append({"label": name, "stroke": color, "width": 1.5})
            self._handle = gui.add_uplot(
                tuple(self.rows.T),
                tuple(series),
                title=title,
                scales={"x": {"time": False}},
                height=PLOT_HEIGHT,
            )

    def add(self, time: float, values: Sequence[float]) -> None:
        """Add a row.

        Args:
            time: Time of the row, s.
            values: Value of each curve.
        """
        self.rows = np.vstack((self.rows[1:], (time, *values)))

    def draw(self) -> None:
        """Show ``rows`` on the page."""
        if self._handle is not None:
            self._handle.data = tuple(self.rows.T)


def make_color(hue: float, saturated: bool) -> str:
    """Return a color as CSS writes it.

    Args:
        hue: Hue, 0 to 1.
        saturated: False: grey.
    """
    red, green, blue = hls_to_rgb(hue, 0.45, 0.8 if saturated else 0.0)
    return f"rgb({255 * red:.0f},{255 * green:.0f},{255 * blue:.0f})"
