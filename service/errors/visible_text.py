"""Text of others in messages, tables and the log: terminals show it, and interpret none of it."""


def visible(text: str, besides: str = "") -> str:
    """Return a text with escape sequences, line breaks and the like as Python writes them.

    besides: characters that stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in besides else ascii(one)[1:-1] for one in text)
