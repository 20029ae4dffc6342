"""Requests that the server does not take in: unreadable, too large, too slow."""

from wolfstream.service.errors.refusal import Refusal


class Unreadable(Refusal):
    """The body cannot be parsed."""

    slug, title = "unreadable", "The body cannot be read"


class UnsupportedFormat(Refusal):
    """The content type or the content encoding is not supported."""

    slug, title = "unsupported-format", "The content type or encoding is not supported"


class TooSlow(Refusal):
    """The client took too long to send the request."""

    slug, title = "too-slow", "The request took too long to arrive"


class HeadTooLarge(Refusal):
    """The request line and the headers are too large."""

    slug, title = "head-too-large", "The request's head is too large"


class TooLarge(Refusal):
    """More bytes or rows than a request may have."""

    slug, title = "too-large", "The request is too large"
