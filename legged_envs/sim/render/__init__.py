"""Pictures and windows of a simulation: renderer, camera, window, appearance."""
