"""Files of tokens: readers and writers of all formats, and the tables they share."""
