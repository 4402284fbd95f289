"""Files, formats and forms of sentence pairs and links."""
