"""Other frameworks' ways to write a task, each a translation to the hooks of the core."""
