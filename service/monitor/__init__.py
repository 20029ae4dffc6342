"""What operators watch: the console's numbers, alerts, and metrics for Prometheus.

Once a second, `producer` describes each model that has listeners (`console_state`) and
sends them the description (`channel`). Every ten seconds it writes a point for each model that has
changed (`points`, `side_file`). Changes of a head's loss become alerts (`alerts`), which `webhook`
posts. Only published views are read, so learning never waits.

`server_metrics` and `model_metrics` collect the Prometheus metrics, afresh for each request.
"""
