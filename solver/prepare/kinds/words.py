"""The words of a text, and pairs of words that follow each other, as codes.

Case is folded (Unicode), and what is neither letter nor digit separates words. A code is a hash of
the column, and of the word, the pair or the whole text: it needs no table of words, so memory does
not grow with them, and a word has the same code before and after a restart. Its upper bits are of
the column alone, so that the codes of a row can be told apart by their columns (`columns_of`).
"""

import math
import re
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise

import numpy as np

from wolfstream.solver.arrays import Float64Array

# Of a longer text, what is read; and how many codes it has at most.
MOST_CHARACTERS = 4096
MOST_CODES = 64
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
# Of a code: those of its column come first.
_BITS, _COLUMN_BITS = 51, 10
# Of longer words, codes are not kept for the next time.
_LONGEST_KEPT = 48


def words_of(text: str) -> list[str]:
    """Return the words of a text in their order, in lower case."""
    return _WORD.findall(text[:MOST_CHARACTERS].casefold())


@lru_cache(4096)
def column_key(name: str) -> bytes:
    """Return what distinguishes the words of a column from those of others."""
    return blake2b(name.encode(errors="surrogatepass"), digest_size=16).digest()


def codes_of_words(key: bytes, text: str) -> list[float]:
    """Return the codes of a text's words, of pairs of neighbours, and of the whole text.

    key: of the column. Each code occurs once: the whole, then words, then pairs, in their order.
    """
    words = words_of(text)
    whole = " ".join(words) if words else text[:MOST_CHARACTERS]
    given = list(dict.fromkeys([f"={whole}", *words]))[:MOST_CODES]
    pairs = list(dict.fromkeys(pairwise(words)))[: MOST_CODES - len(given)]
    joined = [f"{one} {other}" for one, other in pairs]
    codes = [
        _short_code(key, one) if len(one) <= _LONGEST_KEPT else _code(key, one)
        for one in (*given, *joined)
    ]
    for k in range(len(given), len(codes)):
        codes[k] -= 1.0
    return codes


def codes_of_number(key: bytes, value: float) -> list[float]:
    """Return the codes of a number: itself, and ranges that it is in, of a 16th and of a half.

    So a number is learned where a table has no column for it.
    """
    mantissa, exponent = math.frexp(abs(value))
    sign = "-" if value < 0.0 else "+"
    ranges = (f"#{sign}{exponent}", f"#{sign}{exponent}/{int(16.0 * mantissa)}")
    return [word_code(key, one) for one in (f"={value!r}", *ranges)]


def word_code(key: bytes, word: str) -> float:
    """Return the code of a word, an odd whole number below 0."""
    return (_short_code if len(word) <= _LONGEST_KEPT else _code)(key, word)


def _code(key: bytes, word: str) -> float:
    of_column, keyed = _of_column(key)
    hashed = keyed.copy()
    hashed.update(word.encode(errors="surrogatepass"))
    of_word = int.from_bytes(hashed.digest()) >> (64 - _BITS + _COLUMN_BITS)
    return -1.0 - 2.0 * float(of_column + of_word)


@lru_cache(4096)
def _of_column(key: bytes) -> tuple[int, blake2b]:
    """Return the upper bits of a column's codes, and the hash of its words, without any yet."""
    of_column = int.from_bytes(key[:8]) >> (64 - _COLUMN_BITS)
    return of_column << (_BITS - _COLUMN_BITS), blake2b(digest_size=8, key=key)


_short_code = lru_cache(1 << 13)(_code)


def columns_of(codes: Float64Array) -> Float64Array:
    """Return whole numbers that are equal for codes of one column; NaN stays NaN.

    Those of two columns are equal with a probability of 2^-10.
    """
    return np.floor((-1.0 - codes) / 2.0 ** (_BITS - _COLUMN_BITS + 1))
