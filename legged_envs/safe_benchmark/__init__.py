"""The benchmark of constrained locomotion: runs, their evaluation, statistics and leaderboard."""
