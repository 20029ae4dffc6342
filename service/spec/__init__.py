"""The spec of a model: what a client may choose, with a default for everything."""
