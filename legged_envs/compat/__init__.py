"""Tasks in the words of other frameworks, one folder per framework."""
