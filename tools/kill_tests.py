"""Kill processes of a training with SIGKILL, and check that the training ends with the same result
as without the kill.

``torchrun --max-restarts`` runs a small training with two processes. One of them is killed in the
middle of a rollout, of an update, or of the writing of a checkpoint. For each kill the script
checks that

- the other process ends within 60 s, so that nothing hangs;
- the training continues and ends, and all of its files can be read;
- its last checkpoint has the same weights, optimizers, robots and random numbers, to the bit, as a
  training that nobody interrupted.

The phase of a kill is known by time: a row of ``curve.jsonl`` ends an update and says how long a
rollout and the learning take. A checkpoint is being written while its temporary file exists. Linux
only. For example::

    python -m tools.kill_tests --times 10
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from legged_envs.policy.policy import load_policy
from legged_envs.runs.run_folder import CHECKPOINT, CURVE
from legged_envs.training.checkpoint import read_checkpoint

PHASES = ("rollout", "update", "checkpoint")
"""Phases of a training in which a process can be killed."""

LONGEST_HANG = 60.0
"""Longest time in which the other process must end after a kill, s."""

PATIENCE = 900.0
"""Longest time of a whole training with a kill, s."""

FIRST_UPDATE = 3
"""Number of updates before the first kill: earlier ones take longer than the others."""

COMPARED = ("iteration", "algorithm", "env", "rng", "other_processes")
"""Entries of a checkpoint that are the same in a training that was killed. Others have times."""

TIMES = ("ages", "seconds_window")
"""Entries of wrappers with times of the clock, which no two trainings have in common."""

SHARE = (0.2, 0.8)
"""Range of the moment of a kill, as a share of its phase."""


def main() -> None:
    """Run the trainings, print a line about each kill, and exit with status 1 after a failure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=1, help="number of kills in each phase")
    parser.add_argument("--phases", nargs="+", choices=PHASES, default=PHASES)
    parser.add_argument("--task", default="Legged/Go2-Flat-v0")
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--updates", type=int, default=12, help="updates of each training")
    parser.add_argument("--seed", type=int, default=0, help="seed of the moments of the kills")
    options = parser.parse_args()
    generator = random.Random(options.seed)
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        print("a training that nobody interrupts", flush=True)
        uninterrupted = folder / "uninterrupted"
        if start(options, uninterrupted).wait(PATIENCE) != 0:
            sys.exit(f"it failed: {(uninterrupted / 'log').read_text()}")
        expected = read_checkpoint(uninterrupted / CHECKPOINT)
        for phase in options.phases:
            for number in range(options.times):
                run = folder / f"{phase}_{number}"
                told, problems = kill_once(options, run, phase, generator)
                problems += check_files(run, options.updates, expected)
                failed += bool(problems)
                print(f"{phase} {number + 1}: {told}: {'; '.join(problems) or 'equal'}", flush=True)
    print(f"{failed} of {len(options.phases) * options.times} kills failed")
    sys.exit(1 if failed else 0)


def start(options: argparse.Namespace, run: Path) -> subprocess.Popen[bytes]:
    """Start a training with two processes. It writes a checkpoint after each update."""
    run.mkdir()
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "2", "--max-restarts", "3", "-m", "legged_envs", "train"]
    command += [options.task, "--num-envs", str(options.num_envs)]
    command += ["--iterations", str(options.updates), "--checkpoint-minutes", "1e-6"]
    command += ["--episodes", "2", "--no-video", "--run-dir", str(run)]
    with (run / "log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def kill_once(
    options: argparse.Namespace, run: Path, phase: str, generator: random.Random
) -> tuple[str, list[str]]:
    """Run a training, and kill one of its processes.

    Args:
        options: Options of the script.
        run: Folder of the training.
        phase: Phase of :data:`PHASES` in which the process is killed.
        generator: Random numbers for update, process and moment.

    Returns:
        What was done and seen, and the problems.
    """
    update = generator.randint(FIRST_UPDATE, options.updates - 2)
    # Process 0 writes the checkpoints.
    victim = 0 if phase == "checkpoint" else generator.randint(0, 1)
    share = generator.uniform(*SHARE)
    torchrun = start(options, run)
    problems: list[str] = []
    try:
        wait_for_update(torchrun, run, update)
        # Before the moment, because a checkpoint is written in milliseconds.
        workers = workers_of(torchrun.pid)
        moment = wait_for_moment(run, phase, share)
        os.kill(workers.pop(victim), signal.SIGKILL)
        killed = time.monotonic()
        was_writing = (run / f"{CHECKPOINT}.tmp").exists()
        rows = len(read_rows(run / CURVE))
        (other,) = workers.values()
        if not wait_until(lambda: not is_running(other), LONGEST_HANG):
            problems.append(f"the other process still runs after {LONGEST_HANG:.0f} s")
        ended = time.monotonic() - killed
        if torchrun.wait(PATIENCE) != 0:
            problems.append(f"exit status {torchrun.returncode}")
    except TimeoutError as error:
        return str(error), ["the phase was not reached"]
    except subprocess.TimeoutExpired:
        problems.append(f"the training did not end within {PATIENCE:.0f} s")
    finally:
        kill_group(torchrun)
    if phase == "checkpoint":
        moment += ", half a file" if was_writing else ", after the file was whole"
    told = f"process {victim} in update {rows + 1}, {moment}; the other ended after {ended:.1f} s"
    return told, problems


def wait_for_update(torchrun: subprocess.Popen[bytes], run: Path, update: int) -> None:
    """Wait until an update is done.

    Args:
        torchrun: The process of torchrun.
        run: Folder of the training.
        update: Number of updates that must be done.

    Raises:
        TimeoutError: If the training ends or hangs before.
    """

    def is_due() -> bool:
        if torchrun.poll() is not None:
            raise TimeoutError(f"torchrun ended with {torchrun.returncode}: see {run / 'log'}")
        return len(read_rows(run / CURVE)) >= update

    if not wait_until(is_due, PATIENCE, interval=0.002):
        raise TimeoutError(f"update {update} was not reached")


def wait_for_moment(run: Path, phase: str, share: float) -> str:
    """Wait until a training is in a phase, and return the moment in words.

    Args:
        run: Folder of the training.
        phase: Phase of :data:`PHASES`.
        share: Share of the phase that must be over.
    """
    part = run / f"{CHECKPOINT}.tmp"
    if phase == "checkpoint":
        is_writing = wait_until(part.exists, PATIENCE, interval=0.0)
        return "while the checkpoint is written" if is_writing else "after the checkpoint"
    # The checkpoint of an update follows its row, and the next rollout follows the checkpoint.
    curve = run / CURVE
    checkpoint = run / CHECKPOINT

    def is_written() -> bool:
        if part.exists() or not checkpoint.exists():
            return False
        return checkpoint.stat().st_mtime >= curve.stat().st_mtime

    wait_until(is_written, PATIENCE, interval=0.002)
    begun = checkpoint.stat().st_mtime
    row = read_rows(curve)[-1]
    samples = row["env_steps"] / row["iteration"]
    rollout = samples / row["rollout_steps_per_second"]
    learning = samples / row["update_steps_per_second"]
    delay = share * rollout if phase == "rollout" else rollout + share * learning
    time.sleep(max(0.0, begun + delay - time.time()))
    return f"{delay:.2f} s after its start (rollout {rollout:.2f} s, learning {learning:.2f} s)"


def check_files(run: Path, updates: int, expected: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the files of a training that has ended.

    Args:
        run: Folder of the training.
        updates: Number of updates of the training.
        expected: Checkpoint of the training that nobody interrupted.
    """
    problems = []
    if list(run.glob("*.tmp")):
        problems.append("a temporary file is left")
    iterations = [row["iteration"] for row in read_rows(run / CURVE)]
    if iterations != list(range(1, updates + 1)):
        problems.append(f"{CURVE} has the updates {iterations}")
    try:
        load_policy(run)
        checkpoint = read_checkpoint(run / CHECKPOINT)
    except (OSError, ValueError) as error:
        return [*problems, str(error)]
    for name in COMPARED:
        problems += sorted(differences(checkpoint[name], expected[name], name))[:3]
    return problems


def differences(value: Any, expected: Any, path: str) -> Iterator[str]:
    """Yield the paths at which two nested values differ."""
    if isinstance(expected, torch.Tensor):
        # Bits, so that NaN equals NaN.
        same = value.shape == expected.shape and torch.equal(
            value.flatten().view(torch.uint8), expected.flatten().view(torch.uint8)
        )
        if not same:
            yield f"{path} differs"
    elif isinstance(expected, Mapping):
        if value.keys() != expected.keys():
            yield f"{path} has other keys"
            return
        for key in expected.keys() - TIMES:
            yield from differences(value[key], expected[key], f"{path}.{key}")
    elif isinstance(expected, (list, tuple)):
        if len(value) != len(expected):
            yield f"{path} has another length"
            return
        for i, pair in enumerate(zip(value, expected, strict=True)):
            yield from differences(*pair, f"{path}[{i}]")
    elif repr(value) != repr(expected):
        yield f"{path} is {value!r}, not {expected!r}"


def read_rows(curve: Path) -> list[dict[str, float]]:
    """Return the whole rows of a learning curve."""
    if not curve.exists():
        return []
    lines = curve.read_text().split("\n")[:-1]
    return [json.loads(line) for line in lines]


def workers_of(torchrun: int) -> dict[int, int]:
    """Return the process id of each process of a training, by its number."""
    listed = subprocess.run(
        # The status is 1 if there are none.
        ["ps", "--ppid", str(torchrun), "-o", "pid="],
        capture_output=True,
        text=True,
        check=False,
    )
    workers = {}
    for word in listed.stdout.split():
        variables = Path("/proc", word, "environ").read_bytes().split(b"\0")
        for variable in variables:
            name, _, value = variable.partition(b"=")
            if name == b"RANK":
                workers[int(value)] = int(word)
    return workers


def is_running(pid: int) -> bool:
    """Return True if a process runs. One that has ended may wait for its parent to notice."""
    try:
        status = Path("/proc", str(pid), "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def wait_until(condition: Callable[[], bool], seconds: float, interval: float = 0.05) -> bool:
    """Wait until a condition holds. Return False if it does not within a time, s."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(interval)
    return True


def kill_group(torchrun: subprocess.Popen[bytes]) -> None:
    """Kill torchrun and its processes, if they still run."""
    if torchrun.poll() is not None:
        return
    for pid in (*workers_of(torchrun.pid).values(), torchrun.pid):
        os.kill(pid, signal.SIGKILL)
    torchrun.wait()


if __name__ == "__main__":
    main()
