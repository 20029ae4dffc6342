"""The bounds under which tests decode bodies: those of a server without settings."""

from service.settings import Settings
from service.web.formats.bounds import bounds_of

BOUNDS = bounds_of(Settings())
