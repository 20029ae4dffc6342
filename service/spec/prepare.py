"""The part of a model's spec about the preparation of rows."""

from typing import Annotated, Literal

from pydantic import Field

from wolfstream.service.spec.kernel import SpecPart

Name = Annotated[str, Field(min_length=1, max_length=256)]
Kind = Literal["number", "boolean", "time", "category", "text", "identifier"]


class PrepareSpec(SpecPart):
    """Rows are standardised before they are learned, each by the rows up to it.

    Columns with names have kinds, which are detected. Sparse rows keep their zeros.
    """

    columns: dict[Name, Kind] = Field(
        {},
        max_length=256,
        description="Kinds of columns, by name, where they should not be detected. number: also "
        "with a unit or a currency around the digits; identifier: the column is not learned.",
    )
    names: Literal["learned", "strict"] = Field(
        "learned",
        description="How names that a table does not have are treated. learned: a new name is "
        "learned from then on, and an unknown name in a prediction is ignored and reported; "
        "strict: both are refused.",
    )
    missing: Literal["mean", "indicator"] = Field(
        "mean",
        description="What a missing number becomes: the mean of its feature so far; indicator: "
        "the mean, and one more feature that says so.",
    )
    named: Literal["table", "sparse"] = Field(
        "table",
        description="How objects of named values are read. table: all have the same names, and an "
        "absent name is a missing value, unless the first rows show that they are sparse. sparse: "
        "new names may come at any time, and an absent name is zero.",
    )
    timestamps: list[str] = Field(
        [],
        max_length=16,
        description="Names whose values are dates and times, as texts or as seconds since 1970. "
        'The same as "time" in columns.',
    )
    texts: Literal["crossed", "slots"] = Field(
        "crossed",
        description="What learners see of texts. slots: columns that are 1 for one text, of which "
        "those beyond the first 24 of a column share eight. crossed: the adaptive head also learns "
        "a weight for each text, however many there are, and for each pair of texts in a row.",
    )
    codes: Literal["crossed", "numbers"] = Field(
        "crossed",
        description="What learners see of numbers that are codes, such as hours, postcodes or "
        "numbers of products: those of at most eight columns in which the same values come again "
        "and again among the first 128 samples. numbers: how large they are. crossed: the adaptive "
        "head also learns a weight for each value, and for each pair in a row, as of texts.",
    )
