"""Curves on the page: a tab for each kind, with the curves that are chosen."""

from collections.abc import Sequence
from colorsys import hls_to_rgb
from typing import Any

import numpy as np

from legged_envs.viewing.web.controls import Controls

HISTORY = 150
"""Number of control steps that a plot shows."""
PLOT_HEIGHT = 260
"""Height of a plot, pixels."""
NUM_CHOSEN = 4
"""Number of curves of a plot that are chosen at first."""
LIMIT = "limit"
"""Name of a curve at 1, in grey. It is drawn below all others and is always shown."""


class Plot:
    """A tab with curves over the last :data:`HISTORY` control steps, and a checkbox for each.

    Args:
        controls: Controls of the page.
        tab: Name of the tab.
        title: Title of the plot, with its unit.
        names: Names of the curves.
        chosen: Names of the curves that are shown at first. None: the first :data:`NUM_CHOSEN`.
        has_limit: True: also draw :data:`LIMIT`.
    """

    def __init__(
        self,
        controls: Controls,
        tab: str,
        title: str,
        names: Sequence[str],
        chosen: Sequence[str] | None = None,
        has_limit: bool = False,
    ):
        self.rows = np.zeros((HISTORY, len(names) + 1))
        """Time, s, and the value of each curve. Shape: (HISTORY, num_curves + 1)."""
        self.chosen: list[str] = []
        """Names of the curves that are shown."""
        self._controls = controls
        self._names = tuple(names)
        self._title = title
        self._has_limit = has_limit
        self._handle: Any = None
        if chosen is None:
            chosen = self._names[:NUM_CHOSEN]
        # An empty folder without a title keeps the place of the plot above the checkboxes.
        self._place = controls.gui.add_folder(None)
        self._switches = {name: f"{tab}: {name}" for name in self._names}
        for name, switch in self._switches.items():
            controls.add_checkbox(switch, name in chosen, label=name)
        self.choose()

    def choose(self) -> None:
        """Show the curves whose checkboxes are ticked."""
        chosen = [name for name, switch in self._switches.items() if self._controls.values[switch]]
        if chosen == self.chosen and self._handle is not None:
            return
        self.chosen = chosen
        # A new plot: the browser would show new names with old numbers for a moment.
        if self._handle is not None:
            self._handle.remove()
        with self._place:
            self._handle = self._controls.gui.add_uplot(
                self._make_data(),
                self._make_series(),
                title=self._title,
                scales={"x": {"time": False}},
                axes=({"label": "time, s"}, {}),
                height=PLOT_HEIGHT,
            )

    def _make_series(self) -> tuple[Any, ...]:
        # The first column is the time, which is no curve.
        series: list[Any] = [{"label": "time, s"}]
        if self._has_limit or not self.chosen:
            series.append({"label": LIMIT, "stroke": make_color(0.0, saturated=False), "width": 2})
        for index, name in enumerate(self.chosen):
            # Hues are spread evenly, so that the curves differ as much as possible.
            color = make_color(index / len(self.chosen), saturated=True)
            series.append({"label": name, "stroke": color, "width": 1.5})
        return tuple(series)

    def _make_data(self) -> tuple[np.ndarray, ...]:
        time = self.rows[:, 0]
        columns = [time]
        # A plot needs at least one curve.
        if self._has_limit or not self.chosen:
            columns.append(np.ones(HISTORY) if self._has_limit else np.zeros(HISTORY))
        for name in self.chosen:
            columns.append(self.rows[:, 1 + self._names.index(name)])
        return tuple(columns)

    def add(self, time: float, values: Sequence[float]) -> None:
        """Add a row.

        Args:
            time: Time of the row, s.
            values: Value of each curve.
        """
        self.rows = np.vstack((self.rows[1:], (time, *values)))

    def draw(self) -> None:
        """Show ``rows`` on the page."""
        self._handle.data = self._make_data()


def make_color(hue: float, saturated: bool) -> str:
    """Return a color as CSS writes it.

    Args:
        hue: Hue, 0 to 1.
        saturated: False: grey.
    """
    red, green, blue = hls_to_rgb(hue, 0.45, 0.8 if saturated else 0.0)
    return f"rgb({255 * red:.0f},{255 * green:.0f},{255 * blue:.0f})"
