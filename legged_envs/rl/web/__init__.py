"""The viewer in a browser: ``play`` serves the page, which ``stage`` draws and ``panel`` controls, of a ``session``."""
