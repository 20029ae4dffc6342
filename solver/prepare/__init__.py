"""Rows made fit to learn from: running scales, missing values, categories as numbers.

`judging` tells what the texts of a column mean: quantities, moments of time, yes and no, words. It
knows neither tables nor rows nor learners.

It may import `solver.rows`.
It is imported by `service.offline`, `service.web.routes`, `service.web.formats`, `service.engine`,
`service.recovery`, `service.model`, `service.heads`, `service.samples`, `service.files`,
`solver.estimators`, `solver.stream`, `solver.adaptive`, `solver.trees`.
"""
