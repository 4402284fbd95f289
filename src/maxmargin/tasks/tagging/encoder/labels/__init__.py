"""Labels: gold labels as codes, repair, and constraints on transitions."""
