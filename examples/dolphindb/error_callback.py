"""A producer whose background errors go into a table. No broker listens at its address."""

from functools import partial

import pandas as pd

from penstock.compat import dolphindb as kafka

produceDest: list[dict[str, str]] = []


def producerCallback(dest: list[dict[str, str]], level: str, err: str, reason: str) -> None:
    dest.append({"level": level, "err": err, "reason": reason})


producerCfg = {"bootstrap.servers": "127.0.0.1:1"}
producer = kafka.producer(producerCfg, partial(producerCallback, produceDest))
while not produceDest:
    producer.poll(0.1)
print(pd.DataFrame(produceDest).to_string())
