"""Consumer groups as an administrator sees them: who reads, how far, and when a group may go."""

from __future__ import annotations

from penstock.errors import PenstockError, TerminalError
from penstock.kafka.admin import describe
from penstock.kafka.admin.asking import Asker
from penstock.kafka.admin.lookup import existing
from penstock.kafka.admin.model import GroupDetail, GroupInfo, GroupTold
from penstock.kafka.admin.watermarks import Watermarks


def list_groups(ask: Asker) -> list[GroupInfo]:
    """Every consumer group by name."""
    result = ask.whole("listing the groups", ask.client.list_consumer_groups)
    return sorted((describe.group_line(g) for g in result.valid), key=lambda g: g.name)


def describe_group(ask: Asker, group: str) -> GroupDetail:
    """State, members, and for every partition the committed offset, the end and the lag."""
    told = look_up(ask, group)
    with ask.group(group) as offsets:
        committed = offsets.committed()
    owners = {partition: m.id for m in told.members for partition in m.partitions}
    touched = sorted({*committed, *owners})
    ends = Watermarks(ask).latest(existing(ask, touched))
    positions = describe.positions(touched, committed, ends, owners)
    return GroupDetail(group, told.state, told.protocol, told.assignor, told.members, positions)


def delete_group(ask: Asker, group: str) -> None:
    """Delete a group without members, with the offsets it committed."""
    told = look_up(ask, group)
    if told.members:
        raise still_read(f"deleting group {group!r}", len(told.members))
    ask.coordinator.delete(group)


def look_up(ask: Asker, group: str) -> GroupTold:
    """What the cluster says about a group; a missing one is an error with the nearest names."""
    told = find(ask, group)
    if told is None:
        raise describe.group_missing(group, [g.name for g in list_groups(ask)])
    return told


def find(ask: Asker, group: str) -> GroupTold | None:
    """What the cluster says about a group, or None where there is no such group."""
    told = ask.coordinator.describe([group])[group]
    if isinstance(told, PenstockError):
        raise told
    return told


def still_read(doing: str, members: int) -> TerminalError:
    """The error for what must not be done to a group while somebody reads in it."""
    who = "1 member reads" if members == 1 else f"{members} members read"
    return TerminalError(
        f"{doing}: {who} in this group now, and would go on from where it was; stop every "
        "consumer of the group first ('penstock groups describe' shows them)"
    )
