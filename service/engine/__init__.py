"""Live models: everything between a checked request and its acknowledgement.

The bounded queue, admission, the writer that appends, learns and publishes, and which models are
recovered when. `facade.Engine` is what the server uses. It knows nothing of HTTP, formats or API
keys.
"""
