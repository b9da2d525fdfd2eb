"""What the address of Spark's master means: Spark in this machine, or a cluster somewhere else."""

from __future__ import annotations

import os
import socket

from penstock.errors import ConfigError, TransientError

_STANDALONE = "spark://"
_PATIENCE = 10.0


def own_address(master: str) -> str | None:
    """Return this machine's address as the master's network sees it; None where Spark is to choose it.

    Spark takes the first address that is not the loopback's, which the executors may not be able to
    reach. The address from which the master was reached is reachable. A master that does not answer is
    reported here: Spark would try for a minute and then stop.
    """
    if not master.startswith(_STANDALONE):
        return None
    address = _reached(master)
    return None if os.environ.get("SPARK_LOCAL_IP") else address


def _reached(master: str) -> str | None:
    problems = []
    for place in master.removeprefix(_STANDALONE).split(","):
        try:
            with socket.create_connection(_place(place, master), timeout=_PATIENCE) as reached:
                return reached.getsockname()[0] if reached.family is socket.AF_INET else None
        except OSError as error:
            problems.append(f"{place}: {error.strerror or error}")
    raise TransientError(
        f"no master of a Spark cluster answers at {master} ({'; '.join(problems)}); start it, or give "
        "another 'spark.master'"
    )


def _place(place: str, master: str) -> tuple[str, int]:
    host, _, port = place.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(
            f"'spark.master' is {master!r}; a standalone cluster is written as spark://host:7077, "
            "several masters as spark://host1:7077,host2:7077"
        )
    return host.strip("[]"), int(port)
