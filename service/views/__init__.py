"""Published views as bytes, for processes that predict but do not learn.

`versions.Versions` writes a view's versions in the process that learns, `follower.Follower` reads
them in another one; any transport may carry the bytes. `tree` takes a view apart into its structure
and its arrays, `differences` finds the changes of an array, and `feeds` sends the versions of all
models to their followers.

It may import `service.model`.
It is imported by `service.web`, `service.workers`, `service.replicas`.
"""
