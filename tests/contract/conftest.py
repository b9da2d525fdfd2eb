from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Any:
    from penstock.engine import spark_session

    return spark_session()
