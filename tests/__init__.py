"""The test-suite: it mirrors `solver` and `service`."""
