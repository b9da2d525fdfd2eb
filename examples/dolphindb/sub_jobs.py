"""Jobs in the background: JSON into stream tables, by tables of messages and message by message."""

import json

import pandas as pd
from here import BEGINNING, BROKERS, new_topic, unique, until

from penstock.compat import dolphindb as kafka

msgTopic1, msgTopic2 = new_topic("msgTopic1"), new_topic("msgTopic2")

# One JSON object in each message: the parser gets tables, in which they are the column payload.
consumerCfg = {"metadata.broker.list": BROKERS, "group.id": unique()}
consumer1 = kafka.consumer(consumerCfg)
kafka.subscribe(consumer1, msgTopic1)
st1 = kafka.streamTable(["date", "id", "msg"], ["DATE", "INT", "STRING"])


def parser1(msg):
    schema = {"date": "DATE", "id": "INT", "msg": "STRING"}
    return kafka.parseJsonTable(msg.payload, schema)


kafka.createSubJob(consumer1, st1, parser1, "subJob1", 0.1, False, True, 1000)

producer = kafka.producer({"bootstrap.servers": BROKERS})
for number, text in enumerate(["kafka", "zookeeper", "raft"], start=1):
    message = {"date": "2024.08.30", "id": number, "msg": text}
    kafka.produce(producer, msgTopic1, "key", message, "JSON")

# A list of records in each message: the parser gets one message at a time.
consumerCfg["group.id"] = unique()
consumer2 = kafka.consumer(consumerCfg)
kafka.subscribe(consumer2, msgTopic2)
st2 = kafka.streamTable(["topic", "date", "id", "msg"], ["STRING", "DATE", "INT", "STRING"])


def parser2(payload, _key, topic):
    document = json.loads(payload)
    rows = pd.DataFrame(document["record"])
    day = pd.Timestamp(document["date"].replace(".", "-")).date()
    return rows.assign(topic=topic.partition("-")[0], date=day)


kafka.createSubJob(consumer2, st2, parser2, "subjob2")
orders = {
    "2024.08.30": ["buy", "withdraw"],
    "2024.08.31": ["sell"],
    "2024.09.01": ["buy", "sell", "sell", "withdraw"],
}
for day, words in orders.items():
    record = [{"id": number, "msg": word} for number, word in enumerate(words, start=1)]
    kafka.produce(producer, msgTopic2, "key", {"date": day, "record": record}, "JSON")

until(lambda: len(st1) == 3 and len(st2) == 7, BEGINNING)
print(st1.to_pandas().to_string(index=False))
print(st2.to_pandas().to_string(index=False))

columns = ["actionName", "processedMsgCount", "failedMsgCount", "msgAsTable", "batchSize"]
until(lambda: kafka.getJobStat()["processedMsgCount"].sum() == 6, BEGINNING)
stat = kafka.getJobStat()
print(stat[[*columns, "throttle", "autoCommit"]].to_string(index=False))

for action in stat.actionName:
    kafka.cancelSubJob(action)
print(len(kafka.getJobStat()), "jobs are left")
