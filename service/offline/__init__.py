"""Models without a server: trained on files, evaluated, and converted to estimators and back.

`training` follows a `training_plan`; `evaluation` scores predictions. `estimator_files` saves
estimators in the model files of servers and loads them (`wolfstream.save`, `wolfstream.load`): one
module converts each kind of estimator, and `conversion` what all have in common.

It may import `service.recovery`, `service.storage`, `service.model`, `service.heads`,
`service.samples`, `service.spec`, `service.files`, `solver.estimators`, `solver.stream`,
`solver.calibration`, `solver.semiparametric`, `solver.asset`, `solver.frank_wolfe`,
`solver.kernels`, `solver.prepare`, `solver.rows`.
It is imported by `wolfstream`, `service.cli`, `service.client`.
"""
