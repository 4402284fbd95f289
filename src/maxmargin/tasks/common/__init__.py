"""Parts that several tasks use: text files, commands, resampling."""
