"""Threads of a training: the physics engine has as many threads as PyTorch."""

from legged_envs.envs.cfg import TaskCfg, override


def limit_threads(task: TaskCfg, threads: int) -> TaskCfg:
    """Return a task with a limit on the threads of its physics.

    Args:
        task: Configuration of the task. Its own ``sim.num_threads`` takes precedence.
        threads: Number of threads. 0: as many as the machine has cores.
    """
    # Environments get the copy. The configuration of the run stays as it is, because threads
    # change neither what is learnt nor the policy.
    if not threads or task.sim.num_threads:
        return task
    return override(task, {"sim.num_threads": threads})
