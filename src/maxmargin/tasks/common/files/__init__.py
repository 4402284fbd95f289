"""Text files: read whole or in blocks, compressed or not; output that a later run resumes."""
