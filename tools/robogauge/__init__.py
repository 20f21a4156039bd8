"""Evaluation of a policy of the Go2 by RoboGauge, a program of other people.

RoboGauge (https://github.com/wty-yy/RoboGauge, MIT licence) has its own model of the robot, its own
worlds, commands, noise and scores. It runs from a checkout of yours; nothing of it is here.
"""
