"""Controls of the page: robots that stay in view, single steps, camera, arrows, plots."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from web_page import AHEAD, ID, Page, viewing, wait

from legged_envs.policy.policy import SHIPPED, load_policy
from legged_envs.policy.snapshots import snapshot_file
from legged_envs.viewing.web.camera import FIRST_AZIMUTH, FIRST_ELEVATION
from legged_envs.viewing.web.play import Pace
from legged_envs.viewing.web.policy_menu import FRAMES_PER_LOOK
from legged_envs.viewing.web.scene_stream import LEASH


def shown_positions(view) -> np.ndarray:
    """Positions of the robots' bases on the page, m. Shape: (num_envs, 3)."""
    base = view.session.core.cfg.robot.base_body
    handle = view.stream.bodies[view.session.core.sim.drawn()[0].body(base).id]
    return handle.batched_positions + view.stream._world.position


def test_robots_that_walk_apart_stay_in_the_picture_and_the_followed_one_in_its_middle() -> None:
    with viewing(num_envs=4) as view:
        core = view.session.core
        view.frame()
        # As after a minute of small differences of speed, and after a fall of robot 2.
        position = core.sim.root_pos_w.clone()
        position[1, 0] += 9.0
        position[2, 1] -= 30.0
        every = torch.arange(4)
        core.sim.write_root_state(
            every,
            position,
            core.sim.root_quat_w,
            core.sim.root_lin_vel_w,
            core.sim.root_ang_vel_b,
        )
        for _ in range(30):
            view.frame()
        shown = shown_positions(view)
        assert np.abs(shown[0, :2]).max() < 0.1
        assert np.abs(shown[:, :2]).max() < 2.0 + LEASH + 0.1
        assert np.linalg.norm(core.sim.root_pos_w[2].numpy()) > 25.0
        gaps = np.linalg.norm(shown[:, None] - shown[None], axis=-1)[np.triu_indices(4, 1)]
        assert gaps.min() > 0.5


def test_a_camera_that_does_not_follow_sees_the_robot_walk_away() -> None:
    with viewing(num_envs=1) as view:
        page = Page(view).read()
        page.set("camera follows", False)
        view.frame()
        before = shown_positions(view)[0]
        for _ in range(25):
            view.frame()
        moved = shown_positions(view)[0] - before
        assert np.linalg.norm(moved[:2]) > 0.2


def test_a_single_step_pauses_and_is_one_control_step() -> None:
    with viewing() as view:
        page = Page(view).read()
        for expected in (1, 2):
            page.set("single step", True)
            view.frame()
            view.frame()
            assert view.session.core.num_steps == expected
            assert view.panel.controls["pause"].value is True


def test_the_sliders_of_the_camera_place_it_at_their_distance_and_angles() -> None:
    with viewing(num_envs=1) as view:
        page = Page(view).read()
        wait(lambda: len(view.server.get_clients()) == 1)
        view.frame()
        client = view.server.get_clients()[0]
        for label, value in (("distance [m]", 5.0), ("azimuth [deg]", 90.0)):
            page.set(f"camera {label}", value)
        view.frame()
        sent = dict(page.read().cameras)
        height = 0.6 * view.session.core.cfg.robot.base_height
        elevation = math.radians(FIRST_ELEVATION)
        expected = (0.0, 5.0 * math.cos(elevation), height + 5.0 * math.sin(elevation))
        np.testing.assert_allclose(sent["SetCameraPositionMessage"], expected, atol=1e-6)
        np.testing.assert_allclose(client.camera.look_at, (0.0, 0.0, height), atol=1e-6)
        assert FIRST_AZIMUTH != 90.0
        # Afterwards the mouse has it: no frame takes it back.
        page.cameras.clear()
        view.frame()
        assert page.read().cameras == []


def test_one_robot_is_reset_and_one_is_pushed() -> None:
    with viewing() as view:
        page, core = Page(view).read(), view.session.core
        for _ in range(20):
            view.frame()
        page.set("follow robot", 1)
        page.set("pause", True)
        view.frame()
        before = core.sim.root_lin_vel_w.clone()
        page.set("push [m/s]", 1.5)
        page.set("push robot", True)
        view.frame()
        change = core.sim.root_lin_vel_w - before
        assert change[0].abs().max() == 0.0 and change[1, 2] == 0.0
        assert change[1].norm().item() == pytest.approx(1.5, abs=1e-4)
        assert (core.episode_steps == core.episode_steps[0]).all()
        page.set("reset robot", True)
        view.frame()
        assert core.episode_steps[1] == 0 and core.episode_steps[0] > 0


def test_arrows_of_command_and_velocity_are_half_a_metre_for_each_metre_per_second() -> None:
    with viewing() as view:
        page, core = Page(view).read(), view.session.core
        page.set("vy [m/s]", 0.2)
        for _ in range(20):
            view.frame()
        overlays = view.stream.overlays
        commands, velocities = overlays.commands.points, overlays.velocities.points
        heading = core.robot.heading().numpy()
        for env_id in range(2):
            ahead = np.array((math.cos(heading[env_id]), math.sin(heading[env_id])))
            left = np.array((-ahead[1], ahead[0]))
            way = commands[env_id, 1] - commands[env_id, 0]
            np.testing.assert_allclose(way[:2], 0.25 * ahead + 0.1 * left, atol=1e-5)
            way = velocities[env_id, 1] - velocities[env_id, 0]
            measured = 0.5 * core.sim.root_lin_vel_w[env_id, :2].numpy()
            np.testing.assert_allclose(way[:2], measured, atol=1e-5)
        page.set("velocity arrows", False)
        view.frame()
        assert not overlays.commands.visible and not overlays.velocities.visible


def test_contact_points_are_under_the_feet_that_stand() -> None:
    with viewing() as view:
        page, core = Page(view).read(), view.session.core
        page.set("vx [m/s]", 0.0)
        page.set("contact points", True)
        for _ in range(60):
            view.frame()
        points = view.stream.overlays.contacts.points - view.stream.offsets[0]
        feet = core.sim.foot_pos_w[0].numpy()
        distance = np.linalg.norm(points[:, None] - feet[None], axis=-1)
        # A robot that stands touches the ground with each foot, at about the radius of a foot.
        assert (distance.min(axis=0) < 0.05).all()
        assert abs(points[distance.min(axis=1) < 0.05][:, 2]).max() < 0.02


def test_a_plot_shows_the_chosen_terms_and_the_limit() -> None:
    with viewing() as view:
        page = Page(view).read()
        plots = view.panel.curves.plots
        assert list(plots) == ["velocity", "rewards", "costs", "torques"]
        assert plots["velocity"].chosen == ["vx", "command vx"]
        assert all(len(plot.chosen) <= 4 for plot in plots.values())
        costs = plots["costs"]
        first = view.session.core.cost_names[0]
        page.controls[f"costs: {first}"] = page.controls[first]
        page.set(f"costs: {first}", False)
        for _ in range(6):
            view.frame()
        assert first not in costs.chosen
        labels = [series["label"] for series in costs._handle.series]
        assert labels == ["time, s", "limit", *costs.chosen]
        assert (costs._handle.data[1] == 1.0).all() and len(costs._handle.data) == len(labels)
        velocity = plots["velocity"]._handle.data
        assert velocity[2][-1] == 0.5 == AHEAD.command[0]
        assert abs(velocity[1][-1] - 0.5) < 0.5


def test_the_real_time_factor_is_simulated_time_by_passed_time() -> None:
    with viewing() as view:
        core = view.session.core
        pace = Pace(core)
        begun = pace._measured_at
        for _ in range(10):
            view.session.step()
        # 10 steps of 0.02 s in 0.8 s are not yet measured; in 2 s they are a tenth.
        assert pace.measure(begun + 0.8).endswith("factor 0.00")
        assert pace.measure(begun + 2.0) == "time 0.2 s, real-time factor 0.10"


def test_the_slider_of_checkpoints_follows_a_run_that_trains(tmp_path: Path) -> None:
    def write(update: int, scale: float) -> None:
        """Write the pretrained policy with other weights, to distinguish updates."""
        path = snapshot_file(tmp_path, update)
        path.parent.mkdir(exist_ok=True)
        with safe_open(SHIPPED[ID], "pt") as file:
            metadata = file.metadata()
        weights = {name: scale * value for name, value in load_file(SHIPPED[ID]).items()}
        save_file(weights, path, metadata)

    def frames_until_the_next_look() -> None:
        for _ in range(FRAMES_PER_LOOK):
            view.frame()

    def acts_as(update: int) -> bool:
        expected = load_policy(snapshot_file(tmp_path, update))
        seen = view.session.observation["policy"]
        return torch.equal(view.session.policy(seen), expected(seen))

    with viewing(num_envs=1) as view:
        view.panel.menu.run = tmp_path
        page = Page(view).read()
        page.set("pause", True)
        slider = view.panel.controls["checkpoint"]
        write(10, 0.5)
        frames_until_the_next_look()
        assert not slider.visible
        write(20, 0.9)
        frames_until_the_next_look()
        assert slider.visible and (slider.max, slider.value) == (2, 2)
        page.set("checkpoint", 1)
        view.frame()
        assert acts_as(10)
        # Somebody who looks at an old one keeps it when a new one comes.
        write(30, 1.0)
        frames_until_the_next_look()
        assert slider.max == 3 and slider.value == 1 and acts_as(10)
        page.set("checkpoint", 3)
        view.frame()
        assert acts_as(30)
        write(40, 0.8)
        frames_until_the_next_look()
        assert (slider.max, slider.value) == (4, 4) and acts_as(40)
        page.set("checkpoint", 2)
        view.frame()
        assert acts_as(20)
        page.set("checkpoint", 4)
        view.frame()
        # Somebody who chose another policy keeps it, too.
        page.set("policy", "shipped")
        view.frame()
        write(50, 0.7)
        frames_until_the_next_look()
        assert slider.max == 5 and view.panel.controls["policy"].value == "shipped"
        seen = view.session.observation["policy"]
        assert torch.equal(view.session.policy(seen), load_policy(SHIPPED[ID])(seen))
