"""Pictures of labels, and the report: one self-contained page for the browser."""
