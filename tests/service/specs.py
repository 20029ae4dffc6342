"""Specs of models with the papers' learners alone, which learn rows as they come."""

from typing import Any

from wolfstream.service.spec.model import ModelSpec, read_spec

PAPERS: dict[str, Any] = {"prepare": None, "adaptive": None}


def read_papers_spec(given: dict[str, Any]) -> ModelSpec:
    """The spec that `given` asks for, without preparation and without the adaptive head."""
    return read_spec(PAPERS | given)
