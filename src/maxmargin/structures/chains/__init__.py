"""Label sequences: chains of first and second order, and the transitions they allow."""
