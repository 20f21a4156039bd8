"""The viewer in a browser, through the protocol that its page speaks and, where there is one, in Chromium."""

from __future__ import annotations

import math
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import msgspec
import mujoco
import numpy as np
import pytest
import torch
import viser
import websockets.sync.client as ws
from chromium import FLAGS, SLOWLY, chromium
from viser import _messages as messages
from web_page import AHEAD, ID, Page, free_port, viewing, wait
from websockets.exceptions import InvalidStatus

from legged_envs import cli
from legged_envs.envs import unwrap
from legged_envs.policy.metadata import contract
from legged_envs.policy.policy import SHIPPED, Policy, load_shipped_policy
from legged_envs.robots import GO2
from legged_envs.sim import SimCfg
from legged_envs.sim.ground import Ground
from legged_envs.sim.scene import build_scene
from legged_envs.tables import shorten
from legged_envs.tasks import make_task_cfg
from legged_envs.terrains import TerrainCfg
from legged_envs.terrains.terrain import make_terrain
from legged_envs.viewing.keys import KEYS, Keys
from legged_envs.viewing.scenes import Scene, make_scenes
from legged_envs.viewing.watch import find_height_scan, make_watched_envs
from legged_envs.viewing.web.door import is_page_message
from legged_envs.viewing.web.meshes import make_body_mesh, make_field_mesh
from legged_envs.viewing.web.overlays import SCAN_HEIGHT
from legged_envs.viewing.web.panel import Panel
from legged_envs.viewing.web.play import serving
from legged_envs.viewing.web.session import Session

ROUGH = "Legged/Go2-Rough-v0"


def heading(core: Any) -> torch.Tensor:
    return core.robot.heading().clone()


def test_a_slider_on_the_page_turns_the_robots_and_the_page_shows_it():
    with viewing() as view:
        html = (
            urllib.request.urlopen(f"http://127.0.0.1:{view.port}", timeout=10)
            .read()
            .decode(errors="replace")
        )
        assert not re.search(
            r"<(?:script|link|img)[^>]*(?:src|href)=[\"']https?://", html
        )  # all is in the page
        page = Page(view).read()
        wait(lambda: len(view.server.get_clients()) == 1)
        view.frame()
        before = heading(view.session.core)
        page.set("vx [m/s]", 0.0)
        page.set("wz [rad/s]", 0.8)
        for _ in range(25):
            view.frame()
        turned = heading(view.session.core) - before
        assert ((turned > 0.4) & (turned < 1.0)).all(), (
            turned
        )  # 0.8 rad after a second, less what it takes to begin
        assert view.session.scene.command == (0.0, 0.0, 0.8)
        page.set("pause", True)
        view.frame()
        base = min(view.stream.bodies)
        shown = page.read().nodes[f"/world/{base}"]["batched_wxyzs"].reshape(2, 4)
        np.testing.assert_allclose(shown, view.session.core.sim.root_quat_w.numpy(), atol=1e-5)
        steps = view.session.core.num_steps
        view.frame()
        assert view.session.core.num_steps == steps
        page.set("pause", False)
        page.set("speed", 0.25)
        for _ in range(8):
            view.frame()
        assert view.session.core.num_steps == steps + 4  # a quarter of 2 steps a frame


def test_the_mouse_pulls_one_robot_and_lets_go():
    with viewing() as view:
        page, core = Page(view).read(), view.session.core
        page.set("vx [m/s]", 0.0)
        for _ in range(30):
            view.frame()
        before = core.sim.root_pos_w.clone()
        page.drag(min(view.stream.bodies), 1, "start", (0.0, 0.0, 0.0))
        page.drag(min(view.stream.bodies), 1, "update", (0.0, 0.5, 0.0))
        wait(lambda: len(view.stream._drag_events) == 2)
        for _ in range(10):
            view.frame()
        way = core.sim.root_pos_w - before
        assert way[1, 1] > 0.15 and abs(way[0, 1]) < 0.05
        for _ in range(
            90
        ):  # the mouse stands still, no more is told of it: the robot comes to it and stays
            view.frame()
        wanted = view.session.pull[1] - before[1].numpy()
        np.testing.assert_allclose(wanted[:2], (0.0, 0.5), atol=0.1)
        assert abs(core.sim.root_pos_w[1].numpy() - view.session.pull[1])[:2].max() < 0.25
        page.drag(min(view.stream.bodies), 1, "end", (0.0, 0.5, 0.0))
        wait(lambda: view.stream._drag_events)
        view.frame()
        assert view.session.pull is None


def test_the_mouse_lets_go_of_a_robot_whose_episode_begins_anew():
    with viewing() as view:
        page, base = Page(view).read(), min(view.stream.bodies)
        page.drag(base, 0, "start", (0.0, 0.0, 0.0))
        page.drag(base, 0, "update", (0.0, 0.0, 0.3))
        wait(lambda: len(view.stream._drag_events) == 2)
        view.frame()
        assert view.session.pull[0] == 0
        page.set("restart", True)
        for phase in ("update", "update"):
            view.frame()
            page.drag(base, 0, phase, (0.0, 0.0, 0.3))
            wait(lambda: view.stream._drag_events)
        view.frame()
        assert view.session.pull is None
        page.drag(base, 1, "start", (0.0, 0.0, 0.0))
        wait(lambda: view.stream._drag_events)
        view.frame()
        assert view.session.pull[0] == 1


@pytest.mark.parametrize("task", ["Legged/Go2-Pair-v0", "Legged/Go2-Mimic-v0"])
def test_a_task_without_named_rewards_or_commands_has_a_page(task):
    policy = load_shipped_policy(task) if task in SHIPPED else None
    cfg, port = make_task_cfg(task), free_port()
    with closing(gym.make_vec(task, num_envs=2, observations="dict", array="torch")) as envs:
        meaning = contract(task, unwrap(envs))
    policy = policy or Policy(
        lambda *seen: torch.zeros(len(seen[0]), meaning["action_size"]), meaning
    )
    scene = make_scenes(cfg, clips=policy.clips)[0]
    with closing(make_watched_envs(task, cfg, policy, num_envs=2)) as envs, serving(port) as server:
        panel = Panel(server, Session(envs, policy, scene), cfg, [scene])
        for _ in range(6):
            panel.show_frame()
        assert ("vx [m/s]" in panel.controls) is (scene.clip is None)


def test_a_task_without_a_group_of_terms_sees_no_ground():
    cfg = make_task_cfg(ID)
    cfg.observations = {}
    with pytest.raises(ValueError, match="--scan"):
        find_height_scan(cfg)


def test_weights_policies_and_mistakes_from_the_page(tmp_path):
    with viewing() as view:
        page, core = Page(view).read(), view.session.core
        wait(lambda: len(view.server.get_clients()) == 1)
        name = "tracking_lin_vel"
        for _ in range(40):
            view.frame()
        column = core.rewards.names.index(name)
        rate, weight = view.session.rewards[0, column].item(), core.rewards.weights[column]
        page.set(f"weight of {name}", 2.0)
        for _ in range(60):
            view.frame()
        assert view.session.rewards[0, column].item() == pytest.approx(2.0 * rate, rel=0.15)
        small = (
            core.rewards.names.index("joint_acc") if "joint_acc" in core.rewards.names else column
        )
        assert core.rewards.weights[column] == 2.0 * weight and core.rewards.weights[small] != 0.0
        page.set("policy", "shipped")
        view.frame()
        assert view.session.policy is not (begun := view.policy)
        page.set("file or run", str(tmp_path))
        page.set("load policy", True)
        view.frame()
        assert page.read().told == [f"there is no policy file '{tmp_path}/policy.safetensors'"]
        before = view.session.policy
        view.frame()  # it goes on as before, and it is told once
        assert len(page.read().told) == 1 and view.session.policy is before is not begun
        shutil.copy(
            SHIPPED[ID],
            tmp_path / "policy.safetensors",
        )
        page.set("load policy", True)
        view.frame()
        assert view.session.policy is not before and view.panel.controls["policy"].value == str(
            tmp_path
        )


def test_a_policy_that_gives_no_numbers_here_is_told_and_the_old_one_stays():
    with viewing() as view:
        page, begun = Page(view).read(), view.session.policy
        wait(lambda: len(view.server.get_clients()) == 1)
        view.panel.menu.policies["broken"] = Policy(
            lambda seen: torch.full((2, 12), torch.nan), begun.contract
        )
        view.panel.controls["policy"].options = ("as begun", "broken")
        page.set("policy", "broken")
        view.frame()
        assert page.read().told == [f"the policy of '{ID}' gives no finite actions here"]
        assert view.panel.controls["policy"].value == "as begun"
        view.frame()
        assert view.session.policy is begun


def test_a_command_that_only_windows_take_is_kept_on_the_page():
    """0 is a command also where the task's ranges begin above it."""
    with viewing(**{"commands.velocity.lin_vel_x": (0.3, 1.0)}) as view:
        slow = replace(AHEAD, command=(0.0, 0.0, 0.0))
        panel = Panel(
            view.server, Session(view.envs, view.policy, slow), view.envs.unwrapped.cfg, [slow]
        )
        assert panel.controls["vx [m/s]"].value == panel.controls["vx [m/s]"].min == 0.0


def test_a_level_puts_every_robot_on_its_tiles_and_the_ground_is_drawn_there():
    small = {"scene.terrain.rows": 3, "scene.terrain.columns": 7, "scene.terrain.border": 5.0}
    with viewing(ROUGH, 3, **small) as view:
        page, ground = Page(view).read(), view.session.core.sim.ground
        page.set("terrain", "stairs_up")
        page.set("level", 2)
        page.set("height scan", True)
        page.set("contact forces", True)
        for _ in range(12):
            view.frame()
        assert (ground.levels == 2).all()
        assert {ground.terrain.kinds[column] for column in ground.columns.tolist()} == {"stairs_up"}
        scan = view.stream.overlays.points.points
        x, y, z = torch.from_numpy(scan.astype(np.float32)).unbind(-1)
        assert len(scan) == 187 and torch.allclose(z, ground.lowest(x, y) + SCAN_HEIGHT, atol=1e-5)
        arrows = view.stream.overlays.forces.points
        lift = (arrows[:, 1, 2] - arrows[:, 0, 2]).sum() / 0.5 / 3  # of the weight of a robot
        assert 0.3 < lift < 3.0
        assert abs(view.session.core.sim.root_pos_w[0] - ground.origins[0]).max() < 2.5


def test_a_browser_that_goes_in_the_middle_of_a_frame_is_one_line(capsys, caplog):
    with viewing() as view:
        page = Page(view).read()
        wait(lambda: len(view.server.get_clients()) == 1)
        view.frame()
        page.socket.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        page.socket.socket.close()  # no goodbye: the connection is reset
        for _ in range(20):
            view.frame()
        wait(lambda: not view.server.get_clients())
        other = Page(view).read()
        view.frame()
        assert other.read().nodes
    told = capsys.readouterr()
    assert told.out.splitlines()[:3] == [
        "browser 0 is there",
        "browser 0 has gone",
        "browser 1 is there",
    ]
    assert "Traceback" not in told.err + told.out + caplog.text


def test_a_frame_of_sixteen_robots_leaves_a_processor_time_for_25_a_second():
    with viewing(num_envs=16) as view:
        page = Page(view).read()
        view.frame()
        begun, frames = time.process_time(), 25
        for _ in range(frames):
            view.frame()
            page.read(0.001)
        cost = (time.process_time() - begun) / frames
        assert cost < 0.08, (
            f"{1000 * cost:.0f} ms"
        )  # two processors have that at 25 frames a second


def test_shapes_are_as_large_as_the_engine_has_them():
    model = build_scene(GO2, SimCfg())
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    for body in range(model.nbody):
        shown = np.flatnonzero(
            (model.geom_bodyid == body) & (model.geom_group < 3) & (model.geom_type > 1)
        )
        if (mesh := make_body_mesh(model, body)) is None:
            assert not len(shown)
            continue
        corners = np.array(np.meshgrid(*[(-1.0, 1.0)] * 3)).reshape(3, -1).T
        boxes, quat = [], np.empty(9)
        for i in shown:
            mujoco.mju_quat2Mat(quat, model.geom_quat[i])
            aabb = model.geom_aabb[i]
            boxes.append((aabb[:3] + corners * aabb[3:]) @ quat.reshape(3, 3).T + model.geom_pos[i])
        low, high = np.concatenate(boxes).min(0), np.concatenate(boxes).max(0)
        assert (mesh.bounds[0] >= low - 1e-6).all() and (mesh.bounds[1] <= high + 1e-6).all()
        assert (
            mesh.extents.prod() > 0.6 * (high - low).prod()
        )  # boxes of turned shapes are larger than they
        assert np.allclose(np.linalg.norm(mesh.vertex_normals, axis=1), 1.0)
    assert (
        len(np.unique(make_body_mesh(model, model.body("base").id).visual.vertex_colors, axis=0))
        > 3
    )


def test_the_ground_is_drawn_where_feet_touch_it():
    terrain = make_terrain(
        TerrainCfg({"rubble": 1.0, "stairs_up": 1.0}, rows=1, columns=2, size=4.0, border=1.0)
    )
    nx, ny = terrain.heights.shape
    vertices, faces = make_field_mesh(terrain, np.arange(nx), np.arange(ny))
    inside = torch.from_numpy(vertices[faces].mean(1)).float()
    height = Ground(terrain, 1, torch.device("cpu")).height(inside[:, 0], inside[:, 1])
    torch.testing.assert_close(inside[:, 2], height, atol=1e-4, rtol=0.0)
    corners = vertices[faces]
    assert (
        np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])[:, 2] > 0.0
    ).all()  # seen from above


def test_keys_drive_the_robot_of_the_window_from_what_it_does():
    keys = Keys(make_task_cfg(ID))
    scenes = keys.drive([Scene(0.06, (0.5, 0.0, 0.0)), Scene(0.02, (0.0, 0.0, 0.3))], 0.02)
    keys.press(265)  # before the first step there is nothing to change
    assert [next(scenes).command for _ in range(2)] == [(0.5, 0.0, 0.0)] * 2
    keys.press(ord("A"))
    assert keys.command is None
    for key in (265, 263, 268):
        keys.press(key)
    assert next(scenes) == Scene(0.02, (0.6, 0.1, 0.1))
    for _ in range(30):
        keys.press(264)
    assert next(scenes).command == (-1.0, 0.1, 0.1)  # the least of the task
    keys.press(257)
    assert next(scenes).command == (0.0, 0.0, 0.0) and next(scenes).seconds == 0.02
    unheard = Keys(make_task_cfg(ID)).drive([Scene(0.06, (0.5, 0.0, 0.0))], 0.02)
    assert len(list(unheard)) == 3 and len(KEYS) == 7


def refused(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        cli.main(words.split())
    lines = capsys.readouterr().err.splitlines()
    assert stop.value.code == 2 and len(lines) == 1
    return lines[0]


def test_a_mistake_is_one_line_before_anything_is_made(capsys, monkeypatch):
    monkeypatch.setattr(
        "legged_envs.viewing.web.play.play", lambda *args: pytest.fail("it was served")
    )
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        told = refused(f"play {ID} --web --port {port}", capsys)
        assert f"cannot serve at 127.0.0.1, --port {port}: " in told and told.endswith(
            "already in use; choose another"
        )
    assert "--num-envs 3 needs --web" in refused(f"play {ID} --num-envs 3", capsys)
    assert "it takes no --video" in refused(f"play {ID} --web --video a.mp4", capsys)
    assert "--port must be a positive integer and at most 65535" in refused(
        f"play {ID} --web --port 70000", capsys
    )
    monkeypatch.setitem(sys.modules, "viser", None)
    assert "no module viser: pip install 'legged-envs[web]'" in refused(f"play {ID} --web", capsys)


def test_nothing_of_the_viewer_is_loaded_unless_it_is_used():
    code = "import sys, legged_envs.cli, legged_envs.viewing.play, legged_envs.viewing.web.play\n"
    code += "assert not {'viser', 'trimesh', 'websockets'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.skipif(
    chromium() is None, reason="there is no Chromium: make chromium, or let CHROMIUM name one"
)
def test_in_chromium_the_page_loads_and_a_slider_turns_the_robot(tmp_path):
    """The command as a user calls it, in a separate process, and its page in a browser."""
    playwright, port, log = (
        pytest.importorskip("playwright.sync_api"),
        free_port(),
        tmp_path / "log",
    )
    command = [
        sys.executable,
        "-m",
        "legged_envs",
        "play",
        ID,
        "--web",
        "--port",
        str(port),
        "--vx",
        "0",
    ]
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out) as viewer:
        try:
            wait(lambda: "Ctrl-C ends" in log.read_text(), 120.0)
            with playwright.sync_playwright() as started:
                browser = started.chromium.launch(
                    executable_path=chromium(), args=FLAGS, timeout=120_000
                )
                page = browser.new_page(locale="en-US", viewport={"width": 640, "height": 400})
                page.set_default_timeout(120_000)
                page.add_init_script(SLOWLY)
                asked: list[str] = []
                page.on("request", lambda request: asked.append(request.url))
                page.goto(re.search(r"http://localhost:\S+", log.read_text())[0])
                label = page.locator("label", has_text="wz [rad/s]")
                assert page.get_by_text(re.compile(r"wz [+-]0\.0\d rad/s")).text_content()
                page.locator(f"[id='{label.get_attribute('for')}'] [role=slider]").press("End")
                page.get_by_text(re.compile(r"wz \+(0\.[5-9]|1\.\d)\d rad/s")).wait_for()
                browser.close()
            assert all(
                url.startswith((f"http://localhost:{port}", "blob:", "data:")) for url in asked
            ), asked
            wait(lambda: "browser 0 has gone" in log.read_text(), 60.0)
        finally:
            viewer.terminate()
    assert "Traceback" not in log.read_text()


# --- who may use the page -------------------------------------------------------------------------


TOKEN = "s3cret"


def connect(port: int, path: str = "/", **headers: str) -> ws.ClientConnection:
    protocol: Any = f"viser-v{viser.__version__}"
    return ws.connect(
        f"ws://127.0.0.1:{port}{path}",
        subprotocols=[protocol],
        compression=None,
        additional_headers=headers,
    )


def status_of(port: int, path: str, **headers: str) -> tuple[int, str]:
    """Status of a request for a file, and the cookie of the answer without its attributes."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, (answer.headers["Set-Cookie"] or "").partition(";")[0]
    except urllib.error.HTTPError as error:
        return error.code, ""


@pytest.fixture(scope="module")
def guarded() -> Iterator[int]:
    """Port of a page with a token."""
    port = free_port()
    with serving(port, TOKEN):
        yield port


WITH_TOKEN = f"/?token={TOKEN}"


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {}),
        ("/?token=", {}),
        ("/?token=other", {}),
        ("/", {"Cookie": "legged-envs-token=s3cret"}),
        (WITH_TOKEN, {"Origin": "http://evil.example"}),
        (WITH_TOKEN, {"Origin": "null"}),
        (WITH_TOKEN, {"Origin": "https://127.0.0.1"}),
        (WITH_TOKEN, {"Origin": "http://127.0.0.1:1"}),
    ],
)
def test_a_stranger_gets_neither_a_channel_nor_a_file(
    path: str, headers: dict[str, str], guarded: int
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        connect(guarded, path, **headers)
    assert refused.value.response.status_code == 403
    assert status_of(guarded, path, **headers)[0] == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "localhost.evil.example"])
def test_a_name_that_somebody_gave_to_this_machine_is_refused(host: str, guarded: int) -> None:
    assert status_of(guarded, WITH_TOKEN, Host=host)[0] == 403
    assert status_of(guarded, WITH_TOKEN, Host=host, Origin=f"http://{host}")[0] == 403


def test_the_printed_address_opens_the_page_and_its_cookie_the_channel(guarded: int) -> None:
    status, cookie = status_of(guarded, WITH_TOKEN)
    assert status == 200
    assert status_of(guarded, "/")[0] == 403
    own = {"Cookie": cookie, "Origin": f"http://127.0.0.1:{guarded}"}
    assert status_of(guarded, "/", **own)[0] == 200
    connect(guarded, "/", **own).close()
    # Through a tunnel the page has another port, in Host and in Origin.
    tunnel = {"Host": "localhost:9", "Origin": "http://localhost:9"}
    assert status_of(guarded, WITH_TOKEN, **tunnel)[0] == 200
    # A program that is no browser sends no origin.
    connect(guarded, WITH_TOKEN).close()


def test_a_version_of_viser_that_asks_nobody_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viser, "ViserServer", lambda *_, **__: None)
    with pytest.raises(RuntimeError, match="viser"), serving(free_port(), TOKEN):
        pass


def message(**entries: Any) -> bytes:
    return msgspec.msgpack.encode(entries)


UPDATE = {"type": "GuiUpdateMessage", "uuid": "a"}


@pytest.mark.parametrize(
    ("data", "accepted"),
    [
        (message(**UPDATE, updates={"value": 1.0}), True),
        (message(**UPDATE, updates={"value": "runs/a"}), True),
        (message(**UPDATE, updates={"value": math.nan}), False),
        (message(**UPDATE, updates={"value": math.inf}), False),
        (message(**UPDATE, updates={"value": "x" * 5000}), False),
        (message(**UPDATE, updates={"value": 2**60}), False),
        (message(**UPDATE, updates={"value": 1, "update_cb": []}), False),
        (message(**UPDATE, updates={"removed": True}), False),
        (message(**UPDATE, updates=3), False),
        (message(**UPDATE), False),
        (message(type="ShareUrlRequest"), False),
        (message(type="FileTransferStartUpload", size_bytes=2**40), False),
        (message(type=["GuiUpdateMessage"]), False),
        (message(value=1), False),
        (msgspec.msgpack.encode([1]), False),
        (b"\xc1", False),
        (b"", False),
        (b"\x91" * 100_000, False),
        ("text", False),
    ],
    ids=lambda value: str(value)[:40],
)
def test_only_messages_of_the_page_pass(data: object, accepted: bool) -> None:
    assert is_page_message(data) is accepted


@pytest.mark.parametrize(
    ("label", "value", "kept"),
    [
        ("follow robot", 99, 1),
        ("follow robot", -5, 0),
        ("vx [m/s]", 1e9, 1.0),
        ("vx [m/s]", math.nan, 0.5),
        ("speed", 1e9, 2.0),
        ("speed", -1.0, 0.05),
        ("policy", "/etc/passwd", "as begun"),
        ("weight of tracking_lin_vel", -1e30, 0.0),
    ],
)
def test_a_value_that_the_page_cannot_send_is_kept_in_its_range(
    label: str, value: object, kept: object
) -> None:
    with viewing() as view:
        view.frame()
        # As the server sets it for a program that sends it.
        view.panel.controls[label].value = value
        steps = view.session.core.num_steps
        view.frame()
        assert view.panel.controls[label].value == kept
        assert 0 <= view.session.core.num_steps - steps <= 8
        assert view.session.core.robot.root_pos_w.isfinite().all()


def test_values_of_wrong_kinds_are_told_once_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with viewing() as view:
        page = Page(view).read()
        wait(lambda: len(view.server.get_clients()) == 1)
        for value in ("fast", None, [1.0], {"a": 1}):
            page.send(messages.GuiUpdateMessage(page.controls["vx [m/s]"], {"value": value}))
        page.set("vx [m/s]", 0.75)
    assert len(caplog.records) == 1
    assert "\n" not in caplog.text.strip() and "'fast'" in caplog.text


@pytest.mark.parametrize(
    "header", [b"Host: [::1", b"Host: localhost\r\nCookie: legged-envs-token-%d=\xff"]
)
def test_headers_that_are_no_text_are_refused(header: bytes, guarded: int) -> None:
    request = b"GET / HTTP/1.1\r\n" + header.replace(b"%d", b"%d" % guarded) + b"\r\n\r\n"
    with socket.create_connection(("127.0.0.1", guarded), timeout=5.0) as client:
        client.sendall(request)
        assert client.recv(100).startswith(b"HTTP/1.1 403 ")


def test_a_mouse_that_holds_no_robot_is_ignored() -> None:
    with viewing() as view:
        page = Page(view).read()
        wait(lambda: len(view.server.get_clients()) == 1)
        base = view.session.core.cfg.robot.base_body
        body = view.session.core.sim.drawn()[0].body(base).id
        for robot in (7, -1, None):
            page.drag(body, robot, "start", (0.0, 0.0, 0.1))
        page.drag(body, 1, "start", (0.0, 0.0, 0.1))
        wait(lambda: view.stream._drag_events)
        view.frame()
        assert view.session.pull[0] == 1


def test_fifty_clients_leave_nothing() -> None:
    with viewing() as view:
        threads = threading.active_count()
        for _ in range(50):
            connection = connect(view.port)
            connection.send(message(**UPDATE, updates={"value": 1.0}))
            connection.close()
        server = view.server._websock_server
        wait(lambda: not server._client_state_from_id and not view.server.get_clients())
        view.frame()
        # Those of the server's pool for callbacks stay.
        assert threading.active_count() <= threads + 33


def test_policies_are_loaded_below_the_given_folder_alone(tmp_path: Path) -> None:
    inside = tmp_path / "runs"
    inside.mkdir()
    shutil.copy(SHIPPED[ID], inside / "mine.safetensors")
    shutil.copy(SHIPPED[ID], tmp_path / "other.safetensors")
    (inside / "link.safetensors").symlink_to(tmp_path / "other.safetensors")
    with viewing() as view:
        panel = Panel(view.server, view.session, view.cfg, [AHEAD], inside)
        assert (
            panel.menu.find_policy(str(inside / "mine.safetensors")) == inside / "mine.safetensors"
        )
        elsewhere = [
            str(tmp_path / "other.safetensors"),
            str(tmp_path / "missing.safetensors"),
            str(inside / ".." / "other.safetensors"),
            str(inside / "link.safetensors"),
            "/etc/passwd",
            "\0",
            "x" * 4000,
            "~root",
        ]
        told = set()
        for text in elsewhere:
            with pytest.raises(ValueError, match="--folder") as refused:
                panel.menu.find_policy(text)
            told.add(str(refused.value).replace(shorten(text, 200), "TEXT").replace("\\x00", ""))
        # The same words for a file that exists and for one that does not.
        assert len({line.partition(", got")[0] for line in told}) == 1
