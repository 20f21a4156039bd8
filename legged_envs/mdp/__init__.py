"""The terms of a task: actions, commands, observations, rewards, costs, events, terminations and
curricula.

Most terms are plain functions of the state of all environments. Each kind has its own file.
"""
