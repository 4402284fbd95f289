"""From tokens and labels to rows of attributes, codes and the layout of weights."""
