"""User data: classes of inputs, checks whose errors name the example, labels, graphs and sparse matrices."""
