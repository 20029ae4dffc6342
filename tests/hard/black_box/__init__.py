"""A checker of a server that is killed: it sees answers alone, and shares no code with it."""
