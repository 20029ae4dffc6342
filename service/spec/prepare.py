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
        description="How a missing number is filled in. mean: with the mean of its feature so far; "
        "indicator: the same, and another feature tells that it was missing.",
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
        description="How texts are learned. slots: as columns that are 1 for one text; the texts "
        "beyond the first 24 of a column share eight columns. crossed: the adaptive head also "
        "learns a weight for each text, however many there are, and for each pair in a row.",
    )
    codes: Literal["crossed", "numbers"] = Field(
        "crossed",
        description="How numbers that are codes are learned, such as hours, postcodes or product "
        "numbers: those of at most eight columns in which values recur among the first 128 "
        "samples. numbers: by their size. crossed: the adaptive head also learns a weight for each "
        "value, and for each pair in a row, as for texts.",
    )
