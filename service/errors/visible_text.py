"""Text of others in messages, tables and the log: terminals show it, and interpret none of it."""


def visible(text: str, besides: str = "") -> str:
    """Return a text with escape sequences, line breaks and the like as Python writes them.

    besides: characters that stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in besides else ascii(c)[1:-1] for c in text)
