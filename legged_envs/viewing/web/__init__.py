"""The viewer in a browser: ``play`` lets robots act and serves a page, ``stage`` draws them, ``panel`` has controls."""
