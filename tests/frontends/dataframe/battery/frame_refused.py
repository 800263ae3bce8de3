"""Cases of the battery that do not convert yet or cannot: each by its name, with the reason."""

REFUSED: dict[str, str] = {}
