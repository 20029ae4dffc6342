"""Models without a server: trained on files, evaluated, and converted to estimators and back.

`training` follows a `training_plan`; `evaluation` scores predictions. `estimator_files` saves
estimators in the model files of servers and loads them (`wolfstream.save`, `wolfstream.load`): one
module converts each kind of estimator, and `conversion` what all have in common.
"""
