"""The worked example of getAssignment, getOffsetInfo and commit: ten messages, two of them read."""

from here import BROKERS, PATIENCE, new_topic, unique

from penstock.compat import dolphindb as kafka

offsetTopic = new_topic("offsetTopic")
producer = kafka.producer({"bootstrap.servers": BROKERS})
for _ in range(10):
    kafka.produce(producer, offsetTopic, "0", "message", "PLAIN")
kafka.producerFlush(producer)

consumerCfg = {}
consumerCfg["metadata.broker.list"] = BROKERS
consumerCfg["enable.auto.commit"] = "false"
consumerCfg["group.id"] = unique()
consumer = kafka.consumer(consumerCfg)
kafka.assign(consumer, offsetTopic, 0, 3)
kafka.consumerPoll(consumer, PATIENCE, "PLAIN")
kafka.consumerPoll(consumer, PATIENCE, "PLAIN")

# The plugin tells no offset here: -1000.
print(kafka.getAssignment(consumer).drop(columns="topic").to_string(index=False))
# The next one to read is 5, and nothing is committed yet.
print(kafka.getOffsetInfo(consumer, offsetTopic, 0).drop(columns="topic").to_string(index=False))
kafka.commit(consumer)
print(kafka.getOffsetInfo(consumer, offsetTopic, 0).drop(columns="topic").to_string(index=False))
