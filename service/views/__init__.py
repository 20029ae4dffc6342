"""Published views as bytes: what predictions read, for processes that do not learn.

`versions.Versions` is the side that learns, `follower.Follower` one that follows it; between them
are bytes, whatever carries them. `tree` takes a view apart into its structure and its arrays,
`differences` says what of an array has changed. `followings` writes the versions of all models for
all who ask for them.

It may import `service.model`.
It is imported by `service.web`, `service.workers`, `service.replicas`.
"""
