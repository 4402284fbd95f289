"""Templates of attributes in CRF++'s syntax: lines, macros, functions of cells, and how tables are read by them."""
