"""The page of the documentation on which robots walk in the browser."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from chromium import FLAGS, SLOWLY, chromium

from legged_envs.envs import make_core
from legged_envs.policy.export import ONNX_FILE, SCENE_FILE, export
from legged_envs.policy.lookup import policy_and_task
from legged_envs.policy.shipped import SHIPPED
from tools import browser

ROOT = Path(__file__).parents[2]
WALKERS = {
    "go2_flat": "Legged/Go2-Flat-v0",
    "k1_flat": "Legged/K1-Flat-v0",
    "tron1_wf_flat": "Legged/Tron1-WF-Flat-v0",
    "go2_gaits": "Legged/Go2-Gaits-v0",
    "g1_rough": "Legged/G1-Rough-v0",
    "go2_rough": "Legged/Go2-Rough-v0",
}
"""Policies with, in this order, nothing special, a clock and a history, wheels, gaits, a scan of
tiles, a scan of rubble."""
COMMAND = (0.5, 0.0, 0.2)
SECONDS = 5.0
RUBBLE_SECONDS = 3.0
"""Python's own walks on rubble differ by 4 cm after 5 s if one starts 1e-12 m higher, and by 0.5 mm
after 3 s."""
WALKS = "document.querySelector('.robots-time').textContent.includes('simulated')"


def test_policies_that_need_a_reference_motion_are_left_out():
    left_out = set(SHIPPED) - set(browser.drivable())
    assert left_out == {task_id for task_id in SHIPPED if "Mimic" in task_id}


def test_bounds_of_costs_are_those_of_the_task():
    _, cfg, _ = policy_and_task(WALKERS["go2_flat"])
    core = make_core(cfg, 1)
    low, high = core.robot.soft_joint_pos_limits(0.95)
    ranges = core.robot.joint_pos_limits.tolist()
    bounds = browser.cost_bounds(cfg, ranges)
    assert np.allclose(bounds["joint_position"]["ranges"], np.stack((low, high), 1))
    assert np.allclose(bounds["joint_torque"]["max"], 0.8 * core.robot.torque_limits)
    assert np.allclose(bounds["joint_velocity"]["max"], 0.8 * core.robot.joint_vel_limits)
    assert bounds["base_orientation"] == {"limit": 0.025, "max": 0.35}
    core.close()


def test_without_node_the_page_says_how_to_get_the_robots(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["browser", str(tmp_path / "demo")])
    browser.main()
    (line,) = capsys.readouterr().err.splitlines()
    assert "install Node.js 20" in line
    assert "install Node.js 20" in (tmp_path / "demo" / browser.HTML_FILE).read_text()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the page as `demo.html`, and policies of which one does not fit."""
    folder = tmp_path_factory.mktemp("site")
    try:
        browser.write_page(folder / "demo", [])
    except browser.NoNode as missing:
        pytest.skip(str(missing))
    for name, task_id in WALKERS.items():
        export(task_id, None, folder / name)
        browser.write_robot(folder / "demo", task_id, folder / name)
    (folder / "demo" / browser.HTML_FILE).write_text(browser.page_html([*WALKERS.values()]))
    # A file of the page that a browser may read, with a term that the page does not know.
    script = (folder / "demo" / "go2_flat.js").read_text().replace("go2_flat", "strange", 1)
    head, _, entry = script.partition("=")
    strange = json.loads(entry.rstrip(";\n"))
    strange["metadata"]["inputs"]["policy"][1]["name"] = "foot_temperature"
    (folder / "demo" / "strange.js").write_text(f"{head}={json.dumps(strange)};")
    fragment = (folder / "demo" / browser.HTML_FILE).read_text()
    option = '<option value="strange">strange</option></select>'
    fragment = fragment.replace("</select>", option)
    (folder / "demo.html").write_text(f"<!doctype html><body>{fragment}</body>")
    return folder


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    """A page of Chromium. Its `asked` are the addresses that it asked for."""
    playwright = pytest.importorskip("playwright.sync_api")
    if chromium() is None:
        pytest.skip("there is no Chromium: make chromium, or let CHROMIUM name one")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=chromium(), args=FLAGS, timeout=120_000)
        page = opened.new_page(viewport={"width": 390, "height": 700})
        page.set_default_timeout(120_000)
        page.add_init_script(SLOWLY)
        page.asked = []
        page.on("request", lambda request: page.asked.append(request.url))
        yield page
        # With the engines on its page, a Chromium of one process takes half a minute to close.
        page.goto("about:blank")
        opened.close()


def open_page(page: Any, site: Path) -> None:
    """Open the page, unless an earlier test did: the engines need seconds to load."""
    address = (site / "demo.html").as_uri()
    if page.url != address:
        page.goto(address)


def deploy_example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("deploy", ROOT / "examples" / "deploy.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def walk_in_python(folder: Path, seconds: float) -> list[float]:
    """Return the position of the base, m, after the same walk with `examples/deploy.py`."""
    deploy = deploy_example()
    controller = deploy.Controller(str(folder / ONNX_FILE))
    robot = deploy.Robot(str(folder / SCENE_FILE), controller.about)
    for _ in range(round(seconds / controller.about["control_dt"])):
        robot.write(controller(np.array(COMMAND), *robot.read()))
    base: list[float] = robot.data.qpos[:3].tolist()
    return base


def test_a_robot_walks_drives_and_is_pushed(page: Any, site: Path) -> None:
    """The page as a file, without a server."""
    open_page(page, site)
    page.wait_for_function(WALKS)
    commands = page.locator(".robots-speed tbody td:nth-child(3)")
    # At first 0.6 of the largest vx of the pretrained Go2's training, 1.3 m/s.
    assert commands.all_inner_texts() == ["0.78", "0.00", "0.00"]
    canvas = page.locator("#robots canvas")
    canvas.press("s")
    page.wait_for_function(
        "document.querySelectorAll('#robots input[type=range]')[0].value === '0'"
    )
    canvas.dispatch_event("keydown", {"key": "ArrowLeft"})
    # 0.8 of the largest ωz, 1.5 rad/s.
    page.wait_for_function(
        "document.querySelectorAll('#robots input[type=range]')[2].value === '1.2'"
    )
    page.locator("#robots [data-do=push]").click()
    assert page.locator(".robots-costs tbody tr").count() == 4
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert all(url.startswith(("file:", "about:", "blob:", "data:")) for url in page.asked)
    sizes = page.evaluate(
        "[...document.querySelectorAll('#robots :is(p, th, td, button, label, select, option)')]"
        ".map(element => parseFloat(getComputedStyle(element).fontSize))"
    )
    assert min(sizes) >= 14.0


@pytest.mark.parametrize("name", WALKERS)
def test_the_base_is_where_the_python_loop_brings_it(name: str, page: Any, site: Path) -> None:
    open_page(page, site)
    seconds = SECONDS
    if name == "go2_rough":
        seconds = RUBBLE_SECONDS
    walk = "([name, command, seconds]) => leggedEnvs.walk(name, command, seconds)"
    base = page.evaluate(walk, [name, COMMAND, seconds])
    expected = walk_in_python(site / name, seconds)
    assert np.isfinite(expected).all()
    assert np.linalg.norm(np.subtract(base, expected)) < 0.01


def test_a_robot_stands_on_its_own_ground_after_another_robot(page: Any, site: Path) -> None:
    """Both scenes have files of the same names."""
    open_page(page, site)
    walk = "([name, command, seconds]) => leggedEnvs.walk(name, command, seconds)"
    page.evaluate(walk, ["g1_rough", COMMAND, 0.1])
    base = page.evaluate(walk, ["go2_rough", COMMAND, 0.5])
    assert np.linalg.norm(np.subtract(base, walk_in_python(site / "go2_rough", 0.5))) < 0.01


def test_a_policy_that_does_not_fit_is_named(page: Any, site: Path) -> None:
    open_page(page, site)
    page.locator("#robots select").first.select_option("strange")
    message = page.locator(".robots-message", has_text="cannot walk here")
    message.wait_for()
    assert "foot_temperature" in message.inner_text()


def choose_folder(page: Any, folder: Path) -> None:
    page.locator("#robots input[type=file]").set_input_files(folder)


def test_the_robot_of_an_exported_folder_walks(page: Any, site: Path) -> None:
    open_page(page, site)
    choose_folder(page, site / "tron1_wf_flat")
    page.wait_for_function(
        "document.querySelector('#robots select').selectedOptions[0].text"
        " === 'Legged/Tron1-WF-Flat-v0 of your folder'"
        " && document.querySelector('.robots-message').textContent === ''"
    )
    # The time of this robot, whose limits of costs no file has.
    page.wait_for_function(WALKS)
    assert page.locator(".robots-costs tbody tr").count() == 0


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "policy.onnx").unlink(), "the folder has no policy.onnx"),
        (lambda folder: (folder / "policy.onnx").write_bytes(b"\xff" * 9), "not a whole ONNX"),
        (lambda folder: (folder / "policy.onnx").write_bytes(b"\x08\x08"), "no metadata task_id"),
        (
            lambda folder: (folder / "scene.xml").write_text("<mujoco/>"),
            "no joint and motor FR_hip",
        ),
        (lambda folder: (folder / "scene.xml").write_text("<robot"), "XML"),
    ],
)
def test_a_folder_that_does_not_fit_is_named(
    spoil: Any, message: str, page: Any, site: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "go2"
    folder.mkdir()
    for name in (ONNX_FILE, SCENE_FILE):
        shutil.copyfile(site / "go2_flat" / name, folder / name)
    spoil(folder)
    open_page(page, site)
    choose_folder(page, folder)
    page.locator(".robots-message", has_text=re.compile(f"cannot walk here.*{message}")).wait_for()


def test_without_web_assembly_the_page_says_so(page: Any, site: Path) -> None:
    page.add_init_script("delete globalThis.WebAssembly")
    page.goto("about:blank")
    open_page(page, site)
    message = page.locator(".robots-message", has_text=re.compile("has no WebAssembly"))
    message.wait_for()
