"""MuJoCo's renderer of pictures without a window, usable from any thread."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import mujoco

from legged_envs.sim.render.errors import rendering_error


class OffscreenRenderer:
    """Keeps a ``mujoco.Renderer`` from picture to picture, for use in any thread.

    A new renderer is made when the size of the pictures changes. OpenGL binds a context to a
    thread. After each picture the renderer's context is released, so that any thread can draw the
    next picture. Two threads must not draw at the same time.
    """

    def __init__(self) -> None:
        self.renderer: mujoco.Renderer | None = None
        """MuJoCo's renderer for pictures of the last size. None before the first picture."""
        self._of_thread = threading.local()

    @contextmanager
    def open(self, model: mujoco.MjModel, width: int, height: int) -> Iterator[mujoco.Renderer]:
        """Yield a renderer for one picture, in a ``with`` statement.

        Args:
            model: Model that is drawn. Call ``close`` before another model is drawn.
            width: Width, pixels.
            height: Height, pixels.

        Raises:
            RuntimeError: OpenGL does not start.
        """
        try:
            context = self._context_of_thread()
            with context.as_current():
                renderer = self._renderer_of_size(model, width, height)
        except Exception as error:
            raise rendering_error("rendering failed to start", error) from error
        with context.as_current():
            yield renderer

    # A string: mujoco has no GLContext where MUJOCO_GL names no backend, and physics works there.
    def _context_of_thread(self) -> "mujoco.GLContext":
        """Return a small context of this thread: a return to it releases the renderer's."""
        if not hasattr(self._of_thread, "context"):
            self._of_thread.context = mujoco.GLContext(1, 1)
        return self._of_thread.context

    def _renderer_of_size(self, model: mujoco.MjModel, width: int, height: int) -> mujoco.Renderer:
        renderer = self.renderer
        if renderer is not None and (renderer.width, renderer.height) == (width, height):
            return renderer
        # Only one at a time: each holds a picture of its size in video memory.
        self.close()
        self.renderer = mujoco.Renderer(model, height=height, width=width)
        return self.renderer

    def close(self) -> None:
        """Free the renderer. The next picture makes a new one."""
        renderer = self.renderer
        self.renderer = None
        if renderer is not None:
            renderer.close()
