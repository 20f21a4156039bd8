"""The camera of pictures, films and the window, against the camera that MuJoCo then draws with."""

from __future__ import annotations

import gymnasium as gym
import imageio_ffmpeg
import mujoco
import numpy as np
import pytest
import torch

from legged_envs.envs.cfg import override
from legged_envs.evaluation.conditions import EVALUATION_ENV_OPTIONS
from legged_envs.robots import GO2
from legged_envs.sim import (
    ObjectCfg,
    PlacedRobot,
    SceneCfg,
    SimCfg,
    Simulation,
    ViewerCfg,
    make_simulation,
)
from legged_envs.tasks import make_task_cfg
from legged_envs.viewing.film import film
from legged_envs.viewing.scenes import Scene

ID = "Legged/Go2-Flat-v0"
SIZE = {"width": 64, "height": 48}


def make(num_envs: int = 2) -> Simulation:
    rear, box = PlacedRobot(GO2, (-3.0, 0.5, 1.0)), ObjectCfg(pos=(1.0, 2.0, 0.1))
    scene = SceneCfg(robots={"rear": rear}, objects={"box": box})
    return make_simulation("mujoco", GO2, SimCfg(), num_envs, "cpu", scene)


def camera_of(sim: Simulation) -> tuple[np.ndarray, np.ndarray]:
    """Return the position of the camera in the last image, and the unit vector of its view."""
    one, other = sim._renderer.renderer.scene.camera
    return (np.array(one.pos) + other.pos) / 2, np.array(one.forward)


def test_without_an_eye_the_camera_of_the_model_films(assert_same):
    sim = make()
    picture = sim.render(1)
    renderer, data = mujoco.Renderer(sim.model, 480, 640), mujoco.MjData(sim.model)
    sim.batch.get_data(1, data)
    mujoco.mj_forward(sim.model, data)
    renderer.update_scene(data, "track")
    assert_same(picture, renderer.render())
    sim.viewer.cam_prim_path = "rear/track"
    renderer.update_scene(data, "rear/track")
    assert_same(sim.render(1), renderer.render())
    renderer.close()
    sim.close()


@pytest.mark.parametrize(
    ("origin", "asset", "place"),
    [
        ("world", None, (0.0, 0.0, 0.0)),
        ("env", "rear", (0.0, 0.0, 0.0)),
        ("asset_root", None, (0.25, 0.0, GO2.base_height)),
        ("asset_root", "rear", (-3.0, 0.5, GO2.base_height)),
        ("asset_root", "box", (1.0, 2.0, 0.1)),
    ],
)
def test_the_eye_looks_from_its_origin_at_the_target(origin, asset, place):
    sim = make()
    moved = sim.root_pos_w[1:] + torch.tensor([0.25, 0.0, 0.0])
    sim.write_root_state(
        torch.tensor([1]), moved, sim.root_quat_w[1:], torch.zeros(1, 3), torch.zeros(1, 3)
    )
    eye, lookat = np.array([0.4, -2.0, 1.1]), np.array([0.1, 0.2, 0.3])
    sim.viewer = ViewerCfg(
        tuple(eye), tuple(lookat), env_index=1, origin_type=origin, asset_name=asset
    )
    sim.render(**SIZE)
    position, forward = camera_of(sim)
    np.testing.assert_allclose(position, eye + place, atol=1e-5)
    np.testing.assert_allclose(forward, (lookat - eye) / np.linalg.norm(lookat - eye), atol=1e-5)
    sim.viewer.lookat = None
    sim.render(**SIZE)
    np.testing.assert_allclose(camera_of(sim)[1], -eye / np.linalg.norm(eye), atol=1e-5)
    sim.close()


def test_the_pictures_of_an_environment_are_the_viewers():
    viewer = ViewerCfg((2.0, 0.0, 1.0), resolution=(96, 64), env_index=2)
    envs = gym.make_vec(ID, num_envs=4, render_mode="rgb_array", cfg={"viewer": viewer})
    envs.reset(seed=0)
    core = envs.unwrapped
    pictures = envs.render()
    assert [picture.shape for picture in pictures] == [(64, 96, 3)] * 2
    assert np.array_equal(pictures[0], core.sim.render()) and np.array_equal(
        pictures[1], core.sim.render(3)
    )
    core.set_viewer((0.0, -3.0, 2.0), (0.0, 0.0, 0.2))
    np.testing.assert_array_equal(envs.render()[1], core.sim.render(3))
    np.testing.assert_allclose(camera_of(core.sim)[0], (0.0, -3.0, 2.0), atol=1e-5)
    with pytest.raises(ValueError, match=r"ViewerCfg\.eye.*lookat"):
        core.set_viewer((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
    envs.close()
    env = gym.make(ID, render_mode="rgb_array", cfg={"viewer.resolution": (32, 48)})
    env.reset()
    assert env.render().shape == (48, 32, 3)
    env.close()


@pytest.mark.parametrize(("resolution", "size"), [(None, (720, 408)), ((320, 240), (320, 240))])
def test_films_are_the_viewers(tmp_path, resolution, size):
    cfg = override(make_task_cfg(ID), {"viewer": ViewerCfg((1.5, 1.5, 1.0), resolution=resolution)})
    envs = gym.make_vec(ID, num_envs=1, cfg=cfg, render_mode="rgb_array", **EVALUATION_ENV_OPTIONS)
    path = tmp_path / "film.mp4"
    film(envs, lambda policy: torch.zeros(1, 12), ("policy",), [Scene(0.08)], path)
    frames = imageio_ffmpeg.read_frames(str(path))
    assert next(frames)["size"] == size
    np.testing.assert_allclose(camera_of(envs.unwrapped.sim)[0], (1.5, 1.5, 1.0), atol=1e-5)
    envs.close()


def draw_ball(scene: mujoco.MjvScene, env_id: int) -> None:
    """A red ball in front of the robot of environment 1."""
    if env_id == 1:
        ball, red = scene.geoms[scene.ngeom], np.array([1, 0, 0, 1], dtype=np.float32)
        mujoco.mjv_initGeom(
            ball, mujoco.mjtGeom.mjGEOM_SPHERE, np.full(3, 0.1), np.ones(3), np.eye(3).ravel(), red
        )
        scene.ngeom += 1


def test_what_is_drawn_into_a_picture_is_in_that_picture_alone():
    sim = make()
    sim.viewer = ViewerCfg((3.0, 1.0, 1.5), (1.0, 1.0, 1.0))
    plain = sim.render(0), sim.render(1)
    sim.decorations.append(draw_ball)
    assert np.array_equal(sim.render(0), plain[0])
    centre = sim.render(1)[230:250, 310:330].reshape(-1, 3).astype(int)
    assert (centre[:, 0] > 2 * centre[:, 1]).all() and not np.array_equal(sim.render(1), plain[1])
    sim.decorations.clear()
    assert np.array_equal(sim.render(1), plain[1])
    sim.close()


class Window:
    def __init__(self, model):
        self.cam, self.user_scn = mujoco.MjvCamera(), mujoco.MjvScene(model, 10)

    def set_texts(self, text): ...

    def sync(self): ...

    def close(self): ...

    def is_running(self):
        return True


def test_a_window_looks_from_the_eye_until_the_mouse_moves_it(monkeypatch):
    window = []
    launch = lambda model, data, **_: window.append(Window(model)) or window[0]  # noqa: E731
    monkeypatch.setattr("mujoco.viewer.launch_passive", launch)
    sim = make()
    sim.decorations.append(draw_ball)
    assert sim.view(1) and window[0].user_scn.ngeom == 1
    # Without an eye the camera moves with the base.
    assert window[0].cam.type == mujoco.mjtCamera.mjCAMERA_TRACKING
    assert window[0].cam.trackbodyid == sim.model.body(sim.robot.base_body).id
    sim.viewer.eye = (0.0, -2.0, 0.0)
    assert sim.view(1) and (window[0].cam.distance, window[0].cam.azimuth) == (2.0, 90.0)
    assert window[0].cam.type == mujoco.mjtCamera.mjCAMERA_FREE
    assert window[0].user_scn.ngeom == 1
    window[0].cam.azimuth = 10.0
    assert sim.view(1) and window[0].cam.azimuth == 10.0
    sim.viewer.eye = (-4.0, 0.0, 0.0)
    sim.decorations.clear()
    assert sim.view(1) and (window[0].cam.distance, window[0].cam.azimuth) == (4.0, 0.0)
    assert window[0].user_scn.ngeom == 0
    sim.close()


@pytest.mark.parametrize(
    ("viewer", "message"),
    [
        (ViewerCfg(lookat=(1.0, 0.0, 0.0)), r"ViewerCfg\.lookat=\(1\.0, 0\.0, 0\.0\) .*eye"),
        (ViewerCfg((0.0, 0.0, 0.0)), "lookat"),
        (ViewerCfg((1.0, 0.0)), r"ViewerCfg\.eye.*3.*\(1\.0, 0\.0\)"),
        (
            ViewerCfg(resolution=(640, 0)),
            r"ViewerCfg\.resolution.*0",
        ),
        (
            ViewerCfg(origin_type="asset"),
            r"origin_type.*'asset_root'.*'asset'",
        ),
        (
            ViewerCfg(cam_prim_path="/Camera"),
            "'/Camera'.*track, rear/track",
        ),
        (
            ViewerCfg((1.0, 0.0, 0.0), origin_type="asset_root", asset_name="reer"),
            "'reer'.*'rear'",
        ),
        (ViewerCfg(env_index=2), "env_index.*2"),
    ],
    ids=str,
)
def test_a_viewer_that_cannot_be_is_refused_by_name(viewer, message):
    sim = make()
    with pytest.raises(ValueError, match=message):
        sim.viewer = viewer
        sim.render(**SIZE)
    sim.close()
