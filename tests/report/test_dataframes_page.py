"""The page of what converts of pandas and Polars tells what the rules are, and nothing else."""

import re

import pytest

pytest.importorskip("pandas")
pytest.importorskip("polars")

from onward.errors import UnsupportedError
from onward.report.dataframes import only_refuses, page


def rows() -> dict[tuple[str, str], list[str]]:
    """What is listed, by library and title."""
    found: dict[tuple[str, str], list[str]] = {}
    for section in page().split("\n## ")[1:]:
        library = section.partition("\n")[0]
        for title, listed in re.findall(r"^\| (.*?) \| (`.*`) \|$", section, re.MULTILINE):
            found[library, title] = re.findall(r"`(.*?)`", listed)
    return found


def test_what_has_a_rule_is_listed() -> None:
    found = rows()
    assert {"fillna", "clip", "map", "+", "x[…]"} <= set(found["pandas", "columns"])
    assert {"assign", "merge", "groupby"} <= set(found["pandas", "frames"])
    assert "upper" in found["pandas", "texts: `.str`"]
    assert "starts_with" in found["Polars", "texts: `.str`"]
    assert not [name for names in found.values() for name in names if ":" in name]


def refuses(call: object) -> None:
    """Why it is refused."""
    raise UnsupportedError("it cannot be")


def refuses_some(call: object) -> object:
    if call is None:
        raise UnsupportedError("it cannot be")
    return call


def test_rules_that_only_refuse_are_not_listed() -> None:
    assert only_refuses(refuses)
    assert not only_refuses(refuses_some)
    assert "to_pydatetime" not in rows()["pandas", "times: `.dt`"]
