"""The command `wolfstream`: a module for each subcommand, and what they share."""
