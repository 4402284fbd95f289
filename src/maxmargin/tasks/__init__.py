"""What people come for, each over the public core, with its files, features, metrics and command."""
