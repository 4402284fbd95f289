"""What the commands of all tasks share."""
