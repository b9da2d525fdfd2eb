"""Tasks that read objects and are killed at any moment: each line is in the topic once."""

from __future__ import annotations

import gzip
import random
from math import inf

import pytest
from tests.faults.killed_tasks import kill_after
from tests.faults.kills import kills
from tests.services.object_store import S3Server

from penstock import Connection
from penstock.imports.files import FilesImport
from penstock.imports.part_task import Errand, run
from penstock.imports.positions import Known, create_topic
from penstock.kafka import Admin
from penstock.pipeline.importing import key_of
from penstock.testing import read_all

KILLS = kills(8) // 2  # of each task
LINES = 200_000

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_killed_tasks_lose_and_repeat_nothing(
    connection: Connection, unique: str, s3: S3Server
) -> None:
    create_topic(connection)
    bucket = unique.lower().replace("_", "-")
    client = s3.client()
    client.mkdir(bucket)
    data = b"".join(b"%d\n" % n for n in range(LINES))
    client.pipe_file(f"{bucket}/in/plain.log", data)
    client.pipe_file(f"{bucket}/in/packed.log.gz", gzip.compress(data))
    source = FilesImport(folder=f"s3://{bucket}/in", storage_options=s3.options)
    parts = source.system().pending({})
    topics = [f"{unique}.{part.names['file']}" for part in parts]
    letters = f"{unique}.dead-letters"
    errands = [
        Errand(unique, 0, part, connection, topic, letters, Known(), 1000)
        for part, topic in zip(parts, topics, strict=True)
    ]
    chance = random.Random(unique)
    with Admin(connection) as admin:
        for topic in topics:
            admin.create_topic(topic, 1)
        # One after the other: the positions of a part are read when no other one's are being written.
        for topic, errand in zip(topics, errands, strict=True):
            for _ in range(KILLS):
                kill_after(errand, admin, chance.randint(1, 8000))
            # Often no transaction was committed: the kills come while the first one is written.
            assert len(read_all(connection, topic)) < LINES
            outcome = run(errand, inf)
            assert outcome.error is None
            assert [int(each.value) for each in read_all(connection, topic)] == [*range(LINES)]
            done = {key_of(errand.part.place): outcome.position or {}}
            assert errand.part not in source.system().pending(done)
