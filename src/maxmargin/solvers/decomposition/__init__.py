"""Methods that collect outputs and solve master problems over them."""
