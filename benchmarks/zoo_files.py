"""The ONNX files of `zoo.csv`, for benchmarks of these alone."""

from collections.abc import Iterable
from pathlib import Path

from onward.zoo.fetch import cached, fetched
from onward.zoo.listing import Entry, listed

LIST = Path(__file__).with_name("zoo.csv")


def entries(names: Iterable[str] = ()) -> list[Entry]:
    """Those with one of these in their names; all if there are none. Small ones come first."""
    parts = list(names)
    found = [entry for entry in listed([LIST]) if entry.format == "onnx"]
    return [entry for entry in found if not parts or any(part in entry.name for part in parts)]


def there(chosen: Iterable[Entry]) -> list[tuple[str, Path]]:
    """Names and files of those that have been fetched before."""
    return [(entry.name, path) for entry in chosen if (path := cached(entry)).is_file()]


def files(chosen: Iterable[Entry]) -> list[tuple[str, Path]]:
    """Names and files, fetched if need be."""
    return [(entry.name, fetched(entry)) for entry in chosen]
