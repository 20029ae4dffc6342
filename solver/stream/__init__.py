"""A model of a stream: prepared rows, and heads that learn them in turn and hear each other."""
