"""A page of the viewer for tests, and a browser that only speaks its protocol."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import viser
import websockets.sync.client as ws
import zstandard
from viser import _messages as messages

from legged_envs.envs.changes import apply_changes
from legged_envs.policy.policy import load_shipped_policy
from legged_envs.tasks import make_task_cfg
from legged_envs.viewing.scenes import Scene
from legged_envs.viewing.watch import make_watched_envs
from legged_envs.viewing.web.panel import Panel
from legged_envs.viewing.web.play import serving
from legged_envs.viewing.web.session import Session

ID = "Legged/Go2-Flat-v0"
AHEAD = Scene(1.0, (0.5, 0.0, 0.0))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def viewing(task: str = ID, num_envs: int = 2, **changes: Any) -> Iterator[Any]:
    """A page that a test draws frame by frame: only the server has a thread, and nothing waits for time."""
    policy, port = load_shipped_policy(task), free_port()
    cfg = make_task_cfg(task)
    cfg.curriculum = {}
    envs = make_watched_envs(task, apply_changes(cfg, changes), policy, num_envs=num_envs)
    with serving(port) as server:
        panel, pages = (
            Panel(server, session := Session(envs, policy, AHEAD), cfg, [AHEAD]),
            list[Page](),
        )
        yield SimpleNamespace(**locals(), frame=panel.show_frame, stream=panel.stream)
        for page in pages:  # what they have not read would keep the server from stopping
            with suppress(OSError):
                page.socket.socket.shutdown(socket.SHUT_RDWR)
    envs.close()


class Page:
    """A stand-in for a browser: it records every control and scene node that the server sends."""

    def __init__(self, view: Any):
        self._panel, port = view.panel, view.port
        view.pages.append(self)
        protocol: Any = f"viser-v{viser.__version__}"
        url = f"ws://127.0.0.1:{port}"
        self.socket = ws.connect(url, subprotocols=[protocol], compression=None, max_size=None)
        self.controls: dict[str, str] = {}
        self.nodes: dict[str, dict[str, Any]] = {}
        self.told: list[str] = []
        self.cameras: list[tuple[str, tuple[float, ...]]] = []
        camera = (
            (1.0, 0.0, 0.0, 0.0),
            (1.0, 1.0, 1.0),
            1.0,
            0.1,
            100.0,
            480,
            640,
            (0.0, 0.0, 0.0),
            (0.0, 0.0, 1.0),
        )
        self.send(messages.ViewerCameraMessage(*camera))

    def send(self, message: messages.Message) -> None:
        self.socket.send(msgspec.msgpack.encode(message.as_serializable_dict()))

    def read(self, seconds: float = 0.3) -> Page:
        """Take in what comes until nothing does for so long."""
        while True:
            try:
                raw = self.socket.recv(timeout=seconds)
            except TimeoutError:
                return self
            size, packed = (int.from_bytes(raw[i : i + 8], "little") for i in (0, 8))
            inner = msgspec.msgpack.decode(
                zstandard.ZstdDecompressor().decompress(raw[16 : 16 + packed], size)
            )
            place, buffers = 16 + packed, []
            for length in inner["binaryBufferLengths"]:
                place += -place % 8
                buffers.append(raw[place : place + length])
                place += length
            for message in inner["messages"]:
                self._take(message, buffers)

    def _take(self, message: dict[str, Any], buffers: list[bytes]) -> None:
        if "label" in message.get("props", {}):
            self.controls[message["props"]["label"]] = message["uuid"]
        if message["type"] == "SceneNodeUpdateMessage":
            node = self.nodes.setdefault(message["name"], {})
            for key, value in message["updates"].items():
                is_array = isinstance(value, dict) and "__binary_index" in value
                node[key] = (
                    np.frombuffer(buffers[value["__binary_index"]], np.float32)
                    if is_array
                    else value
                )
        if message["type"] in ("SetCameraPositionMessage", "SetCameraLookAtMessage"):
            value = message["position" if "position" in message else "look_at"]
            self.cameras.append((message["type"], tuple(value)))
        if message["type"] == "NotificationShowMessage":
            self.told.append(message["props"]["body"])

    def set(self, label: str, value: Any) -> None:
        """Move a control, and wait until the server has taken it in."""
        self.send(messages.GuiUpdateMessage(self.controls[label], {"value": value}))
        wait(lambda: self._panel.controls[label].value == value)

    def drag(self, body: int, env_id: int, phase: Any, way: tuple[float, float, float]) -> None:
        at = (0.0, 0.0)
        args = (phase, f"/world/{body}", env_id, (0.0, 0.0, 0.0), at, way, at, "left", None)
        self.send(messages.SceneNodeDragMessage(*args))


def wait(done: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)
