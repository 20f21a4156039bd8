"""Motion-mimic PPO and distillation over :class:`~legged_envs.storage.RolloutStorageMM`. The environment's observation
is a float32 TensorDict of ``policy`` (num_envs, P), ``critic`` (num_envs, C), windows of future frames, frame after
frame, ``reference`` (num_envs, R) and ``critic_reference`` (num_envs, CR), their masks ``reference_mask`` and
``critic_reference_mask`` (num_envs, 1), 0 where there is no reference and the window has no influence, else 1, and with
an adversarial motion prior the states that it compares, ``amp`` (num_envs, S). ``extras`` of a step are those of
:class:`~legged_envs.wrappers.adapters.rsl_rl.RslRlVecEnv`, with costs and ``final_obs``."""
