"""A checker of a server that is killed, which sees only its answers and shares no code with it."""
