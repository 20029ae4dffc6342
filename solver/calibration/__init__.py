"""How good a learner's predictions are so far: probabilities, sets, intervals, and changes.

All is learned from prequential predictions: the calibration of probabilities, conformal sets and
intervals, and whether losses have risen (`changes`).
"""
