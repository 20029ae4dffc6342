"""wolfstream's server: everything around the numerics of `solver`.

The packages follow a sample's way, which README.md shows under "A sample's way":
`web` receives and decodes, `samples` checks, `engine` queues, commits to `storage` and lets a
`model` and its `heads` learn, and `web` acknowledges. `client` and `cli` are the other ends.
CONTRIBUTING.md has the table of allowed imports.
"""
