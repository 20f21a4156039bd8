"""Depth and colour cameras, those on bodies, and keys of the window."""

import numpy as np
import pytest
import torch
from isaac_gym_dogs import gym, make_params, make_sim, read, unwrap
from PIL import Image

from legged_envs.compat.isaac_gym import gymapi, gymtorch

pytestmark = pytest.mark.render


def test_depths_are_distances_along_the_axis_of_view_times_minus_one() -> None:
    sim = make_sim(height=20.0)
    camera = gym.create_camera_sensor(sim.envs[0], gymapi.CameraProperties(width=32, height=24))
    gym.set_camera_transform(
        camera,
        sim.envs[0],
        gymapi.Transform(gymapi.Vec3(3.0, 0.0, 2.0), gymapi.Quat.from_euler_zyx(0, np.pi / 2, 0)),
    )
    depth = gym.get_camera_image(sim, sim.envs[0], camera, gymapi.IMAGE_DEPTH)
    assert depth.shape == (24, 32) and depth.dtype == np.float32
    assert depth == pytest.approx(-2.0, abs=2e-3), "the plane is at this distance in every pixel"
    level = gymapi.Transform(gymapi.Vec3(3.0, 0.0, 2.0), gymapi.Quat())
    gym.set_camera_transform(camera, sim.envs[0], level)
    depth = gym.get_camera_image(sim, sim.envs[0], camera, gymapi.IMAGE_DEPTH)
    assert np.isneginf(depth[:11]).all(), "there is nothing above the horizon"
    # A row of pixels at the angle a below the axis meets the ground at the depth 2 / tan a.
    tangent = np.tan(np.radians(45)) / 16 * (np.arange(24) + 0.5 - 12)
    assert depth[14:, 5] == pytest.approx(-2.0 / tangent[14:], rel=0.02)


def test_matrices_of_a_camera_place_its_pixels_in_the_world(tmp_path) -> None:
    sim = make_sim(height=20.0)
    env = sim.envs[0]
    properties = gymapi.CameraProperties(width=40, height=20, horizontal_fov=75.0)
    camera = gym.create_camera_sensor(env, properties)
    gym.set_camera_location(camera, env, gymapi.Vec3(1.0, -2.0, 3.0), gymapi.Vec3(1.5, 0.5, 0.0))
    depth = gym.get_camera_image(sim, env, camera, gymapi.IMAGE_DEPTH)
    projection = gym.get_camera_proj_matrix(sim, env, camera)
    to_world = np.linalg.inv(gym.get_camera_view_matrix(sim, env, camera))
    # As in Isaac Gym's example of a cloud of points: with points as rows.
    rows, columns = np.mgrid[:20, :40]
    x = -(columns + 0.5 - 20) / 40 * depth * 2.0 / projection[0, 0]
    y = (rows + 0.5 - 10) / 20 * depth * 2.0 / projection[1, 1]
    points = np.stack((x, y, depth, np.ones_like(depth)), axis=-1) @ to_world
    assert points[..., 2] == pytest.approx(0.0, abs=0.02), "each pixel shows the ground"
    assert points[10, 20, :2] == pytest.approx([1.5, 0.5], abs=0.2)
    assert points[10, 35, 0] > points[10, 5, 0], "right in the picture is along x"
    gym.write_camera_image_to_file(
        sim, env, camera, gymapi.IMAGE_COLOR, str(tmp_path / "picture.png")
    )
    with Image.open(tmp_path / "picture.png") as picture:
        assert picture.size == (40, 20)
    with pytest.raises(NotImplementedError, match="IMAGE_DEPTH"):
        gym.write_camera_image_to_file(sim, env, camera, gymapi.IMAGE_DEPTH, "x.png")


@pytest.mark.parametrize("mode", [gymapi.FOLLOW_TRANSFORM, gymapi.FOLLOW_POSITION])
def test_a_camera_on_a_body_moves_with_it_and_turns_if_asked(mode) -> None:
    sim = make_sim(2, height=1.0)
    env = sim.envs[1]
    camera = gym.create_camera_sensor(env, gymapi.CameraProperties(width=16, height=16))
    body = gym.find_actor_rigid_body_handle(env, 0, "base")
    local = gymapi.Transform(
        gymapi.Vec3(0.6, 0.0, 0.0), gymapi.Quat.from_euler_zyx(0, np.pi / 2, 0)
    )
    gym.attach_camera_to_body(camera, env, body, local, mode)
    root = read(sim, "actor_root_state").clone()
    root[1, :7] = torch.tensor([2.0, 0.0, 4.0, 0.0, 0.0, 0.5**0.5, 0.5**0.5])
    gym.set_actor_root_state_tensor(sim, unwrap(root))
    place = gym.get_camera_transform(sim, env, camera).p.values
    turned = mode == gymapi.FOLLOW_TRANSFORM
    assert place == pytest.approx((2.0, 0.6, 4.0) if turned else (2.6, 0.0, 4.0), abs=1e-5)
    depth = gym.get_camera_image(sim, env, camera, gymapi.IMAGE_DEPTH)
    assert depth[8, 8] == pytest.approx(-4.0, abs=1e-2)
    with pytest.raises(ValueError, match="0 to 12, got 99"):
        gym.attach_camera_to_body(camera, env, 99, local, mode)


def test_tensors_of_pictures_are_filled_anew_when_cameras_are_rendered() -> None:
    sim = make_sim(2, height=20.0)
    depths, colors = [], []
    for env in sim.envs:
        camera = gym.create_camera_sensor(
            env, gymapi.CameraProperties(width=12, height=8, enable_tensors=True)
        )
        gym.set_camera_location(camera, env, gymapi.Vec3(0, 0, 2), gymapi.Vec3(0.001, 0, 0))
        for kind, tensors in ((gymapi.IMAGE_DEPTH, depths), (gymapi.IMAGE_COLOR, colors)):
            descriptor = gym.get_camera_image_gpu_tensor(sim, env, camera, kind)
            tensors.append(gymtorch.wrap_tensor(descriptor))
    assert depths[0].shape == (8, 12) and depths[0].dtype == torch.float32
    assert colors[0].shape == (8, 12, 4) and colors[0].dtype == torch.uint8
    assert (colors[0][..., 3] == 255).all()
    root = read(sim, "actor_root_state").clone()
    root[1, 2] = 1.0
    gym.set_actor_root_state_tensor(sim, unwrap(root))
    before = depths[1].clone()
    assert (depths[1] == before).all()
    gym.step_graphics(sim)
    gym.render_all_camera_sensors(sim)
    gym.start_access_image_tensors(sim)
    assert depths[1][4, 6] > before[4, 6] + 0.5, "the robot is nearer than the ground"
    assert depths[0] == pytest.approx(before, abs=1e-3)
    gym.end_access_image_tensors(sim)
    gym.destroy_sim(sim)


def test_keys_give_the_actions_that_were_subscribed_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    keys = []

    class Window:
        def __init__(self, model, data, key_callback, **_):
            keys.append(key_callback)
            self.cam = gymapi  # unused
            self.user_scn = type("Scene", (), {"ngeom": 0})()

        def set_texts(self, texts): ...
        def sync(self): ...
        def close(self): ...
        def is_running(self):
            return True

    monkeypatch.setattr("mujoco.viewer.launch_passive", Window)
    monkeypatch.setattr("legged_envs.sim.render.window.Window.aim", lambda self, camera: None)
    sim = make_sim()
    viewer = gym.create_viewer(sim, gymapi.CameraProperties())
    gym.viewer_camera_look_at(viewer, None, gymapi.Vec3(1, 0, 1), gymapi.Vec3(0, 0, 1))
    assert gym.get_viewer_camera_transform(viewer, None).p.values == (1.0, 0.0, 1.0)
    gym.subscribe_viewer_keyboard_event(viewer, gymapi.KEY_ESCAPE, "QUIT")
    gym.subscribe_viewer_keyboard_event(viewer, gymapi.KEY_V, "toggle")
    gym.draw_viewer(viewer, sim, True)
    keys[0](int(gymapi.KEY_V))
    keys[0](int(gymapi.KEY_Q))
    events = gym.query_viewer_action_events(viewer)
    assert [(event.action, event.value) for event in events] == [("toggle", 1.0)]
    events = gym.query_viewer_action_events(viewer)
    assert [(event.action, event.value) for event in events] == [("toggle", 0.0)]
    assert gym.query_viewer_action_events(viewer) == []


def test_pictures_of_segmentation_have_the_numbers_of_actors_and_bodies() -> None:
    sim = gym.create_sim(0, -1, gymapi.SIM_PHYSX, make_params())
    gym.add_ground(sim, gymapi.PlaneParams(normal=gymapi.Vec3(0.0, 0.0, 1.0)))
    box = gym.create_box(sim, 1.0, 1.0, 0.2, gymapi.AssetOptions(fix_base_link=True))
    env = gym.create_env(sim, gymapi.Vec3(), gymapi.Vec3(), 1)
    for y, number in ((2.0, 5), (-2.0, 7)):
        pose = gymapi.Transform(gymapi.Vec3(0.0, y, 0.5))
        gym.create_actor(env, box, pose, f"box {number}", 0, 0, number)
    gym.set_rigid_body_segmentation_id(env, 1, 0, 9)
    assert gym.get_rigid_body_segmentation_id(env, 1, 0) == 9
    gym.prepare_sim(sim)
    camera = gym.create_camera_sensor(env, gymapi.CameraProperties(width=64, height=16))
    down = gymapi.Quat.from_euler_zyx(0, np.pi / 2, 0)
    gym.set_camera_transform(camera, env, gymapi.Transform(gymapi.Vec3(0.0, 0.0, 4.6), down))
    picture = gym.get_camera_image(sim, env, camera, gymapi.IMAGE_SEGMENTATION)
    assert picture.shape == (16, 64) and picture.dtype == np.uint32
    # The tops of the boxes are 4 m below the camera, so the picture is 8 m wide there. They reach
    # from 1.5 to 2.5 m from its middle, y to the left.
    row = picture[8]
    assert set(row[13:19]) == {5} and set(row[45:51]) == {9}
    assert set(row[:11]) | set(row[22:42]) | set(row[53:]) == {0}
    tensor = gymtorch.wrap_tensor(
        gym.get_camera_image_gpu_tensor(sim, env, camera, gymapi.IMAGE_SEGMENTATION)
    )
    assert tensor.dtype == torch.int32 and (tensor.numpy() == picture).all()


def test_a_script_without_a_window_may_aim_it() -> None:
    sim = make_sim()
    place = gymapi.Vec3(1.0, 0.0, 1.0)
    gym.viewer_camera_look_at(None, None, place, gymapi.Vec3())
    gym.simulate(sim)
    assert gym.get_frame_count(sim) == 1
