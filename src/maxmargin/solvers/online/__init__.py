"""Methods that pass over single examples."""
