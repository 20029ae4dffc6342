"""The headers of a request by name."""

from service.web.formats.headers import headers_by_name


def test_the_first_of_two_headers_counts():
    given = [(b"accept", b"a"), (b"host", b"localhost"), (b"accept", b"b")]
    assert headers_by_name({"headers": given}) == {b"accept": b"a", b"host": b"localhost"}


def test_they_are_looked_through_once():
    scope = {"headers": [(b"accept", b"a")]}
    assert headers_by_name(scope) is headers_by_name(scope)
