"""Controls of the page, whose values are read once in each frame."""

import math
from collections.abc import Sequence
from typing import Any

import viser


class Controls:
    """Sliders, checkboxes, buttons and lists of the page, by their names.

    No control calls back. :meth:`read` finds what changed since its last call.

    Args:
        gui: Controls of the server.
    """

    def __init__(self, gui: viser.GuiApi):
        self.gui = gui
        """Controls of the server, for texts and folders."""
        self.handles: dict[str, Any] = {}
        """Handle of each control, by its name."""
        self.values: dict[str, Any] = {}
        """Value of each control at the last reading, by its name."""
        self._ranges: dict[str, tuple[float, float]] = {}
        self._applied: dict[str, Any] = {}
        self._buttons: list[str] = []

    def add_slider(
        self, name: str, low: float, high: float, step: float, value: float, visible: bool = True
    ) -> None:
        """Add a slider with a range and a first value."""
        self._add(name, self.gui.add_slider(name, low, high, step, value, visible=visible))
        self._ranges[name] = (low, high)

    def set_range(self, name: str, low: float, high: float) -> None:
        """Change the range of a slider, and show the slider."""
        handle = self.handles[name]
        handle.min = low
        handle.max = high
        handle.visible = True
        self._ranges[name] = (low, high)

    def add_checkbox(
        self, name: str, value: bool = False, visible: bool = True, label: str | None = None
    ) -> None:
        """Add a checkbox. Its label is its name if none is given."""
        self._add(name, self.gui.add_checkbox(label or name, value, visible=visible))

    def add_button(self, name: str) -> None:
        """Add a button. In the frame after it was pressed, its value is True."""
        self._add(name, self.gui.add_button(name))
        self._buttons.append(name)
        self._applied[name] = False

    def add_dropdown(self, name: str, options: Sequence[str], value: str | None = None) -> None:
        """Add a list to choose from."""
        self._add(name, self.gui.add_dropdown(name, tuple(options), initial_value=value))

    def add_text(self, name: str) -> None:
        """Add a field for a text."""
        self._add(name, self.gui.add_text(name, ""))

    def _add(self, name: str, handle: Any) -> None:
        self.handles[name] = handle
        self.values[name] = handle.value
        self._applied[name] = handle.value

    def show(self, name: str, value: Any) -> None:
        """Show a value, which counts as applied: :meth:`read` reports no change."""
        self.handles[name].value = value
        self.values[name] = value
        self._applied[name] = value

    def read(self) -> set[str]:
        """Read all controls, and return the names of those that changed.

        A change is reported once, so that a mistake is not tried again in each frame.
        """
        changed = set()
        for name in self.handles:
            value = self._read_one(name)
            if name not in self._applied or value != self._applied[name]:
                changed.add(name)
            self.values[name] = value
            self._applied[name] = value
        for name in self._buttons:
            self._applied[name] = False
            if name in changed:
                self.handles[name].value = False
        return changed

    def _read_one(self, name: str) -> Any:
        """Return the value of a control. One that the page cannot send is replaced, and shown."""
        control = self.handles[name]
        value = control.value
        # A program may send any value, instead of the page.
        if name in self._ranges:
            allowed = self._clip(name, value)
        else:
            options = getattr(control, "options", None)
            is_allowed = options is None or value in options
            allowed = value if is_allowed else self.values[name]
        if allowed != value or value != value:
            control.value = allowed
        return allowed

    def _clip(self, name: str, value: Any) -> Any:
        """Return the value of a slider within its range, its last one instead of NaN."""
        low, high = self._ranges[name]
        if not math.isfinite(value):
            return self.values[name]
        return min(max(value, low), high)
