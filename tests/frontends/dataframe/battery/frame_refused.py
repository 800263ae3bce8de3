"""Cases of the battery that do not convert yet or cannot: each by its name, with the reason."""

REFUSED: dict[str, str] = {
    "cut_intervals_as_text": "pandas writes whole borders with a fraction as soon as one row is in no interval",
}
