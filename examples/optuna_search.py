"""Search for weights of rewards with Optuna, through Ray Tune: each trial is a training of Go2 and its evaluation."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from ray import tune
from ray.tune.search.optuna import OptunaSearch

from legged_envs.errors import print_mistake

TASK = "Legged/Go2-Flat-v0"
SPACE = {
    "rewards.joint_torque.weight": tune.uniform(-4e-4, -5e-5),
    "rewards.trot.weight": tune.uniform(0.5, 2.0),
}


def evaluate(weights, options):
    """Train with these weights on one core, and report the errors of the policy to Tune."""
    run = Path(
        tune.get_context().get_trial_dir(), "run"
    )  # an ordinary run folder, for `legged-envs compare`
    command = [
        sys.executable,
        "-m",
        "legged_envs",
        "train",
        TASK,
        "--no-video",
        "--run-dir",
        str(run),
        "--threads",
        "1",
    ]
    changes = [word for path, weight in weights.items() for word in (path, f"{weight:.4g}")]
    subprocess.run(
        [*command, *options, "--changes", *changes], check=True, stdout=subprocess.DEVNULL
    )
    result = json.loads((run / "eval.json").read_text())
    tune.report({name: result[name] for name in ("lin_vel_error", "ang_vel_error", "falls")})


def main():
    """Run the trials, as many at once as there are cores, and print the best weights."""
    sys.excepthook = print_mistake
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--folder", type=Path, default=Path("sweeps"), help="for runs and state")
    parser.add_argument(
        "options",
        nargs="*",
        default=["--iterations", "100"],
        help="after --: options of each training",
    )
    args = parser.parse_args()
    tuner = tune.Tuner(
        tune.with_parameters(evaluate, options=args.options),
        param_space=SPACE,
        tune_config=tune.TuneConfig(
            metric="lin_vel_error",
            mode="min",
            num_samples=args.trials,
            search_alg=OptunaSearch(seed=1),
        ),
        run_config=tune.RunConfig(
            name="optuna", storage_path=str(args.folder.resolve()), verbose=1
        ),
    )
    best = tuner.fit().get_best_result()
    print(
        "best:", best.config, f"lin_vel_error {best.metrics['lin_vel_error']:.3f} m/s,", best.path
    )


if __name__ == "__main__":
    main()
