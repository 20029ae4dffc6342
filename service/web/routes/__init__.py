"""The endpoints of the HTTP interface, and the handlers that all transports share.

`app` puts endpoints and layers together. `handlers` has what HTTP, the stream and the Open
Inference Protocol have in common. Each of the other modules has the endpoints of one subject.
"""
