"""Consumer groups as an administrator sees them: who reads, how far, and when a group may go."""

from __future__ import annotations

from difflib import get_close_matches

from penstock.errors import NotFoundError, PenstockError, TerminalError
from penstock.kafka.admin.admin_calls import AdminCalls
from penstock.kafka.admin.admin_model import GroupDescription, GroupDetail, GroupInfo, GroupPosition
from penstock.kafka.admin.lookup import Watermarks, existing


def list_groups(ask: AdminCalls) -> list[GroupInfo]:
    """Return every consumer group by name."""
    result = ask.whole("listing the groups", ask.client.list_consumer_groups)
    groups = sorted(result.valid, key=lambda group: str(group.group_id))
    return [GroupInfo(g.group_id, g.state.name.lower(), g.type.name.lower()) for g in groups]


def describe_group(ask: AdminCalls, group: str) -> GroupDetail:
    """Return state, members, and for every partition the committed offset, the end and the lag."""
    description = look_up(ask, group)
    with ask.group(group) as offsets:
        committed = offsets.committed()
    owners = {partition: m.id for m in description.members for partition in m.partitions}
    touched = sorted({*committed, *owners})
    ends = Watermarks(ask).latest(existing(ask, touched))
    return GroupDetail(
        group,
        description.state,
        description.protocol,
        description.assignor,
        description.members,
        tuple(
            GroupPosition(*where, committed.get(where), ends.get(where), owners.get(where))
            for where in touched
        ),
    )


def delete_group(ask: AdminCalls, group: str) -> None:
    """Delete a group without members, with the offsets it committed."""
    description = look_up(ask, group)
    refuse_members(f"deleting group {group!r}", len(description.members))
    ask.coordinator.delete(group)


def look_up(ask: AdminCalls, group: str) -> GroupDescription:
    """Return what the cluster says about a group; a missing one is an error with the nearest names."""
    description = find(ask, group)
    if description is None:
        close = get_close_matches(group, [g.name for g in list_groups(ask)], n=3, cutoff=0.5)
        nearest = f"the nearest: {', '.join(close)}"
        hint = nearest if close else "'penstock groups list' shows them all"
        raise NotFoundError(f"there is no consumer group {group!r}; {hint}")
    return description


def find(ask: AdminCalls, group: str) -> GroupDescription | None:
    """Return what the cluster says about a group, or None where there is no such group."""
    description = ask.coordinator.describe([group])[group]
    if isinstance(description, PenstockError):
        raise description
    return description


def refuse_members(doing: str, members: int) -> None:
    """Raise for what must not be done to a group while it has members."""
    if members:
        who = "1 member reads" if members == 1 else f"{members} members read"
        raise TerminalError(
            f"{doing}: {who} in this group now, and would go on from where it was; stop every "
            "consumer of the group first ('penstock groups describe' shows them)"
        )
