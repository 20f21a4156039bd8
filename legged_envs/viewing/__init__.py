"""Shows robots with a policy: in MuJoCo's window, as a film, on a page for a browser."""
