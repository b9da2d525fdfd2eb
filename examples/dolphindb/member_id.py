"""A consumer's name in its group, which it gets with its first poll."""

from here import BROKERS, PATIENCE, new_topic, unique

from penstock.compat import dolphindb as kafka

consumerCfg = {}
consumerCfg["group.id"] = unique()
consumerCfg["metadata.broker.list"] = BROKERS
consumerCfg["auto.offset.reset"] = "earliest"
consumer = kafka.consumer(consumerCfg)
test = new_topic("test")
producer = kafka.producer({"metadata.broker.list": BROKERS})
kafka.produce(producer, test, "key", "value", "PLAIN")
kafka.subscribe(consumer, test)
kafka.consumerPoll(consumer, PATIENCE)
print(kafka.getMemId(consumer))
