"""A live model: its learner, which changes it, and its published view, which predicts."""
