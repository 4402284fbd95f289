"""Trees, cliques and junction trees of small treewidth."""
