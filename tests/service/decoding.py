"""The bounds under which tests decode bodies: those of a server without settings."""

from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.bounds import bounds_of

BOUNDS = bounds_of(Settings())
