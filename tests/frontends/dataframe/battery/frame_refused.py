"""Cases of the battery that do not convert yet or cannot: each by its name, with the reason."""

REFUSED: dict[str, str] = {
    "aggregate_category_all": "a group for each category, also of those that no row has, is not written yet",
    "cut_intervals_as_text": "pandas writes whole borders with a fraction as soon as one row is in no interval",
    "row_numbers": "numpy.arange takes a number of Python, which the number of rows is not",
    "running_product": "a product of an unknown number of rows has no form with a bounded number of nodes",
}
