"""Version 1.30: scalars, vectors, tables, JSON and a dictionary, each sent and polled."""

from typing import Any

import pandas as pd
from here import BROKERS, PATIENCE, new_topic, unique

from penstock.compat import dolphindb as kafka

producer = kafka.producer({"metadata.broker.list": BROKERS})
consumerCfg = {"metadata.broker.list": BROKERS, "group.id": unique()}
consumerCfg["auto.offset.reset"] = "earliest"
consumer = kafka.consumer(consumerCfg)
kafka.setConsumerTime(consumer, PATIENCE)

test = new_topic("test")
kafka.subscribe(consumer, [test])


def polled() -> Any:
    error, message = kafka.consumerPoll(consumer)
    return error or message[2]


# Text, whole number, float.
kafka.produce(producer, test, "1", "producer1:i'm producer", False, False)
print(polled())
kafka.produce(producer, test, "2", "我是生产者", False, False)
print(polled())
kafka.produce(producer, test, "3", 10086, False, False)
print(polled())
kafka.produce(producer, test, "4", 123.456, False, False)
print(polled())

# Vectors and a table.
kafka.produce(producer, test, 1, [1, 2, 3, 4], False, False)
print(polled())
message = [1.1, 2.2, 3.3, 4.4]
kafka.produce(producer, test, 1, message, False, False)
print(polled())
kafka.produce(producer, test, 1, ["我", "我是", "我是生产者"], False, False)
print(polled())
tab = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"], "c": [10.8, 7.6, 3.5]})
kafka.produce(producer, test, 1, tab, False, False)
print(polled())

# Two messages at once.
kafka.produce(producer, test, 1, "producer1:i'm producer", False, False)
kafka.produce(producer, test, 1, "I am a producer", False, False)
print([message[2] for error, message in kafka.consumerPollBatch(consumer, 2)])

# A dictionary of keys and values.
kafka.produce(producer, test, "1", "producer1:i'm producer", False, False, 0)
kafka.produce(producer, test, "2", "I am a producer", False, False, 0)
kafka.produce(producer, test, "3", 10086, False, False, 0)
kafka.produce(producer, test, "4", 123.456, False, False, 0)
print(kafka.pollDict(consumer, 4))

# JSON.
for value in (tab, {"1": 1, "2": 2, "3": 3}, message, [1, message, tab]):
    kafka.produce(producer, test, "1", value, True, False, 0)
    print(polled())
