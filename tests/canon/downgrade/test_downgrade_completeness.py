"""Every version of every op can be left: by an entry, because the older schema says the same, or it is refused."""

from collections.abc import Iterable

import onnx
import test_downgrade_elementwise as elementwise
import test_downgrade_index as index
import test_downgrade_layers as layers
import test_downgrade_reduce as reduce
import test_downgrade_shape as shape
from new_files import ML, New
from no_way import NO_WAY, SAME, WIDENED
from schema_changes import changes
from test_downgrade_driver import TRIED
from unchanged import UNCHANGED

from onward.canon.downgrade import ENTRIES, load_downgrades
from onward.canon.downgrade.schemas import versions_of

load_downgrades()
OLDEST = {"": 7, ML: 1}
FROM = {(op, since) for (_, op), entries in ENTRIES.items() for since in entries}
CHANGES = {(c.op, c.since): c.kinds for c in changes() if c.since > OLDEST.get(c.domain, 99)}


def table(text: dict[str, str]) -> set[tuple[str, int]]:
    found = [name.rsplit("-", 1) for names in text.values() for name in names.split()]
    assert len({tuple(pair) for pair in found}) == len(found)
    return {(op, int(since)) for op, since in found}


def names(keys: Iterable[tuple[str, int]]) -> list[str]:
    return sorted(f"{op}-{since}" for op, since in keys)


def test_every_change_can_be_undone_or_is_none() -> None:
    safe = table({reason: text for reason, text in UNCHANGED.items() if reason not in WIDENED})
    left = CHANGES.keys() - FROM - safe - table(SAME)
    assert not [f"{op}-{since}: {sorted(CHANGES[op, since])}" for op, since in sorted(left)]
    assert names(table(SAME) - (CHANGES.keys() - FROM - safe)) == []


def test_every_young_op_is_written_in_older_ones_or_refused() -> None:
    young, written = set(), set()
    for schema in onnx.defs.get_all_schemas():
        if schema.domain in OLDEST:
            versions = versions_of(schema.domain, schema.name)
            first = versions[0].since_version
            if first > OLDEST[schema.domain]:
                young.add((schema.name, first))
                if any(v.has_function or v.has_context_dependent_function for v in versions):
                    written.add((schema.name, first))
    assert names(young - written - FROM - table(NO_WAY)) == []
    assert names(table(NO_WAY) & (written | FROM)) == []
    assert names(table(NO_WAY) - young) == []


def test_every_entry_leaves_a_version_that_exists() -> None:
    known = {(s.name, s.since_version) for s in onnx.defs.get_all_schemas_with_history()}
    assert names(FROM - known) == []


def test_every_entry_is_tried_on_a_new_file() -> None:
    """The tables of cases reach every entry."""
    files = (elementwise, index, layers, reduce, shape)
    tables = [value for file in files for value in vars(file).values() if isinstance(value, list)]
    new = [case for table in tables for case in table if isinstance(case, New)]
    reached = {(c.op, since) for c in new for since in range(_within(c)[0] + 1, _within(c)[1] + 1)}
    assert names(FROM - reached - TRIED) == []


def _within(case: New) -> tuple[int, int]:
    """The versions of its own domain from which and to which a case goes."""
    if case.domain:
        return 1 if case.target < 9 else 2, case.opset
    return case.target, case.opset
