"""Methods that move along gradients of the saddle point or of the objective."""
