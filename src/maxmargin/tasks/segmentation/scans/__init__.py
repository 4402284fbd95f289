"""3-D scans as sites: voxels of points with features of their neighborhoods, and the graph of nearest neighbors."""
