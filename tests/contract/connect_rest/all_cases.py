"""All requests of the comparison, in the order in which they are sent."""

from __future__ import annotations

from tests.contract.connect_rest.change_cases import changes
from tests.contract.connect_rest.form_cases import form
from tests.contract.connect_rest.plugin_cases import plugins
from tests.contract.connect_rest.rest_case import Case
from tests.contract.connect_rest.setup_cases import setup
from tests.contract.connect_rest.unknown_cases import unknown

AREAS = {"setup": setup, "form": form, "unknown": unknown, "plugins": plugins, "changes": changes}
CASES: dict[str, Case] = {case.name: case for area in AREAS.values() for case in area}
COUNT = sum(len([*area]) for area in AREAS.values())
