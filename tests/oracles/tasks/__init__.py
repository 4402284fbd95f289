"""Slow twins of what the tasks compute."""
