"""Forms of rows: how much room rows of a table take that name what the table lacks."""

import numpy as np
import pytest

from wolfstream.solver.prepare.named_rows import named_values, table_of
from wolfstream.solver.prepare.row_form import MOST_NUMBERS, PreparationParameters, RowForm
from wolfstream.solver.prepare.schema import MOST_LATE, SETTLING, Misfit

ROWS = [{"a": float(i), f"new {i}": 1.0} for i in range(2 * MOST_LATE)]


@pytest.mark.parametrize("samples", [1, SETTLING])
def test_rows_have_no_room_for_names_that_are_not_learned(samples: int):
    form = RowForm(PreparationParameters()).after(named_values([{"a": 1.0}] * samples))
    rows = named_values(ROWS)
    form.checked(rows)
    assert form.table(rows).cells.numbers.shape[1] <= 1 + MOST_LATE
    np.testing.assert_array_equal(form.encoded(rows)[:, 0], np.arange(len(ROWS)))


@pytest.mark.parametrize("samples", [1, SETTLING])
def test_a_strict_table_refuses_the_first_name_that_it_lacks(samples: int):
    form = RowForm(PreparationParameters(names="strict")).after(
        named_values([{"a": 1.0}] * samples)
    )
    rows = named_values([{"a": 1.0}, *ROWS])
    with pytest.raises(Misfit) as refused:
        form.checked(rows)
    assert (refused.value.row, refused.value.name) == (1, "new 0")


def test_rows_that_name_few_of_many_columns_are_refused_before_they_take_room():
    names = [f"c{k}" for k in range(2**15)]
    form = RowForm(PreparationParameters()).after(table_of(names, np.ones((2, len(names)))))
    most = MOST_NUMBERS // len(names)
    few = named_values([{"c7": 1.0}] * (most + 1))
    for rows in (few, table_of(["c7"], np.ones((most + 1, 1)))):
        with pytest.raises(Misfit, match=f"takes {most} at a time: send smaller batches"):
            form.checked(rows)
    form.checked(few.part(0, most))
    form.checked(table_of(names, np.ones((most + 1, len(names)))))
