"""Published views as bytes, for processes that predict but do not learn.

In the process that learns, `versions` writes the versions of a model's view, and `feeds` sends them
to followers. In another process, `follower` reads them. `tree` splits a view into its structure and
its arrays, and `differences` finds what has changed in an array. Any transport may carry the bytes.

It may import `service.model`.
It is imported by `service.web`, `service.workers`, `service.replicas`.
"""
