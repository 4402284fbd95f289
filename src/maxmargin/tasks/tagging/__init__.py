"""Labels of sequences: parts of speech, chunks, names, or anything else that tokens are labelled with."""
