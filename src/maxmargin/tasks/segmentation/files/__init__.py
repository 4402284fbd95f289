"""Files of users: train on them, predict them, report on predictions."""
