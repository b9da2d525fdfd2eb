"""PLAIN, JSON and DOLPHINDB: what is sent, and what is polled."""

import pandas as pd
from here import BROKERS, PATIENCE, new_topic, unique

from penstock.compat import dolphindb as kafka

msgTopic = new_topic("msgTopic")
producer = kafka.producer({"bootstrap.servers": BROKERS})

consumerCfg = {}
consumerCfg["group.id"] = unique()
consumerCfg["metadata.broker.list"] = BROKERS
consumerCfg["auto.offset.reset"] = "earliest"
consumer = kafka.consumer(consumerCfg)
kafka.subscribe(consumer, msgTopic)
kafka.setConsumerTime(consumer, PATIENCE)

table = pd.DataFrame({"c1": [1, 2, 3], "c2": ["a", "b", "c"]})

# PLAIN: text as it is.
kafka.produce(producer, msgTopic, "key", kafka.toStdJson(table), "PLAIN", 0)
error, (topic, key, value, partition, timestamp) = kafka.consumerPoll(consumer, None, "PLAIN")
print(f"PLAIN {error!r} {key} {value} {partition}")

# JSON: a scalar becomes a list of one, a table goes by column.
kafka.produce(producer, msgTopic, "key", 1, "JSON", 0)
kafka.produce(producer, msgTopic, "key", [1, 2, 3], "JSON", 0)
kafka.produce(producer, msgTopic, "key", table, "JSON", 0)
for error, message in kafka.consumerPollBatch(consumer, 3, PATIENCE, "JSON"):
    print(f"JSON {error!r} {message[2]}")

# DOLPHINDB: types and all.
kafka.produce(producer, msgTopic, "key", table, "DOLPHINDB", 0)
error, message = kafka.consumerPoll(consumer, PATIENCE, "DOLPHINDB")
print(f"DOLPHINDB {error!r}\n{message[2]}")
