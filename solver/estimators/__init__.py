"""scikit-learn's interface to every learner of this package."""
