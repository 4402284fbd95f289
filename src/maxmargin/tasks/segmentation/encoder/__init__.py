"""Images and scans to the graphs of cuts, and labels of nodes back to pixels and points."""
