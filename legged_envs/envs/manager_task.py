"""The task as managers evaluate it: dicts of terms under names."""

import math

import torch

from legged_envs.envs.manager_set import ManagerSet
from legged_envs.envs.task import Action, Evaluation, Observation, Spaces, Task
from legged_envs.state import State


class ManagerTask(Task):
    """A task of terms, which managers evaluate.

    The log of an episode holds the mean of each reward term per second, of each cost term per
    step, and the values of the curricula.
    """

    managers: ManagerSet
    """The managers; deleted when the environment is closed."""

    def build(self) -> Spaces:
        self.managers = ManagerSet(self.env)
        self.managers.build_motion(self.cfg)
        return self.build_evaluation()

    def build_evaluation(self) -> Spaces:
        """Build the managers that evaluate terms, and return the spaces."""
        managers = self.managers
        managers.build_evaluation(self.cfg)
        self.cost_names = managers.costs.names
        self.cost_limits = managers.costs.limits
        self.log_names = managers.log_names
        return managers.spaces(self.cfg)

    def act(self, action: Action) -> None:
        targets = self.managers.actions.process(action)
        self.env.sim.set_joint_targets(targets)
        self.env.sim.step(self.env.decimation)

    def evaluate(self) -> Evaluation:
        managers = self.managers
        for robot in self.env.robots.values():
            robot.compute()
        # Terminations come first: a reward term may ask whether the episode has just failed.
        managers.terminations.compute()
        managers.rewards.compute()
        managers.costs.compute()
        check_evaluation(managers, self.env.recovered)
        return Evaluation(
            terminated=managers.terminations.terminated,
            reward=managers.rewards.total,
            cost=managers.costs.total,
            costs=managers.costs.values,
            truncated=managers.terminations.time_outs,
        )

    def advance(self) -> None:
        self.managers.commands.advance()
        for env_ids in self.managers.events.advance():
            for robot in self.env.robots.values():
                # Otherwise the observation would show the velocities before the push.
                robot.refresh(env_ids)

    def observe(self, env_ids: torch.Tensor | None) -> dict[str, Observation]:
        observation = {}
        for group in self.managers.shown_groups:
            if env_ids is None:
                # Noise is drawn for all environments at once in a step, and by row in a reset:
                # a reset must not advance the streams of other environments.
                group.draw()
                group.compute()
                value = group.value
            else:
                value = group.compute_rows(env_ids)
            observation[group.name] = group.arrange(value)
        if env_ids is None:
            check_observations(self.managers)
        return observation

    def place(self, env_ids: torch.Tensor, seeded: bool) -> None:
        # Startup events belong to a robot and not to an episode: they depend only on the seed.
        if seeded:
            self.randomize(env_ids)
        # Commands before events: a motion command decides where the reference places the robot.
        self.managers.commands.reset(env_ids)
        self.managers.events.reset(env_ids)

    def randomize(self, env_ids: torch.Tensor) -> None:
        """Choose tiles and apply startup events, which are drawn once per seed."""
        # Tiles come before all events, which may place robots relative to their tile.
        ground = self.env.ground
        if ground is not None:
            ground.choose_tiles(env_ids, self.env.random.stream("terrain"))
        self.managers.events.apply("startup", env_ids)

    def begin_episodes(self, env_ids: torch.Tensor) -> None:
        self.managers.begin_episodes(env_ids)

    def end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        return self.managers.end_episodes(env_ids, steps)

    def forget_last_observation(self) -> None:
        for group in self.managers.observations.groups.values():
            group.forget_last()

    def state(self) -> State:
        return self.managers.state()

    def state_template(self) -> State:
        return self.managers.state_template()

    def load_changes(self, state: State) -> None:
        self.managers.load_changes(state)

    def load_state(self, state: State) -> None:
        self.managers.load_state(state)

    def close(self) -> None:
        # Managers and environment refer to each other: this frees both without the garbage
        # collector.
        del self.managers
        del self.env


def check_evaluation(managers: ManagerSet, recovered: torch.Tensor | None) -> None:
    """Check rewards and costs of the last step; one number decides if terms are looked at.

    Args:
        managers: The managers that have evaluated the step.
        recovered: Environments that are not checked, shape (num_envs,), bool; None for none.

    Raises:
        ValueError: If a term returned a number that is not allowed; the error names the term.
    """
    # A sum is not finite if one of its numbers is not. Reading a number waits for the GPU, so one
    # is read for all terms.
    total = managers.rewards.check_sum() + managers.costs.check_sum()
    if not math.isfinite(total.item()):
        managers.rewards.check_values(recovered)
        managers.costs.check_values(recovered)


def check_observations(managers: ManagerSet) -> None:
    """Check the shown observations of the last step.

    Raises:
        ValueError: If a user's term returned a number that is not finite.
    """
    for group in managers.shown_groups:
        if not group.is_builtin and not math.isfinite(group.check_sum().item()):
            group.check_values()
