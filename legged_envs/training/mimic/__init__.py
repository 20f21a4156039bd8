"""Motion-mimic PPO and distillation over :class:`~legged_envs.storage.RolloutStorageMM`.

The environment's observation is a float32 TensorDict with these groups:

- ``policy`` (num_envs, P) and ``critic`` (num_envs, C);
- ``reference`` (num_envs, R) and ``critic_reference`` (num_envs, CR): windows of future frames,
  frame after frame;
- ``reference_mask`` and ``critic_reference_mask`` (num_envs, 1): 1 with a reference; 0 without one,
  where the window has no influence;
- ``amp`` (num_envs, S), only with an adversarial motion prior: the states that its discriminator
  sees.

``extras`` of a step has the entries of
:class:`~legged_envs.wrappers.adapters.rsl_rl.RslRlVecEnv`, including ``costs`` and ``final_obs``.
"""
