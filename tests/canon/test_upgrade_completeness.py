"""Every version of every op that could mean something new has an upgrade entry, or a reason to have none."""

from collections.abc import Iterable

import onnx
import test_upgrade_elementwise as elementwise
import test_upgrade_image as image
import test_upgrade_rnn as rnn
import test_upgrade_shape as shape
from old_files import Old
from schema_changes import changes
from test_upgrade_driver import CONSUMERS
from unchanged import UNCHANGED

from onward.canon.upgrade.registry import ENTRIES

CHANGES = {(c.op, c.since): c.kinds for c in changes()}
REASONS = {
    (op, int(since)): reason
    for reason, names in UNCHANGED.items()
    for op, since in (name.rsplit("-", 1) for name in names.split())
}
UPGRADES = {(op, since) for (_, op), entries in ENTRIES.items() for since, _ in entries}


def names(keys: Iterable[tuple[str, int]]) -> list[str]:
    return sorted(f"{op}-{since}" for op, since in keys)


def test_every_change_is_dealt_with() -> None:
    left = CHANGES.keys() - UPGRADES - REASONS.keys()
    report = [f"{op}-{since}: {sorted(CHANGES[op, since])}" for op, since in sorted(left)]
    assert not report, f"look at what changed in {report}, then write an entry or a reason"


def test_every_reason_is_about_a_change() -> None:
    assert names(REASONS.keys() - CHANGES.keys()) == []
    assert names(REASONS.keys() & UPGRADES) == []
    assert len(REASONS) == sum(len(text.split()) for text in UNCHANGED.values())


def test_every_entry_leads_to_a_version_that_exists() -> None:
    """Ops that are in no schema any more end with opset 9."""
    known = {(s.name, s.since_version) for s in onnx.defs.get_all_schemas_with_history()}
    ops = {op for op, _ in known}
    removed = {(op, since) for op, since in UPGRADES - known if op not in ops}
    assert {since for _, since in removed} == {10}
    assert names(UPGRADES - known - removed) == []


def test_every_entry_is_tried_on_an_old_file() -> None:
    """The tables of cases reach every entry; those that only drop `consumed_inputs` have a test of their own."""
    tables = [*vars(elementwise).values(), *vars(shape).values(), *vars(image).values(), *vars(rnn).values()]
    old = [case for table in tables if isinstance(table, list) for case in table if isinstance(case, Old)]
    oldest = {case.op: min(other.opset for other in old if other.op == case.op) for case in old} | {"Scan": 8}
    untried = {(op, since) for op, since in UPGRADES if oldest.get(op, since) >= since}
    assert names(untried - {(op, 6) for op in CONSUMERS}) == []
