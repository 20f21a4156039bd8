"""Readers of other people's robots: they make a first RobotCfg from any URDF or MJCF file."""
