"""Files of tokens: tables, the scanning of their lines, and text with some cells replaced."""
