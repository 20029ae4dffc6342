"""The words of a text, and pairs of words that follow each other, as codes.

Case is folded (Unicode), and what is neither letter nor digit separates words, except for one
apostrophe within a word. A code is a hash of the column, and of the word, the pair or the whole
text: it needs no table of words, so memory does not grow with them, and a word has the same code
before and after a restart. Its upper bits are of the column alone, so that the codes of a row can
be told apart by their columns (`columns_of`).
"""

import math
import re
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise

import numpy as np

from wolfstream.solver.arrays import Float64Array

# How many characters of a text are read, and how many codes it has at most.
MOST_CHARACTERS = 4096
MOST_CODES = 64
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
# The bits of a code, and how many of them, the upper ones, its column decides.
_BITS, _COLUMN_BITS = 51, 10
# Codes of longer words are not cached.
_LONGEST_CACHED = 48


def words_of(text: str) -> list[str]:
    """Return the words of a text in their order, in lower case."""
    return _WORD.findall(text[:MOST_CHARACTERS].casefold())


@lru_cache(4096)
def column_key(name: str) -> bytes:
    """Return 16 bytes that distinguish the words of a column from those of others."""
    return blake2b(name.encode(errors="surrogatepass"), digest_size=16).digest()


def codes_of_words(key: bytes, text: str) -> list[float]:
    """Return the codes of a text's words, of pairs of neighbours, and of the whole text.

    key: of the column. Each code occurs once: the whole, then words, then pairs, in their order.
    """
    words = words_of(text)
    whole = " ".join(words) if words else text[:MOST_CHARACTERS]
    terms = list(dict.fromkeys([f"={whole}", *words]))[:MOST_CODES]
    pairs = list(dict.fromkeys(pairwise(words)))[: MOST_CODES - len(terms)]
    # A pair has an even code, so it is never that of a word.
    codes_of_pairs = [word_code(key, f"{first} {second}") - 1.0 for first, second in pairs]
    return [*(word_code(key, term) for term in terms), *codes_of_pairs]


def codes_of_number(key: bytes, value: float) -> list[float]:
    """Return three codes of a number: of itself, and of two ranges that it is in.

    One range is that between two powers of 2, the other an eighth of that. So a number is learned
    where a table has no column for it.

    key: of the column.
    """
    mantissa, exponent = math.frexp(abs(value))
    sign = "-" if value < 0.0 else "+"
    # Unless it is 0, the mantissa is from 0.5 to 1; 16 times that has eight whole parts.
    ranges = (f"#{sign}{exponent}", f"#{sign}{exponent}/{int(16.0 * mantissa)}")
    return [word_code(key, term) for term in (f"={value!r}", *ranges)]


def word_code(key: bytes, word: str) -> float:
    """Return the code of a word, an odd whole number below 0."""
    return (_cached_code if len(word) <= _LONGEST_CACHED else _code)(key, word)


def _code(key: bytes, word: str) -> float:
    upper_bits, column_hash = _column_hash(key)
    word_hash = column_hash.copy()
    word_hash.update(word.encode(errors="surrogatepass"))
    lower_bits = int.from_bytes(word_hash.digest()) >> (64 - _BITS + _COLUMN_BITS)
    return -1.0 - 2.0 * float(upper_bits + lower_bits)


@lru_cache(4096)
def _column_hash(key: bytes) -> tuple[int, blake2b]:
    """Return the upper bits of a column's codes, and a hash that takes a word."""
    upper_bits = int.from_bytes(key[:8]) >> (64 - _COLUMN_BITS)
    return upper_bits << (_BITS - _COLUMN_BITS), blake2b(digest_size=8, key=key)


_cached_code = lru_cache(1 << 13)(_code)


def columns_of(codes: Float64Array) -> Float64Array:
    """Return a whole number for each code, equal for codes of one column; NaN stays NaN.

    Two columns have the same number with a probability of 2^-10.
    """
    return np.floor((-1.0 - codes) / 2.0 ** (_BITS - _COLUMN_BITS + 1))
