"""Files, ports and modules that a command needs."""

import socket

import pytest

from legged_envs.system_checks import (
    check_inputs,
    check_installed,
    check_output,
    check_port,
    import_named,
)


def test_an_input_is_a_file(tmp_path) -> None:
    (tmp_path / "a").write_text("")
    check_inputs("--in", [tmp_path / "a"])
    with pytest.raises(FileNotFoundError, match=r"--in.*b'"):
        check_inputs("--in", [tmp_path / "a", tmp_path / "b"])


def test_an_output_can_be_written(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    check_output("--out", None)
    check_output("--out", tmp_path / "file")
    check_output("--out", tmp_path / "new" / "deep" / "a.png", endings=(".png",))
    check_output("--out", tmp_path, "folder")
    check_output("--out", tmp_path / "new", "folder")
    for path, kind in (
        (tmp_path, "file"),
        (tmp_path / "file", "folder"),
        (tmp_path / "file" / "a", "file"),
    ):
        with pytest.raises(ValueError, match="--out"):
            check_output("--out", path, kind)
    with pytest.raises(ValueError, match=r"--out.*\.png"):
        check_output("--out", tmp_path / "a.gif", endings=(".png",))


def test_a_port_is_free() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=str(port)):
            check_port("127.0.0.1", port)
    with pytest.raises(ValueError, match="--port"):
        check_port("127.0.0.1", 70000)


def test_modules_are_found_by_name() -> None:
    check_installed("json")
    with pytest.raises(ModuleNotFoundError, match=r"no_such_module.*legged-envs\[web\]"):
        check_installed("json", "no_such_module", extra="web")
    assert import_named("legged_envs.tables", "legged_envs.tables:X").__name__.endswith("tables")
    with pytest.raises(ValueError, match="'my-robots:X'"):
        import_named("my-robots", "my-robots:X")
